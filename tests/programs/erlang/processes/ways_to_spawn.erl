%% Spawns processes in every way, and checks the results. @stress @shared
-module(ways_to_spawn).
-export([main/0, child/2]).

child(To, X) -> To ! {child, X}.

main() ->
    Self = self(),
    [spawn(fun() -> Self ! {N, N * N} end) || N <- lists:seq(1, 100)],
    io:format("~p~n", [lists:sum([receive {N, Q} -> Q end || N <- lists:seq(1, 100)])]),
    spawn(?MODULE, child, [Self, a]),
    receive {child, a} -> io:format("mfa~n") end,
    {P, R} = spawn_monitor(fun() -> exit(bye) end),
    receive {'DOWN', R, process, P, Why} -> io:format("down ~p~n", [Why]) end,
    {P2, R2} = spawn_opt(?MODULE, child, [Self, b], [monitor, {priority, high}, {min_heap_size, 1000}]),
    receive {child, b} -> ok end,
    receive {'DOWN', R2, process, P2, Why2} -> io:format("down ~p~n", [Why2]) end,
    P3 = spawn(fun() -> receive stop -> ok end end),
    io:format("~p ~p~n", [is_process_alive(P3), is_pid(P3)]),
    R3 = monitor(process, P3),
    P3 ! stop,
    receive {'DOWN', R3, process, P3, normal} -> io:format("~p~n", [is_process_alive(P3)]) end,
    Rq = spawn_request(fun() -> ok end, [{reply_tag, started}]),
    receive {started, Rq, ok, P4} -> io:format("request ~p~n", [is_pid(P4)]) end,
    io:format("~p~n", [catch spawn(not_a_fun)]),
    io:format("~p~n", [element(1, catch spawn_opt(fun() -> ok end, [bad]))]).
