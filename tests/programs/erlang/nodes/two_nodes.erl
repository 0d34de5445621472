%% Runs two nodes: calls, processes, links, monitors, names and groups across them, and what is left
%% when one of them ends. The other node runs the same runtime, then the installed one, then those
%% executables that `NODES_WITH` names, a list like `PATH`, which may be of other releases.
%% @stress @shared @fence @seconds 300
-module(two_nodes).
-export([main/0, echo/1, run/1]).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("nodes" ++ os:getpid()), #{name_domain => shortnames}),
    process_flag(trap_exit, true),
    Stock = filename:join([code:root_dir(), "bin", "erl"]),
    [begin
         {ok, Peer, Node} = peer:start(Options#{name => peer:random_name(), wait_boot => 60000, args => ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie", atom_to_list(erlang:get_cookie())]}),
         put(peer, Node),
         try here(Node, Peer) catch C:R:S -> say(failed, {C, R, S}) end,
         catch peer:stop(Peer)
     end || Options <- [#{}, #{exec => {Stock, []}, env => [{"ERL_AFLAGS", ""}]}]],
    [begin
         {Peer, Node} = other(Exec),
         say(other, Exec),
         try here(Node, Peer) catch C:R:S -> say(failed, {C, R, S}) end,
         catch erpc:cast(Node, erlang, halt, [])
     end || Exec <- string:lexemes(os:getenv("NODES_WITH", ""), ":")],
    init:stop().

%% Module `peer` of one release doesn't understand that of another.
other(Exec) ->
    Me = self(),
    Name = peer:random_name(),
    [_, Host] = string:lexemes(atom_to_list(node()), "@"),
    Node = list_to_atom(Name ++ "@" ++ Host),
    Args = ["-sname", Name, "-setcookie", atom_to_list(erlang:get_cookie()), "-noinput", "-pa", filename:dirname(code:which(?MODULE))],
    Holder = spawn_link(fun() ->
        Port = open_port({spawn_executable, Exec}, [{args, Args}, {env, [{"ERL_AFLAGS", ""}]}, exit_status]),
        Me ! {self(), started},
        (fun Wait() -> receive {Port, {exit_status, _}} -> ok; _ -> Wait() end end)()
    end),
    receive {Holder, started} -> ok end,
    pong = wait_up(Node, 300),
    {Holder, Node}.

wait_up(_, 0) -> timeout;
wait_up(Node, N) ->
    case net_adm:ping(Node) of
        pong -> pong;
        pang -> receive after 200 -> wait_up(Node, N - 1) end
    end.

say(What, Value) ->
    io:format("~p: ~p~n", [What, Value]).

echo(To) ->
    receive
        {From, M} -> From ! {self(), M}, echo(To);
        stop -> ok
    end.

run(F) -> F().

next() -> receive M -> M after 5000 -> timeout end.
none() -> receive M -> M after 100 -> none end.
flush() -> receive M -> [M | flush()] after 500 -> [] end.

here(Node, Peer) ->
    receive {'EXIT', _, normal} -> ok after 0 -> ok end,
    say(connected, lists:member(Node, nodes())),
    say(rpc, rpc:call(Node, erlang, node, []) =:= Node),
    say(erpc, element(1, element(2, catch erpc:call(Node, lists, no_such, [])))),
    say(raises, element(1, element(2, catch erpc:call(Node, erlang, error, [{my, "reason"}])))),
    say(multicall, [R || {R, _} <- erpc:multicall([node(), Node], erlang, self, [])]),
    say(info, lists:sort(maps:keys(element(2, hd(nodes(connected, #{connection_id => true, node_type => true})))))),
    terms(Node),
    links(Node),
    monitors(Node),
    spawns(Node),
    aliases(Node),
    names(Node),
    many(Node),
    large(Node),
    groups(Node),
    output(Node),
    loses(Node, Peer).

%% What goes there and comes back is the same.
terms(Node) ->
    Local = fun(X) -> {X, node()} end,
    Terms = [0, -1, 1 bsl 80, -(1 bsl 500), 1.5, atom, 'åäö', [], [a | b], "text", <<>>, <<1, 2, 3:3>>, binary:copy(<<"x">>, 5000),
             {}, {1, {2, [3]}}, #{}, #{a => 1, "b" => [2]}, maps:from_list([{I, -I} || I <- lists:seq(1, 100)]), self(), make_ref(),
             hd(erlang:ports()), fun lists:map/2, Local, erpc:call(Node, erlang, self, []), erpc:call(Node, erlang, make_ref, []),
             list_to_tuple(lists:seq(1, 1000)), lists:duplicate(300, $a), <<(binary:copy(<<"y">>, 3000))/binary, 1:1>>],
    P = spawn(Node, ?MODULE, echo, [x]),
    [begin
         P ! {self(), T},
         receive {P, T} -> ok; Other -> say(differs, {T, Other}) after 5000 -> say(lost, T) end
     end || T <- Terms],
    P ! {self(), list_to_tuple(Terms)},
    say(terms, receive {P, All} -> All =:= list_to_tuple(Terms) after 5000 -> timeout end),
    say(fun_called, (erpc:call(Node, ?MODULE, run, [fun() -> Local(1) end])) =:= {1, Node}).

links(Node) ->
    P = spawn_link(Node, erlang, exit, [{some, reason}]),
    say(exit, receive {'EXIT', P, R} -> R after 5000 -> timeout end),
    Q = spawn_link(Node, ?MODULE, echo, [x]),
    {links, L} = process_info(self(), links),
    say(linked, lists:member(Q, L)),
    say(linked, lists:member(self(), element(2, erpc:call(Node, erlang, process_info, [Q, links])))),
    unlink(Q),
    exit(Q, kill),
    say(unlinked, none()),
    link(Q),
    say(dead, receive {'EXIT', Q, N} -> N after 5000 -> timeout end),
    %% Crossing requests make one link; many in turn leave one or none.
    T = spawn(Node, ?MODULE, echo, [x]),
    [begin link(T), unlink(T) end || _ <- lists:seq(1, 100)],
    link(T),
    exit(T, crossed),
    say(once, [receive {'EXIT', T, C} -> C after 5000 -> timeout end, none()]),
    %% The end of a process here, there.
    Me = self(),
    H = spawn(fun() -> receive go -> exit(bye) end end),
    S = spawn(Node, fun() -> process_flag(trap_exit, true), link(H), Me ! {self(), ready}, receive {'EXIT', H, W} -> Me ! {self(), W} end end),
    receive {S, ready} -> H ! go end,
    say(heard, receive {S, Heard} -> Heard after 5000 -> timeout end),
    exit(spawn_link(Node, ?MODULE, echo, [x]), {large, lists:seq(1, 10)}),
    say(exit, case next() of {'EXIT', _, X} -> X; X -> X end).

monitors(Node) ->
    {P, R} = spawn_monitor(Node, erlang, exit, [done]),
    say(down, receive {'DOWN', R, process, P, W} -> W after 5000 -> timeout end),
    R2 = monitor(process, P),
    say(down, receive {'DOWN', R2, process, P, W2} -> W2 after 5000 -> timeout end),
    R3 = monitor(process, {no_such_name, Node}),
    say(down, receive {'DOWN', R3, process, {no_such_name, _}, W3} -> W3 after 5000 -> timeout end),
    R4 = monitor(process, {rex, Node}),
    {monitors, M} = process_info(self(), monitors),
    say(monitors, M =:= [{process, {rex, Node}}]),
    demonitor(R4, [flush]),
    Q = spawn(Node, ?MODULE, echo, [x]),
    R5 = monitor(process, Q, [{tag, {my, tag}}]),
    exit(Q, kill),
    say(tagged, receive {{my, tag}, R5, process, Q, W5} -> W5 after 5000 -> timeout end),
    Me = self(),
    H = spawn(fun() -> receive go -> exit({reason, [1]}) end end),
    S = spawn(Node, fun() -> X = monitor(process, H), Me ! {self(), ready}, receive {'DOWN', X, process, H, Y} -> Me ! {self(), Y} end end),
    receive {S, ready} -> ok end,
    say(monitored_by, process_info(H, monitored_by) =:= {monitored_by, [S]}),
    H ! go,
    say(heard, receive {S, Heard} -> Heard after 5000 -> timeout end),
    say(called, gen_server:call({rex, Node}, {call, erlang, abs, [-3], group_leader()})).

spawns(Node) ->
    R = spawn_request(Node, erlang, self, [], [{reply_tag, {here, "it is"}}, monitor]),
    say(request, receive {{here, "it is"}, R, ok, P} when node(P) =:= Node -> ok after 5000 -> timeout end),
    say(down, receive {'DOWN', R, process, _, W} -> W after 5000 -> timeout end),
    R2 = spawn_request(Node, erlang, self, [], [{no_such_option, 1}]),
    say(badopt, receive {spawn_reply, R2, error, E} -> E after 5000 -> timeout end),
    R3 = spawn_request(Node, erlang, self, [], [{reply, no}]),
    say(no_reply, {is_reference(R3), none()}),
    R4 = spawn_request(Node, ?MODULE, echo, [x], [{monitor, [{alias, explicit_unalias}]}, link]),
    P4 = receive {spawn_reply, R4, ok, P0} -> P0 after 5000 -> timeout end,
    erpc:cast(Node, erlang, send, [R4, by_the_reference]),
    say(alias, next()),
    exit(P4, stop),
    say(both, lists:sort([element(1, M) || M <- flush()])),
    say(badopt, element(1, element(2, catch spawn_opt(Node, erlang, self, [], [{priority, no_such}])))),
    Q = spawn_opt(Node, ?MODULE, echo, [x], [link, {priority, high}]),
    say(high, erpc:call(Node, erlang, process_info, [Q, [priority, initial_call]])),
    unlink(Q),
    exit(Q, kill).

aliases(Node) ->
    A = alias(),
    P = spawn(Node, fun() -> receive {go, T} -> A ! one, A ! two, T ! three end end),
    P ! {go, self()},
    say(through, [next(), next(), next()]),
    unalias(A),
    erpc:call(Node, erlang, send, [A, late]),
    say(unaliased, none()),
    B = alias([reply]),
    erpc:call(Node, erlang, send, [B, first]),
    erpc:call(Node, erlang, send, [B, second]),
    say(once, [next(), none()]),
    R = erpc:call(Node, erlang, alias, []),
    R ! to_who_has_ended,
    say(same, binary_to_term(term_to_binary(A)) =:= A).

names(Node) ->
    yes = global:register_name(d_nodes_name, self()),
    say(global, erpc:call(Node, global, whereis_name, [d_nodes_name]) =:= self()),
    erpc:call(Node, global, send, [d_nodes_name, hello]),
    say(global, next()),
    global:unregister_name(d_nodes_name),
    register(d_nodes_here, self()),
    erpc:call(Node, erlang, send, [{d_nodes_here, node()}, by_name]),
    say(name, next()),
    unregister(d_nodes_here),
    {no_such_name, Node} ! lost,
    say(alive, net_adm:ping(Node)).

%% A thousand processes on each side talk to each other.
many(Node) ->
    N = 500,
    Ps = [spawn_link(fun() -> echo(x) end) || _ <- lists:seq(1, N)],
    Me = self(),
    spawn(Node, fun() ->
        Pairs = lists:zip(lists:seq(1, N), Ps),
        Qs = [spawn(fun() -> P ! {self(), I}, receive {P, I} -> Owner ! {ok, I} end end) || Owner <- [self()], {I, P} <- Pairs],
        Me ! {length(Qs), lists:sum([receive {ok, I} -> I end || _ <- Qs])}
    end),
    say(many, next()),
    [begin unlink(P), P ! stop end || P <- Ps].

%% Large messages from several processes at once, each in the order in which it was sent.
large(Node) ->
    Me = self(),
    There = spawn(Node, ?MODULE, echo, [x]),
    Sizes = [10, 70000, 300000, 5, 1000000, 64000, 66000],
    [spawn(fun() ->
        There2 = spawn(Node, ?MODULE, echo, [x]),
        Parts = [{I, binary:copy(<<K>>, S)} || {I, S} <- lists:zip(lists:seq(1, length(Sizes)), Sizes)],
        [There2 ! {self(), P} || P <- Parts],
        Me ! {large, K, [receive {There2, X} -> X end || _ <- Parts] =:= Parts}
    end) || K <- lists:seq(1, 5)],
    List = [{I, [I], integer_to_binary(I)} || I <- lists:seq(1, 50000)],
    There ! {self(), List},
    say(list, receive {There, L} -> L =:= List after 20000 -> timeout end),
    say(large, lists:sort([receive {large, K, V} -> {K, V} after 20000 -> timeout end || _ <- lists:seq(1, 5)])).

groups(Node) ->
    {ok, Scope} = pg:start(two_nodes),
    Me = self(),
    Holder = spawn(Node, fun() -> {ok, _} = pg:start(two_nodes), ok = pg:join(two_nodes, g, self()), Me ! joined, receive stop -> ok end end),
    next(),
    say(members, wait_members(Holder, 100)),
    exit(Holder, kill),
    say(left, wait_members([], 100)),
    unlink(Scope),
    exit(Scope, kill).

wait_members(_, 0) -> timeout;
wait_members(Who, N) ->
    case pg:get_members(two_nodes, g) of
        [Who] -> there;
        Who -> gone;
        _ -> receive after 20 -> wait_members(Who, N - 1) end
    end.

output(Node) ->
    rpc:call(Node, io, format, ["written there, shown here~n"]),
    say(leader, rpc:call(Node, erlang, group_leader, []) =:= group_leader()),
    P = spawn(Node, ?MODULE, echo, [x]),
    group_leader(self(), P),
    say(leader, erpc:call(Node, erlang, process_info, [P, group_leader]) =:= {group_leader, self()}),
    exit(P, kill).

%% The other node ends.
loses(Node, Peer) ->
    ok = net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    P = spawn_link(Node, ?MODULE, echo, [x]),
    [spawn(fun() -> R = monitor(process, P), Me ! ready, receive {'DOWN', R, process, P, W} -> Me ! {down, W} end end) || Me <- [self()], _ <- lists:seq(1, 200)],
    [ready = next() || _ <- lists:seq(1, 200)],
    erlang:monitor_node(Node, true),
    erlang:monitor_node(Node, true),
    R = monitor(process, {rex, Node}),
    Caller = spawn_monitor(fun() -> exit(catch erpc:call(Node, timer, sleep, [100000])) end),
    receive after 100 -> ok end,
    unlink(Peer),
    erpc:cast(Node, erlang, halt, []),
    Down = [next() || _ <- lists:seq(1, 206)],
    say(lost, lists:sort(lists:usort([case M of
        {nodedown, _, #{nodedown_reason := Why}} -> {nodedown, Why};
        {nodedown, _} -> nodedown;
        {'EXIT', P, Why} -> {exit, Why};
        {'DOWN', R, process, _, Why} -> {down_of_name, Why};
        {'DOWN', _, process, Pid, {'EXIT', {Why, _}}} when Pid =:= element(1, Caller) -> {call, Why};
        _ -> M
    end || M <- Down]))),
    net_kernel:monitor_nodes(false, #{node_type => all, nodedown_reason => true}),
    say(nodes, [lists:member(Node, nodes()), net_adm:ping(Node)]),
    R9 = monitor(process, P),
    say(gone, receive {'DOWN', R9, process, P, W9} -> W9 after 10000 -> timeout end),
    link(P),
    say(gone, receive {'EXIT', P, W8} -> W8 after 10000 -> timeout end),
    P ! lost,
    exit(P, lost),
    say(spawned, is_pid(spawn(Node, erlang, self, []))),
    say(rest, [element(1, M) || M <- flush(), element(1, M) =/= 'EXIT']).
