%% Runs operations on numbers whose types the compiler does not know: all pairs of small and large
%% integers, floats and other terms, in registers of each kind, with constants, and in loops that
%% fill the heap with their results. @stress @fence
-module(arithmetic_on_mixed_numbers).
-export([main/0, id/1, sum/2, dot/3, scale/3]).

id(X) -> X.

main() ->
    Ns = numbers(),
    tell(pairs, [catches(fun() -> F(id(A), id(B)) end) || F <- operations(), A <- Ns, B <- Ns]),
    tell(registers, [catches(fun() -> registers(id(A), 2, 3, 4, 5, 6, id(B), 8) end) || A <- Ns, B <- Ns]),
    tell(same, [catches(fun() -> same(id(A)) end) || A <- Ns]),
    tell(constants, [catches(fun() -> constants(id(A)) end) || A <- Ns]),
    tell(less, [less(id(A), id(B)) || A <- Ns, B <- Ns]),
    tell(less_constants, [less(id(A)) || A <- Ns]),
    tell(guards, [guard(id(A), id(B)) || A <- Ns, B <- Ns]),
    tell(sums, [sum([1, 2.5, 1 bsl 70, -3], 0), sum(lists:duplicate(20000, 0.25), 0), sum(lists:seq(1, 20000) ++ [0.5], 0)]),
    tell(dot, dot([X / 7 || X <- lists:seq(1, 5000)], [X * 1.5 || X <- lists:seq(1, 5000)], 0.0)),
    tell(scale, lists:sum(scale([X * 0.5 || X <- lists:seq(1, 3000)], 3, []))),
    tell(quotients, lists:sum([X / Y || X <- lists:seq(1, 60), Y <- [id(1), id(2.5), id(7), id(-3)]])),
    tell(deep, deep(4000, id(1.5))),
    tell(newton, [newton(id(X), 1.0, 40) || X <- [2, 3.0, 1.0e200, 1 bsl 80]]).

tell(What, T) -> io:format("~p ~p ~p~n", [What, erlang:phash2(T), case is_list(T) of true -> lists:sublist(T, 12); false -> T end]).

catches(F) -> try F() catch C:R:S -> {C, R, element(2, hd(S))} end.

numbers() ->
    Max = (1 bsl 59) - 1,
    [0, 1, -1, 7, Max, -Max - 1, Max + 1, -Max - 2, 1 bsl 53, (1 bsl 53) + 1, -(1 bsl 53) - 1, (1 bsl 52) - 1, 1 bsl 70, -(1 bsl 70), 1 bsl 1030,
     0.0, id(-1) * 0.0, 1.0, -1.5, 0.1, 9007199254740992.0, 9007199254740994.0, -9007199254740992.0, 5.764607523034235e17, 1.1805916207174113e21,
     1.7976931348623157e308, -1.7976931348623157e308, 5.0e-324, a, [], {1.0}, "1", <<"1.0">>, #{}].

operations() -> [fun(A, B) -> A + B end, fun(A, B) -> A - B end, fun(A, B) -> A * B end, fun(A, B) -> A / B end].

registers(A, B, C, D, E, F, G, H) ->
    X = A + G, Y = G - A, Z = G * G,
    [X, Y, Z, A / G | id([B, C, D, E, F, H, A, G])].

same(A) -> {A + A, A - A, A * A, id(A) / A}.
constants(A) -> {A + 1, A - 1, 1 - A, A * 3, A + 1.5, 2.5 - A, A * 0.5, A / 2, A / 4.0, 3 / A, 1.0e308 * A}.

less(A, B) -> [A < B, A > B, A =< B, A >= B, A == B, min(A, B), max(A, B), if A < B -> l; A > B -> g; A == B -> e end].
less(A) ->
    [if A < 1 -> 1; true -> 2 end, if A >= 1.0 -> 1; true -> 2 end, if A > 0.5 -> 1; true -> 2 end, if 9007199254740993 < A -> 1; true -> 2 end,
     if A =< -1 -> 1; true -> 2 end, if A > (1 bsl 70) -> 1; true -> 2 end, if A < x -> 1; true -> 2 end].
guard(A, B) when A + B > 10 -> sum;
guard(A, B) when A * B < -1.0 -> product;
guard(A, B) when A / B > 0.25 -> quotient;
guard(A, B) when A - B == 0 -> same;
guard(_, _) -> none.

sum([X | T], S) -> sum(T, S + X);
sum([], S) -> S.
dot([X | Xs], [Y | Ys], S) -> dot(Xs, Ys, S + X * Y);
dot([], [], S) -> S.
scale([X | T], F, A) -> scale(T, F, [X * F - 1 | A]);
scale([], _, A) -> lists:reverse(A).
deep(0, X) -> X;
deep(N, X) -> X * 0.5 + deep(N - 1, X).
newton(_, G, 0) -> G;
newton(X, G, N) -> newton(X, (G + X / G) / 2, N - 1).
