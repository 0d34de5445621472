%% Checks tokens of sequential tracing: how trace patterns see and change them, and how spawn
%% requests and replies between nodes carry them. Also checks which processes refer to a node,
%% before and after its links and monitors are gone. @stress @shared @fence @seconds 200
-module(trace_tokens_between_nodes).
-export([main/0, f/1, g/1, h/1, collect/1, collected/1, wait/0, waits_for/2]).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("tokens" ++ os:getpid()), #{name_domain => shortnames}),
    specs(),
    {ok, Peer, Node} = peer:start(#{name => peer:random_name(), wait_boot => 60000,
        args => ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie", atom_to_list(erlang:get_cookie())]}),
    %% Who finds its module not there yet asks for it, with its token.
    {module, ?MODULE} = rpc:call(Node, code, ensure_loaded, [?MODULE]),
    [spawned(Node, Options) || Options <- [[], [link], [monitor], [{reply, error_only}], [nothing_known]]],
    refers(Node, Peer),
    init:stop().

say(What, Value) -> io:format("~p: ~p~n", [What, Value]).

f(X) -> X.
g(X) -> X.
h(X) -> X.

%% Numbers that hang on how many things a process did before are left out.
specs() ->
    Me = self(),
    Tracer = spawn(?MODULE, collect, [[]]),
    erlang:trace(Me, true, [call, {tracer, Tracer}]),
    erlang:trace_pattern({?MODULE, f, 1}, [{'_', [], [{message, {get_seq_token}}]}], [local]),
    erlang:trace_pattern({?MODULE, g, 1}, [{'_', [{is_seq_trace}], [{message, {get_seq_token}}]}], [local]),
    erlang:trace_pattern({?MODULE, h, 1}, [{'_', [], [{set_seq_token, label, another}, {set_seq_token, print, true}, {message, {get_seq_token}}]}], [local]),
    f(none), g(none),
    seq_trace:set_token(label, {17, "seventeen"}),
    f(label), g(label),
    h({another, [label]}), f(later),
    say(label, seq_trace:get_token(label)),
    seq_trace:reset_trace(),
    g(gone),
    erlang:trace(Me, false, [call]),
    erlang:trace_pattern({?MODULE, '_', '_'}, false, [local]),
    Told = collected(Tracer),
    [say(told, {F, A, case T of {Flags, L, _, _, _} -> {Flags, L}; _ -> T end})
        || {trace, _, call, {_, F, A}, T} <- Told],
    seq_trace:set_token(label, trial),
    say(trial, element(2, erlang:match_spec_test([x], [{'_', [{is_seq_trace}], [{message, {{{is_seq_trace}, {get_seq_token}}}}]}], trace)) =/= false),
    seq_trace:reset_trace().

collect(L) ->
    receive
        {collected, From} -> From ! {self(), lists:reverse(L)};
        M -> collect([M | L])
    end.

collected(Tracer) ->
    R = erlang:trace_delivered(all),
    receive {trace_delivered, all, R} -> ok end,
    Tracer ! {collected, self()},
    receive {Tracer, L} -> L end.

wait() -> receive stop -> ok end.

waits_for(To, M) -> To ! M, wait().

%% What both nodes tell of a request: the kinds, the serial numbers and the messages.
spawned(Node, Options) ->
    Me = self(),
    There = spawn(Node, ?MODULE, collect, [[]]),
    false = rpc:call(Node, seq_trace, set_system_tracer, [There]),
    Here = spawn(?MODULE, collect, [[]]),
    _ = seq_trace:set_system_tracer(Here),
    Ref = make_ref(),
    seq_trace:set_token(label, {a, "any", 1.5, kind}),
    [seq_trace:set_token(F, true) || F <- [send, 'receive']],
    R = spawn_request(Node, ?MODULE, waits_for, [Me, Ref], [{reply_tag, answer} | Options]),
    Quiet = lists:member({reply, error_only}, Options),
    Reply = case Quiet of
        true -> none;
        false -> receive {answer, R, _, _} = M -> M after 5000 -> timeout end
    end,
    is_pid(element(4, if Quiet -> {1, 2, 3, Me}; true -> Reply end)) andalso receive Ref -> ok after 5000 -> timeout end,
    seq_trace:reset_trace(),
    say(reply, case Reply of {answer, R, ok, P} when node(P) =:= Node -> ok; {answer, R, error, Why} -> Why; _ -> Reply end),
    timer:sleep(200),
    Name = fun(X) when X =:= Me -> asker; (X) when X =:= Node -> there; (X) when is_pid(X), node(X) =:= Node -> made; (X) -> X end,
    Kind = fun(X) when is_tuple(X), tuple_size(X) > 1 -> {element(1, X), tuple_size(X)}; (X) when is_list(X) -> {arguments, length(X)}; (X) when X =:= Ref -> reference; (X) -> X end,
    Show = fun(L) -> lists:sort([{S, W, Name(From), Name(To), Kind(M)} || {seq_trace, _, {W, S, From, To, M}} <- L]) end,
    say(here, Show(collected(Here))),
    say(there, Show(rpc:call(Node, ?MODULE, collected, [There]))),
    seq_trace:set_system_tracer(false),
    rpc:call(Node, seq_trace, set_system_tracer, [false]),
    (fun Flush() -> receive _ -> Flush() after 0 -> ok end end)().

refers(Node, Peer) ->
    erts_debug:set_internal_state(available_internal_state, true),
    erts_debug:set_internal_state(node_tab_delayed_delete, 0),
    Creation = rpc:call(Node, erlang, system_info, [creation]),
    There = spawn(Node, ?MODULE, wait, []),
    Me = self(),
    Holder = spawn(fun() -> link(There), R = monitor(process, There), Me ! tied, receive {'DOWN', R, _, _, _} -> ok end end),
    receive tied -> ok end,
    Watched = rpc:call(Node, erlang, whereis, [net_kernel]),
    put(held, Watched),
    Timers = fun(Who) -> [N || {timer, N} <- those(Who, of_node({Node, Creation}))] end,
    Timer = erlang:start_timer(3600000, Holder, {a, Watched, [There | Watched]}),
    Other = erlang:send_after(3600000, nobody_here, There),
    %% What lies in shared regions is nobody's.
    %% Which terms that are is chance under stress.
    Told = case {string:find(os:getenv("ERL_AFLAGS", ""), "+Fregion"), os:getenv("PURLIN_GC_STRESS", "")} of
        {nomatch, ""} -> [[3]];
        {_, ""} -> [[]];
        _ -> [[], [3]]
    end,
    say(timers, {lists:member(Timers({process, Holder}), Told), Timers({process, self()})}),
    say(cancelled, [is_integer(erlang:cancel_timer(T)) || T <- [Timer, Other]]),
    say(timers, Timers({process, Holder})),
    Table = ets:new(table, [ordered_set]),
    ets:insert(Table, [{1, There}, {2, Watched}, {3, There}]),
    Specs = fun() -> lists:sum([N || {_, L} <- of_node({Node, Creation}), {binary, N} <- L]) end,
    {[1], Rest} = ets:select(Table, [{{'$1', There}, [], ['$1']}], 1),
    say(specifications, Specs()),
    say(rest, element(1, ets:select(Rest))),
    ets:delete(Table),
    say(ties, [{K, N} || {K, N} <- lists:sort(those({process, Holder}, of_node({Node, Creation}))), K =:= link orelse K =:= monitor]),
    say(control, [N || {_, L} <- of_connection(Node), {control, N} <- L]),
    monitor_node(Node, true),
    unlink(Peer),
    exit(Holder, kill),
    peer:stop(Peer),
    receive {nodedown, Node} -> ok after 10000 -> say(nodedown, timeout) end,
    say(control, [N || {_, L} <- of_connection(Node), {control, N} <- L]),
    say(held, of_connection(Node) =/= [] andalso node(get(held)) =:= Node),
    say(status, [erts_debug:get_internal_state({process_status, P}) || P <- [self(), Holder]]).

references() ->
    {{node_references, Nodes}, {dist_references, Connections}} = erts_debug:get_internal_state(node_and_dist_references),
    {Nodes, Connections}.

those(What, List) -> proplists:get_value(What, List, []).
of_node(Node) -> {Nodes, _} = references(), hd([Who || {N, _, Who} <- Nodes, N =:= Node] ++ [[]]).
of_connection(Node) -> {_, Connections} = references(), hd([Who || {N, _, Who} <- Connections, N =:= Node] ++ [[]]).
