%% Updates small maps and checks the values, whichever of several keys changes first. For updates
%% that need all keys: a map without changed values stays the same term, others share its keys.
%% @stress @fence
-module(map_updates).
-export([main/0, id/1]).

id(X) -> X.

same_keys(A, B) -> erts_debug:same(erts_internal:map_to_tuple_keys(A), erts_internal:map_to_tuple_keys(B)).

one(M, A) -> M#{a => A}.
one_exact(M, A) -> M#{a := A}.
two(M, A, D) -> M#{a => A, d => D}.
three(M, A, C, E) -> M#{a => A, c => C, e => E}.
three_exact(M, A, C, E) -> M#{a := A, c := C, e := E}.
numbers(M, A, B) -> M#{1 => A, 16#123456789AB => B, "text" => B}.
new(M, A, Z) -> M#{a => A, z => Z}.
registers(M, A) -> N = id(M), N#{a => N, b => A, c => A}.

told(M, N) -> {erts_debug:same(M, N), same_keys(M, N), N}.

cases(M, Old) ->
    #{a := A, c := C, d := D, e := E} = Old,
    Three = [{X, Y, Z} || X <- [A, 1], Y <- [C, 2], Z <- [E, 3]],
    [[one(M, X) || X <- [A, 1]], [told(M, one_exact(M, X)) || X <- [A, 1]],
     [two(M, X, Y) || X <- [A, 1], Y <- [D, 2]],
     [three(M, X, Y, Z) || {X, Y, Z} <- Three],
     [told(M, three_exact(M, X, Y, Z)) || {X, Y, Z} <- Three],
     [new(M, X, Z) || X <- [A, 1], Z <- [5, <<"z">>]],
     [try F() catch error:{badkey, K} -> {badkey, K} end
      || N <- [#{a => A}, #{a => A, c => C}, #{c => C, e => E}, #{}],
         F <- [fun() -> three_exact(N, A, C, E) end, fun() -> three_exact(N, 1, C, E) end, fun() -> three_exact(N, A, C, 3) end]],
     [registers(M, X) || X <- [A, {x}]]].

main() ->
    M = id(#{a => id([1]), b => 2.5, c => {c}, d => "d", e => <<"e">>}),
    N = id(#{1 => id({1}), 16#123456789AB => [b], "text" => c}),
    #{1 := One, 16#123456789AB := Wide} = N,
    Round = fun() -> {cases(M, M), [numbers(N, X, Y) || X <- [One, x], Y <- [Wide, c, y]]} end,
    First = Round(),
    io:format("~p~n", [First]),
    %% Often enough that it has machine code.
    io:format("~p~n", [[X || X <- [Round() || _ <- lists:seq(1, 300)], X =/= First]]).
