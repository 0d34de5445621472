%% Checks all operations on integers at the limits of their representations. @stress
-module(large_integers).
-export([main/0]).

main() ->
    Edges = [0, 1, -1, 255, 1 bsl 27, 1 bsl 31, 1 bsl 59 - 1, 1 bsl 59, -(1 bsl 59), -(1 bsl 59) - 1, 1 bsl 60, 1 bsl 63, 1 bsl 64 - 1, 1 bsl 64, -(1 bsl 64), 1 bsl 127, (1 bsl 200) - 3],
    [io:format("~p~n", [[op(O, X, Y) || Y <- Edges]]) || O <- ['+', '-', '*', 'div', 'rem', 'band', 'bor', 'bxor'], X <- Edges],
    [io:format("~p~n", [[try X bsl S catch _:R -> R end || S <- [0, 1, 59, 64, -1, -64, -300]]]) || X <- Edges],
    [io:format("~p~n", [{-X, bnot X, abs(X), X / 3, float(X), integer_to_list(X, 36)}]) || X <- Edges],
    F = fac(500),
    io:format("~p~n", [F]),
    io:format("~p~n", [F div fac(498)]),
    io:format("~p~n", [list_to_integer(integer_to_list(F)) =:= F]),
    io:format("~p~n", [[trunc(1.0e30), round(-2.5), round(2.5), floor(-1.5), ceil(-1.5), trunc(1.0e15), round(1.0e22)]]),
    io:format("~p~n", [[1 == 1.0, 1 =:= 1.0, (1 bsl 60) == float(1 bsl 60), (1 bsl 60) + 1 == float(1 bsl 60), (1 bsl 60) + 1 > float(1 bsl 60), 1 bsl 2000 > 1.0e308, -(1 bsl 2000) < -1.0e308]]),
    io:format("~p~n", [[catch float(1 bsl 2000), catch 1 rem 0, catch (1 bsl 70) div 0, catch 1.0e308 * 10, catch math:sqrt(-1), catch math:log(0)]]),
    io:format("~p~n", [[math:pow(2, 10), math:sqrt(2), math:pi(), math:atan2(1, 2), math:exp(1), math:log2(8), math:floor(1.5), math:fmod(7.5, 2)]]),
    io:format("~p~n", [[erlang:phash2(X) || X <- Edges]]),
    io:format("~p~n", [binary_to_term(term_to_binary(Edges)) =:= Edges]),
    io:format("~p~n", [lists:sort([1, 0.5, 1 bsl 70, -3, 2.5e20, -(1 bsl 65)])]).

op(O, X, Y) -> try erlang:O(X, Y) catch error:R -> R end.

fac(0) -> 1;
fac(N) -> N * fac(N - 1).
