-module(lost_race).
-export([main/0]).

%% Two processes read a count, add one and write it back.
main() ->
    ets:new(t, [named_table, public]),
    ets:insert(t, {n, 0}),
    Ms = [spawn_monitor(fun add/0) || _ <- [1, 2]],
    [receive {'DOWN', R, process, P, _} -> ok end || {P, R} <- Ms],
    halt(case ets:lookup(t, n) of [{n, 2}] -> 0; _ -> 1 end).

add() ->
    [{n, N}] = ets:lookup(t, n),
    ets:insert(t, {n, N + 1}).
