%% What goes between nodes of one runtime on one machine: `erl -sname bench -noshell -pa DIR -run
%% nodes main [QUICK]`. Prints a line for each figure: what, how much, of what.
%% `scripts/bench-nodes.sh` runs it on stock and on Purlin in turn.
-module(nodes).
-export([main/0, main/1, echo/0, sink/0, wait/0]).

main() -> main([]).
main(Args) ->
    Part = case Args of [] -> 1; _ -> 10 end,
    {ok, Peer, Node} = peer(),
    round_trips(Node, 50000 div Part),
    callers(Node, 1000, 100 div Part),
    throughput(Node, 1000000, 1000 div Part),
    throughput(Node, 100000000, max(2, 20 div Part)),
    monitored(Node, Peer, 10000),
    connecting(10),
    halt().

peer() ->
    peer:start(#{name => peer:random_name(), wait_boot => 120000,
        args => ["-setcookie", atom_to_list(erlang:get_cookie()), "-pa", filename:dirname(code:which(?MODULE))]}).

say(What, Value, Unit) -> io:format("~-34s ~14w ~s~n", [What, Value, Unit]).

timed(F) ->
    T = erlang:monotonic_time(microsecond),
    F(),
    max(1, erlang:monotonic_time(microsecond) - T).

echo() -> receive {From, M} -> From ! M, echo() end.
sink() -> receive {From, done} -> From ! {self(), done}, sink(); _ -> sink() end.
wait() -> receive stop -> ok end.

round_trips(Node, N) ->
    There = spawn(Node, ?MODULE, echo, []),
    T = timed(fun() -> trips(There, N) end),
    say("round trips", N * 1000000 div T, "per second").

trips(_, 0) -> ok;
trips(There, N) ->
    There ! {self(), N},
    receive N -> trips(There, N - 1) end.

callers(Node, Callers, Each) ->
    T = timed(fun() ->
        All = [spawn_monitor(fun() -> trips(spawn(Node, ?MODULE, echo, []), Each) end) || _ <- lists:seq(1, Callers)],
        [receive {'DOWN', R, _, _, normal} -> ok end || {_, R} <- All]
    end),
    say("1000 callers", Callers * Each * 1000000 div T, "calls per second").

%% The memory is what this node has more at its fullest than before, asked for each 5 ms.
throughput(Node, Bytes, N) ->
    There = spawn(Node, ?MODULE, sink, []),
    Data = binary:copy(<<7>>, Bytes),
    Before = erlang:memory(total),
    Me = self(),
    Watch = spawn_link(fun() -> watch(Before, Me) end),
    T = timed(fun() ->
        [There ! {N, Data} || _ <- lists:seq(1, N)],
        There ! {self(), done},
        receive {There, done} -> ok end
    end),
    Watch ! stop,
    Most = receive {Watch, M} -> M end,
    Name = integer_to_list(Bytes div 1000000) ++ " MB messages",
    say(Name, Bytes * N div T, "MB per second"),
    say(Name ++ ", memory", (Most - Before) div 1000, "kB more").

watch(Most, To) ->
    receive stop -> To ! {self(), Most} after 5 -> watch(max(Most, erlang:memory(total)), To) end.

monitored(Node, Peer, N) ->
    Pids = [spawn(Node, ?MODULE, wait, []) || _ <- lists:seq(1, N)],
    Refs = [monitor(process, P) || P <- Pids],
    _ = erpc:call(Node, erlang, node, []),
    monitor_node(Node, true),
    unlink(Peer),
    erpc:cast(Node, erlang, halt, [0, [{flush, false}]]),
    T0 = erlang:monotonic_time(microsecond),
    First = receive {'DOWN', R0, _, _, _} -> R0 end,
    T1 = erlang:monotonic_time(microsecond),
    [receive {'DOWN', R, _, _, _} -> ok end || R <- Refs, R =/= First],
    T2 = erlang:monotonic_time(microsecond),
    say("10000 monitors, first to last told", (T2 - T1) div 1000, "ms"),
    say("end of a node, until told", (T1 - T0) div 1000, "ms").

connecting(N) ->
    Peers = [begin
        Name = peer:random_name(),
        {ok, P, Node} = peer:start(#{name => Name, connection => standard_io, wait_boot => 120000, args => ["-setcookie", atom_to_list(erlang:get_cookie())]}),
        {P, Node}
    end || _ <- lists:seq(1, N)],
    [net_kernel:disconnect(Node) || {_, Node} <- Peers],
    T = timed(fun() -> [true = net_kernel:connect_node(Node) || {_, Node} <- Peers] end),
    say("connecting ten nodes", T div 1000, "ms"),
    [catch peer:stop(P) || {P, _} <- Peers].
