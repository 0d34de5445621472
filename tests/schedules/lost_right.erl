-module(lost_right).
-export([main/0]).

%% Two processes count the same.
main() ->
    ets:new(t, [named_table, public]),
    ets:insert(t, {n, 0}),
    Ms = [spawn_monitor(fun add/0) || _ <- [1, 2]],
    [receive {'DOWN', R, process, P, _} -> ok end || {P, R} <- Ms],
    halt(case ets:lookup(t, n) of [{n, 2}] -> 0; _ -> 1 end).

add() ->
    ets:update_counter(t, n, 1).
