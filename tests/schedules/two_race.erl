%% Two races of their own: the program fails in two ways.
-module(two_race).
-export([main/0]).

main() ->
    T = ets:new(t, [public]),
    ets:insert(T, [{a, 0}, {b, 0}]),
    Ms = [spawn_monitor(fun() -> add(T, K) end) || K <- [a, a, b, b]],
    [receive {'DOWN', R, _, _, _} -> ok end || {_, R} <- Ms],
    case ets:lookup(T, a) of [{a, 2}] -> ok; _ -> halt(3) end,
    case ets:lookup(T, b) of [{b, 2}] -> ok; _ -> halt(4) end,
    halt(0).

add(T, K) ->
    [{K, N}] = ets:lookup(T, K),
    ets:insert(T, {K, N + 1}).
