%% Links and monitors are made and removed while the connection is busy, because the other node does
%% not read. The caller is suspended, unless it asked not to be, or is killed. In the end both nodes
%% agree. @stress @seconds 240
-module(links_over_busy_connection).
-export([main/0]).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("busy_ties" ++ os:getpid()), #{name_domain => shortnames}),
    {ok, Peer, Node} = peer:start(#{name => peer:random_name(), wait_boot => 60000, args => ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie", atom_to_list(erlang:get_cookie())]}),
    Q = spawn(Node, timer, sleep, [infinity]),
    [waits(Node, What, Q) || What <- [link, unlink, monitor, demonitor]],
    killed(Node, Q),
    catch peer:stop(Peer),
    init:stop().

%% What a process is told to be at as it asks.
waits(Node, What, Q) ->
    Me = self(),
    P = spawn(fun() -> receive go -> ok end, asks(What, Q), Me ! {self(), asked}, receive stop -> ok end end),
    before(What, P, Q),
    Thaw = freeze(Node),
    P ! go,
    State = state(P, 50),
    receive {P, asked} -> exit(asked_at_once) after 0 -> ok end,
    Thaw(),
    receive {P, asked} -> ok end,
    io:format("~w: ~w ~w~n", [What, State, ties(P, Q)]),
    P ! stop.

before(unlink, P, Q) -> run_in(P, fun() -> link(Q) end);
before(demonitor, P, Q) -> run_in(P, fun() -> put(m, monitor(process, Q)) end);
before(_, P, _) -> run_in(P, fun() -> ok end).

%% The process runs a function before it goes on to wait for `go`: it is the first thing that it
%% gets.
run_in(P, F) -> P ! go, P ! {self(), F}, receive {P, ran} -> ok end.

asks(What, Q) ->
    receive {From, F} -> F(), From ! {self(), ran} end,
    receive go -> ok end,
    case What of
        link -> link(Q);
        unlink -> unlink(Q);
        monitor -> monitor(process, Q);
        demonitor -> demonitor(get(m))
    end.

ties(P, Q) ->
    [{links, L}, {monitors, M}] = process_info(P, [links, monitors]),
    {lists:member(Q, L), lists:member({process, Q}, M)}.

state(P, 0) -> process_info(P, [status, current_function]);
state(P, N) ->
    receive after 20 -> ok end,
    case process_info(P, status) of
        {status, suspended} -> state(P, 0);
        _ -> state(P, N - 1)
    end.

%% Has the other node take nothing in until the connection is busy; the function waits until it
%% takes all of it.
freeze(Node) ->
    Me = self(),
    F = spawn(Node, fun() ->
                            erts_debug:set_internal_state(available_internal_state, true),
                            Me ! {self(), begins},
                            receive after 200 -> ok end,
                            erts_debug:set_internal_state(block, 3000),
                            Me ! {self(), ended}
                    end),
    receive {F, begins} -> ok end,
    receive after 500 -> ok end,
    fill(Node, binary:copy(<<253>>, 1 bsl 20), 0),
    fun() -> receive {F, ended} -> ok end end.

%% Busy for a while, not only for the moment.
fill(_, _, 20) -> ok;
fill(Node, Data, N) ->
    case erlang:send({nobody, Node}, Data, [nosuspend]) of
        nosuspend -> receive after 10 -> fill(Node, Data, N + 1) end;
        ok -> fill(Node, Data, 0)
    end.

%% Who waits can be killed: the link that it was about to take away breaks.
killed(Node, Q) ->
    P = spawn(fun() -> link(Q), receive go -> ok end, unlink(Q) end),
    W = spawn(Node, fun() -> process_flag(trap_exit, true), receive {link, From} -> link(P), From ! linked end, receive {'EXIT', P, Why} -> Why end, receive {why, To} -> To ! {why, Why} end end),
    W ! {link, self()},
    receive linked -> ok end,
    Thaw = freeze(Node),
    P ! go,
    {status, suspended} = hd(state(P, 50)) ,
    M = monitor(process, P),
    exit(P, kill),
    receive {'DOWN', M, _, _, Why} -> io:format("killed: ~w~n", [Why]) end,
    Thaw(),
    W ! {why, self()},
    receive {why, Told} -> io:format("told: ~w~n", [Told]) end.
