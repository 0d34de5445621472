%% The external size of a deep term takes time in proportion to its depth. If all that is open were
%% searched again and again, this would take more than a minute.
%% @seconds 30
-module(external_size_of_deep_terms).
-export([main/0]).

main() ->
    [Small, Large] = [deep(N) || N <- [200000, 4000000]],
    io:format("~w~n", [[erlang:external_size(T) || T <- [Small, Large, {Large, Large}]]]),
    io:format("~w~n", [erlang:external_size({Large, fun() -> Small end}) > erlang:external_size(Large)]).

deep(N) -> lists:foldl(fun(X, A) -> {X, A} end, nil, lists:seq(1, N)).
