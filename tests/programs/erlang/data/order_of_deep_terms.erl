%% Compares long and deep terms that share a long beginning; whatever follows it decides.
%% @stress @shared
-module(order_of_deep_terms).
-export([main/0]).

main() ->
    Ends = [[], tail, 1, 1.0, 2, [1], [1.0], [1 | x], [[]], [{}], [{1, a}], [{1.0, b}], [<<"a">>], #{}, #{a => 1}, <<"z">>, {}, [[1, 2], 3], [#{1 => 2}], [#{1.0 => 2}]],
    [io:format("~w: ~w~n", [N, [order(N, A, B) || A <- Ends, B <- Ends]]) || N <- [1, 2, 3, 40, 1000]],
    Kinds = [fun left/2, fun right/2, fun list/2, fun map/2, fun wide/2],
    [io:format("~w ~w~n", [N, [sign(F(N, A), F(N, B)) || F <- Kinds, A <- Ends, B <- Ends]]) || N <- [1, 3, 50, 3000]],
    Maps = [maps:from_list([{I, {I, V}} || I <- lists:seq(1, N)]) || N <- [31, 33, 200], V <- [1, 1.0, 2]] ++
        [maps:from_list([{{K, I}, I} || I <- lists:seq(1, 40)]) || K <- [1, 1.0, a]],
    io:format("~w~n", [[sign(left(N, A), left(N, B)) || N <- [0, 5], A <- Maps, B <- Maps]]),
    Shared = lists:seq(1, 2000),
    io:format("~w~n", [[sign(copy(100) ++ Shared, copy(100) ++ Shared), sign([a | Shared], [a | Shared]), sign([Shared | 1], [Shared | 1.0])]]).

copy(N) -> lists:seq(1, N).

order(N, A, B) -> sign(lists:seq(1, N) ++ A, lists:seq(1, N) ++ B).

left(0, X) -> X;
left(N, X) -> {left(N - 1, X), N}.
right(0, X) -> X;
right(N, X) -> {N, right(N - 1, X)}.
list(0, X) -> X;
list(N, X) -> [list(N - 1, X), N].
map(0, X) -> X;
map(N, X) -> #{a => map(N - 1, X), b => N}.
wide(N, X) -> list_to_tuple(lists:seq(1, N) ++ [X]).

sign(A, B) -> {if A < B -> -1; A > B -> 1; true -> 0 end, A == B, A =:= B, if A =< B -> le; true -> gt end}.
