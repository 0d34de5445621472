%% One of two nodes in networks of their own, which cuts the network between them and heals it, has
%% the other stop reading, and offers a wrong cookie: `scripts/networks.sh`. What it says must not
%% differ between runtimes.
-module(cut).
-export([main/1, other/0, note/1]).

%% On the node that is called: keeps what it has heard of other nodes.
other() ->
    register(?MODULE, spawn(fun() ->
        ok = net_kernel:monitor_nodes(true, [nodedown_reason]),
        heard([])
    end)).
heard(L) ->
    receive
        {ask, From} -> From ! {heard, lists:reverse(L)}, heard([]);
        {nodedown, _, [{nodedown_reason, R}]} -> heard([{down, R} | L]);
        {nodeup, _, _} -> heard([up | L]);
        M -> heard([M | L])
    end.
note(M) -> ?MODULE ! M, ok.

main([Other, Space, Device]) ->
    B = list_to_atom(Other),
    process_flag(trap_exit, true),
    logger:set_primary_config(level, none),
    ok = net_kernel:monitor_nodes(true, [nodedown_reason]),
    say(connected, wait_for(B)),
    say(up, next()),
    Os = erpc:call(B, os, getpid, []),
    _ = ask(B),
    %% Cut, with a link, a monitor and a message under way.
    Link = fun(S) -> os:cmd("ip -n " ++ Space ++ " link set " ++ Device ++ " " ++ S) end,
    {P, R} = tied(B),
    "" = Link("down"),
    {?MODULE, B} ! lost,
    say(cut, lists:sort([told(P, R), told(P, R), told(P, R)])),
    say(nodes, nodes()),
    "" = Link("up"),
    say(healed, wait_for(B)),
    say(up, next()),
    %% Whether it had noticed itself, and what was under way came through after all, hangs on time.
    Heard = [case H of {down, _} -> down; _ -> H end || H <- ask(B), H =/= lost],
    say(other_heard, Heard),
    ok = erpc:call(B, ?MODULE, note, [after_it]),
    say(other_heard, ask(B)),
    %% It stops reading.
    {P2, R2} = tied(B),
    Before = erlang:memory(total),
    "" = os:cmd("kill -STOP " ++ Os),
    Data = binary:copy(<<7>>, 65536),
    Sender = spawn(fun() -> [{nobody, B} ! {N, Data} || N <- lists:seq(1, 2000)] end),
    true = until(fun() -> process_info(Sender, status) =:= {status, suspended} end, 500),
    say(sender_waits, true),
    say(nosuspend, erlang:send({nobody, B}, x, [nosuspend])),
    say(little_memory, erlang:memory(total) - Before < 16 * 1024 * 1024),
    say(deaf, lists:sort([told(P2, R2), told(P2, R2), told(P2, R2)])),
    %% Otherwise it asks for connections as long as it has something left.
    exit(Sender, kill),
    "" = os:cmd("kill -CONT " ++ Os),
    flush(B),
    say(again, wait_for(B)),
    flush(B),
    %% A wrong cookie, by which the other refuses it, then the right one.
    Cookie = erlang:get_cookie(),
    true = net_kernel:disconnect(B),
    say(parted, next()),
    erlang:set_cookie(B, wrong),
    say(wrong_cookie, net_kernel:connect_node(B)),
    say(call, catch erpc:call(B, erlang, node, [], 20000)),
    erlang:set_cookie(B, Cookie),
    say(right_cookie, wait_for(B)),
    rpc:cast(B, erlang, halt, [0]),
    halt().

say(What, Value) -> io:format("~p: ~p~n", [What, Value]).

tied(B) ->
    P = spawn_link(B, timer, sleep, [infinity]),
    R = monitor(process, P),
    _ = erpc:call(B, erlang, node, []),
    {P, R}.

%% One of the three ends of a tie.
told(P, R) ->
    receive
        {'EXIT', P, Reason} -> {exit, Reason};
        {'DOWN', R, process, P, Reason} -> {down, Reason};
        {nodedown, _, [{nodedown_reason, Reason}]} -> {nodedown, Reason}
    after 60000 -> timeout
    end.
next() ->
    receive
        {nodeup, _, _} -> up;
        {nodedown, _, [{nodedown_reason, Reason}]} -> {nodedown, Reason}
    after 60000 -> timeout
    end.
flush(B) -> receive {nodeup, B, _} -> flush(B); {nodedown, B, _} -> flush(B) after 0 -> ok end.
ask(B) ->
    {?MODULE, B} ! {ask, self()},
    receive {heard, L} -> L after 30000 -> timeout end.
wait_for(B) -> until(fun() -> net_kernel:connect_node(B) end, 300).
until(_, 0) -> false;
until(F, N) ->
    case F() of
        true -> true;
        _ -> timer:sleep(200), until(F, N - 1)
    end.
