%% Classic programs of one process. bench/1 runs a program with its size and gives milliseconds;
%% main/0 all of them.
-module(classic).
-export([run/2, names/0, main/0]).

names() -> [{fib, 33}, {tak, 28}, {nrev, 60000}, {queens, 10}, {nbody, 300000}, {bin_parse, 100}, {bin_build, 60},
            {maps_small, 2000000}, {maps_large, 150000}, {sort, 60}, {fun_fold, 150}, {tuple_loop, 3000000}, {exceptions, 400000},
            {bignum, 3000}, {strings, 200}, {select, 2000000}].

main() ->
    [begin run(F, N), T = ms(F, N), io:format("~s ~b ~.1f~n", [F, N, T]) end || {F, N} <- names()].
ms(F, N) ->
    lists:min([begin {T, _} = timer:tc(fun() -> run(F, N) end), T / 1000 end || _ <- [1, 2, 3]]).

run(fib, N) -> fib(N);
run(tak, N) -> tak(N, 16, 8);
run(nrev, N) -> nrev_n(N, seq(1, 30), []);
run(queens, N) -> length(queens(N));
run(nbody, N) -> nbody(N);
run(bin_parse, N) -> bin_parse(N, mk_bin(20000, <<>>), 0);
run(bin_build, N) -> bin_build(N, 0);
run(maps_small, N) -> maps_small(N, #{a => 0, b => 0, c => 0}, 0);
run(maps_large, N) -> maps_large(N, #{}, N);
run(sort, N) -> sorts(N, rnd(5000, 12345, []), 0);
run(fun_fold, N) -> fold_n(N, seq(1, 20000), 0);
run(tuple_loop, N) -> tuple_loop(N, {state, 0, 0, []});
run(exceptions, N) -> exceptions(N, 0);
run(bignum, N) -> fact(N);
run(strings, N) -> strings(N, seq(32, 126), 0);
run(select, N) -> select(N, 0).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

tak(X, Y, Z) when Y < X -> tak(tak(X - 1, Y, Z), tak(Y - 1, Z, X), tak(Z - 1, X, Y));
tak(_, _, Z) -> Z.

seq(N, M) when N > M -> [];
seq(N, M) -> [N | seq(N + 1, M)].

nrev_n(0, _, A) -> A;
nrev_n(N, L, _) -> nrev_n(N - 1, L, nrev(L)).
nrev([H | T]) -> app(nrev(T), [H]);
nrev([]) -> [].
app([H | T], L) -> [H | app(T, L)];
app([], L) -> L.

queens(N) -> queens(N, N).
queens(0, _) -> [[]];
queens(K, N) -> [[Q | B] || B <- queens(K - 1, N), Q <- seq(1, N), safe(Q, 1, B)].
safe(_, _, []) -> true;
safe(Q, D, [Q1 | T]) -> Q =/= Q1 andalso Q =/= Q1 + D andalso Q =/= Q1 - D andalso safe(Q, D + 1, T).

nbody(N) -> nbody(N, {0.0, 0.0, 0.0}, {0.1, 0.2, 0.3}, {1.0, 2.0, 3.0}).
nbody(0, P, V, _) -> {P, V};
nbody(N, {X, Y, Z}, {VX, VY, VZ}, {BX, BY, BZ} = B) ->
    DX = X - BX, DY = Y - BY, DZ = Z - BZ,
    D2 = DX * DX + DY * DY + DZ * DZ + 0.01,
    M = 0.01 / (D2 * math:sqrt(D2)),
    VX1 = VX - DX * M, VY1 = VY - DY * M, VZ1 = VZ - DZ * M,
    nbody(N - 1, {X + 0.01 * VX1, Y + 0.01 * VY1, Z + 0.01 * VZ1}, {VX1, VY1, VZ1}, B).

mk_bin(0, A) -> A;
mk_bin(N, A) -> mk_bin(N - 1, <<A/binary, (N band 255), N:16, (N rem 7):4, 3:4>>).
bin_parse(0, _, A) -> A;
bin_parse(N, B, A) -> bin_parse(N - 1, B, A + parse(B, 0)).
parse(<<T, L:16, X:4, _:4, R/binary>>, A) when T > 127 -> parse(R, A + L + X);
parse(<<_, L:16/little, X:8, R/binary>>, A) -> parse(R, A + L - X);
parse(<<>>, A) -> A.
bin_build(0, A) -> A;
bin_build(N, A) -> bin_build(N - 1, A + byte_size(mk_bin(20000, <<>>))).

maps_small(0, M, A) -> {M, A};
maps_small(N, #{a := X, b := Y} = M, A) -> maps_small(N - 1, M#{a := X + 1, c := Y}, A + X).
maps_large(0, M, N) -> look(N, M, 0);
maps_large(N, M, S) -> maps_large(N - 1, M#{N => {N, N}}, S).
look(0, _, A) -> A;
look(N, M, A) -> #{N := {X, _}} = M, look(N - 1, M, A + X).

rnd(0, _, A) -> A;
rnd(N, S, A) -> S1 = (S * 1103515245 + 12345) band 16#7fffffff, rnd(N - 1, S1, [S1 | A]).
sorts(0, _, A) -> A;
sorts(N, L, A) -> sorts(N - 1, L, A + hd(qsort(L)) + hd(msort(L))).
qsort([]) -> [];
qsort([P | T]) -> qsort([X || X <- T, X < P]) ++ [P | qsort([X || X <- T, X >= P])].
msort([]) -> [];
msort([X]) -> [X];
msort(L) -> {A, B} = halve(L, [], []), merge(msort(A), msort(B), []).
halve([A, B | T], X, Y) -> halve(T, [A | X], [B | Y]);
halve([A], X, Y) -> {[A | X], Y};
halve([], X, Y) -> {X, Y}.
merge([A | T], [B | _] = L, R) when A =< B -> merge(T, L, [A | R]);
merge(L, [B | T], R) -> merge(L, T, [B | R]);
merge([], L, R) -> rev(R, L);
merge(L, [], R) -> rev(R, L).
rev([H | T], A) -> rev(T, [H | A]);
rev([], A) -> A.

fold_n(0, _, A) -> A;
fold_n(N, L, A) ->
    K = N,
    fold_n(N - 1, L, A + foldl(fun(X, S) -> X + S + K end, 0, map(fun(X) -> X * 2 end, L))).
foldl(F, A, [H | T]) -> foldl(F, F(H, A), T);
foldl(_, A, []) -> A.
map(F, [H | T]) -> [F(H) | map(F, T)];
map(_, []) -> [].

tuple_loop(0, S) -> S;
tuple_loop(N, {state, A, B, L}) when A > 1000 -> tuple_loop(N - 1, {state, 0, B + 1, L});
tuple_loop(N, {state, A, B, L} = S) -> tuple_loop(N - 1, setelement(2, S, A + element(3, {A, B, 1}) + length(L))).

exceptions(0, A) -> A;
exceptions(N, A) -> exceptions(N - 1, try thrower(N) catch throw:X -> A + X; error:_ -> A end).
thrower(N) when N band 1 =:= 0 -> throw(N);
thrower(N) -> N.

fact(0) -> 1;
fact(N) -> N * fact(N - 1).

strings(0, _, A) -> A;
strings(N, L, A) -> strings(N - 1, L, A + length(words(dup(100, L), [], []))).
dup(0, _) -> [];
dup(N, L) -> L ++ dup(N - 1, L).
words([C | T], W, A) when C =:= $\s; C =:= $,; C =:= $. -> words(T, [], [rev(W, []) | A]);
words([C | T], W, A) when C >= $a, C =< $z -> words(T, [C - 32 | W], A);
words([C | T], W, A) -> words(T, [C | W], A);
words([], W, A) -> [W | A].

select(0, A) -> A;
select(N, A) -> select(N - 1, A + sel(N rem 23) + sel2(N band 7)).
sel(0) -> 1; sel(1) -> 3; sel(2) -> 7; sel(5) -> 2; sel(7) -> 9; sel(11) -> 4; sel(12) -> 5; sel(22) -> 8; sel(_) -> 0.
sel2(X) -> case tag(X) of alpha -> 1; beta -> 2; gamma -> 3; delta -> 4; {eps, Y} -> Y; _ -> 0 end.
tag(0) -> alpha; tag(1) -> beta; tag(2) -> gamma; tag(3) -> delta; tag(4) -> {eps, 5}; tag(X) -> X.
