%% The external size of a deep term takes time in proportion to its depth.
-module(external_size_of_deep_terms).
-export([main/0]).

main() ->
    [Small, Large] = [deep(N) || N <- [200000, 2000000]],
    io:format("~w ~w~n", [erlang:external_size(Small) > 1000000, erlang:external_size({Large, fun() -> Small end}) > 10000000]),
    %% Ten times as much: a hundred times the time if all that is open was searched again and again.
    Ratio = time(Large) / max(1, time(Small)),
    io:format("~s~n", [case Ratio < 40 of true -> "in proportion"; false -> io_lib:format("~.1f times", [Ratio]) end]).

deep(N) -> lists:foldl(fun(X, A) -> {X, A} end, nil, lists:seq(1, N)).

time(X) -> lists:min([element(1, timer:tc(fun() -> erlang:external_size(X) end)) || _ <- [1, 2, 3]]).
