%% The process dictionary is a root of every collection, also of one that reserves words for a
%% binary construction and the terms after it. @stress @shared
-module(dictionary_as_root).
-export([main/0, id/1]).

main() ->
    Ps = [spawn_monitor(fun() -> process(I) end) || I <- lists:seq(1, 300)],
    io:format("~p~n", [lists:usort([receive {'DOWN', R, process, _, Why} -> Why end || {_, R} <- Ps])]).

process(I) ->
    K = ?MODULE:id(k), T = ?MODULE:id("tail"),
    [put({key, N}, {K, [K, a, {K}], T}) || N <- lists:seq(1, I rem 8)],
    put(key, {K, [K, a, {K}], T}),
    loop(20 + I rem 7),
    % The others run meanwhile, in memory that may have been this process's.
    receive after 20 -> ok end,
    loop(20).

loop(0) -> ok;
loop(X) ->
    Y = ?MODULE:id(X),
    _ = ?MODULE:id({<<X:32, 7:8>>,
        {Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
         Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
         Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
         Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
         Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
         Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
         Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
         Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y}}),
    case get(key) of
        {k, [k, a, {k}], "tail"} -> loop(X - 1);
        Other -> exit({at, X, Other})
    end.

id(X) -> X.
