%% A spin lock: its holder may be preempted or late, and releases it all the same.
-module(spin_right).
-export([main/0]).

main() ->
    L = atomics:new(2, []),
    Enter = fun() -> enter(L), atomics:add(L, 2, 1), atomics:put(L, 1, 0) end,
    Ms = [spawn_monitor(Enter) || _ <- [1, 2, 3]],
    [receive {'DOWN', R, _, _, _} -> ok end || {_, R} <- Ms],
    halt(case atomics:get(L, 2) of 3 -> 0; _ -> 1 end).

enter(L) ->
    case atomics:get(L, 1) =:= 0 andalso atomics:compare_exchange(L, 1, 0, 1) of
        ok -> ok;
        _ -> erlang:yield(), enter(L)
    end.
