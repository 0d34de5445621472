%% Machine code keeps floats in registers over several operations: conversions, results that are not
%% numbers, and the code that follows each. @stress
-module(compiled_floats).
-export([main/0]).

main() ->
    V = [0, 1, -3, 1 bsl 62, 1 bsl 1030, 0.0, -0.0, 1.5, 1.0e308, -1.0e308, 4.9e-324, a],
    rounds(V, 10),
    [io:format("~p ~p~n~p~n", [A, B, all(A, B)]) || A <- V, B <- V],
    io:format("~p~n", [walk(1.0, 0.0, 500)]),
    io:format("~p~n", [t(fun() -> grow(1.0) end)]).

rounds(_, 0) -> ok;
rounds(V, N) -> [all(A, B) || A <- V, B <- V], rounds(V, N - 1).

all(A, B) ->
    [t(fun() -> chain(A, B) end), t(fun() -> long(A, B) end), t(fun() -> mixed(A, B) end), t(fun() -> choice(A, B) end), t(fun() -> nine(A, B) end)].

chain(A, B) -> (A + 1.0) * (B - 2.0) / 3.0.
long(A, B) ->
    C = A * 1.0, D = B * 1.0,
    {C + D, C - D, C * D, -C, C * C + D * D, float(A)}.
mixed(A, B) -> X = A + 0.5, Y = B * X, {X, Y, Y + X, trunc(X)}.
choice(A, B) ->
    X = A * 2.0,
    Y = if X > 3.0 -> X - 1.0; true -> X + 1.0 end,
    Z = case B of 0 -> Y * 2.0; _ -> Y / B end,
    Z + X.
%% More than the vector registers that are used.
nine(A, B) ->
    C = float(A), D = float(B),
    (C + D) * (C - D) + (C * 2.0 - D) * (D * 3.0 - C) + ((C + 1.0) * (D + 2.0) - (C + 3.0) * (D + 4.0)) * ((C + 5.0) / 7.0 - ((C + 1.0) * (D - 9.0) - (D + 8.0) * (C - 3.0))).

walk(_, S, 0) -> S;
walk(X, S, N) -> walk(X * 1.0001 + 0.25, S + X / 3.0, N - 1).
grow(X) -> grow(X * 1.0e10).

t(F) -> try F() catch C:R -> {C, R} end.
