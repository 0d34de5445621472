%% Arithmetic on integers and floats.
-module(numbers).
-export([whole/2, bits/2, guard/2, negate/1, float/2, mixed/1, loop/2]).

whole(X, Y) -> {X + Y, X - Y, X * Y, X div Y, X rem Y}.
bits(X, Y) -> {X band Y, X bor Y, X bxor Y, X bsl Y, X bsr Y, bnot X}.
guard(X, Y) when X + Y > 10, X rem 2 =:= 0 -> yes;
guard(_, _) -> no.
negate(X) -> -X.
float(X, Y) when is_float(X), is_float(Y) -> -((X + Y) * (X - Y) / 2.0).
mixed(X) -> X / 3 + 1.0.
loop(0, A) -> A;
loop(N, A) -> loop(N - 1, A * 2).
