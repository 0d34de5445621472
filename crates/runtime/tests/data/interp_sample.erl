%% What the interpreter is compared with stock on: every exported function t_*/0 gives a term.
-module(interp_sample).
-compile([nowarn_export_all, export_all]).

t_fib() -> fib(20).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

t_list() -> rev([1, 2, a, "b", {c}, [d | e]], []).
rev([H | T], A) -> rev(T, [H | A]);
rev([], A) -> A.

t_seq() -> sum(seq(1, 100000), 0).
seq(N, M) when N > M -> [];
seq(N, M) -> [N | seq(N + 1, M)].
sum([H | T], A) -> sum(T, A + H);
sum([], A) -> A.

t_select() -> [sel(X) || X <- [a, b, c, 1, 5, 100, 3, 18446744073709551616, 2.5, "x", {}, {1}, {1, 2}]].
sel(a) -> 1;
sel(b) -> 2;
sel(1) -> one;
sel(3) -> three;
sel(5) -> five;
sel(18446744073709551616) -> big;
sel(2.5) -> float;
sel({}) -> t0;
sel({_}) -> t1;
sel({_, X}) -> X;
sel(_) -> other.

t_table() -> [tab(X) || X <- [0, 1, 2, 3, 4, 5, 6, -1, 7]].
tab(0) -> z; tab(1) -> o; tab(2) -> t; tab(3) -> th; tab(4) -> f; tab(5) -> fi; tab(6) -> s; tab(_) -> no.

t_big() -> fact(60).
fact(0) -> 1;
fact(N) -> N * fact(N - 1).

t_arith() ->
    [op(O, A, B) || O <- ['+', '-', '*', 'div', 'rem', 'band', 'bor', 'bxor', 'bsl', 'bsr'],
                    {A, B} <- [{7, 3}, {-7, 3}, {1 bsl 58, 1 bsl 58}, {-(1 bsl 59), -1}, {1 bsl 80, 17}, {5, 0}, {x, 1}, {-5, 70}]].
op(O, A, B) ->
    try op1(O, A, B) catch C:R -> {C, R} end.
op1('+', A, B) -> A + B;
op1('-', A, B) -> A - B;
op1('*', A, B) -> A * B;
op1('div', A, B) -> A div B;
op1('rem', A, B) -> A rem B;
op1('band', A, B) -> A band B;
op1('bor', A, B) -> A bor B;
op1('bxor', A, B) -> A bxor B;
op1('bsl', A, B) -> A bsl B;
op1('bsr', A, B) -> A bsr B.

t_float() -> [fl(X) || X <- [1, 2.5, 1 bsl 70]].
fl(X) when is_float(X); is_integer(X) -> (X * 2.0 + 1.5) / 3.0 - X.

t_float_fail() -> try flx(1.0e308) catch error:E -> E end.
flx(X) -> X * 1.0e10 + 1.0.

t_try() -> [t(X) || X <- [ok, throw, error, exit, badmatch, case_clause, if_clause, fc, try_clause]].
t(X) ->
    try raise(X) of
        fine -> fine
    catch
        C:R -> {caught, C, R}
    after
        ok
    end.
raise(ok) -> fine;
raise(throw) -> throw_it();
raise(error) -> bad + id(1);
raise(exit) -> {no} = id({yes});
raise(badmatch) -> {a, _} = id({b, 1});
raise(case_clause) -> case id(5) of 6 -> x end;
raise(if_clause) -> X = id(1), if X > 2 -> y end;
raise(fc) -> only(id(2));
raise(try_clause) -> try id(1) of 2 -> x catch _:_ -> y end.
throw_it() -> id(a) - 1.
only(1) -> 1.
id(X) -> X.

t_trace() ->
    try deep(3)
    catch error:R:St -> {R, [{M, F, A, [L || {line, L} <- I]} || {M, F, A, I} <- St, M =:= ?MODULE]}
    end.
deep(0) -> only(id(7)), ok;
deep(N) -> X = deep(N - 1), {X}.

t_catch() -> [(catch only(X)) =:= 1 || X <- [1]] ++ [catch_value(catch raise(badmatch))].
catch_value({'EXIT', {R, _}}) -> R.

t_reraise() ->
    try
        try deep(2) catch error:function_clause:St -> again(St) end
    catch C:R -> {C, R} end.
again(_) -> id([]) + 1.

t_after() ->
    try try only(2) after id(done) end catch C:R -> {C, R} end.

t_funs() ->
    A = id(10),
    F = fun(X) -> X + A end,
    G = fun Loop(0, Acc) -> Acc; Loop(N, Acc) -> Loop(N - 1, [F(N) | Acc]) end,
    {map(F, [1, 2, 3]), G(5, []), map(fun ?MODULE:id/1, [x, y]), map(fun fact/1, [3, 4])}.
map(F, [H | T]) -> [F(H) | map(F, T)];
map(_, []) -> [].

t_badfun() -> [bf(X) || X <- [x, fun(_) -> ok end, fun ?MODULE:id/1]].
bf(F) -> try F(1, 2) catch error:{T, _} -> T; error:T -> T end.

t_undef() -> try ?MODULE:nothing(1) catch error:E -> E end.

t_apply() -> {apply_it(?MODULE, id, [1]), apply_it(?MODULE, op1, ['+', 1, 2]), catch_tag(?MODULE, 17)}.
apply_it(M, F, A) -> apply(M, F, A).
catch_tag(M, F) -> try M:F(1) catch error:E -> E end.

t_apply2() -> apply(id(fun(X, Y) -> {Y, X} end), [1, 2]).

t_maps() ->
    M = #{a => 1, "k" => 2, {x} => 3},
    M2 = M#{a := 5, b => 6},
    #{a := V, b := W} = id(M2),
    {M, M2, V, W, has(M2), has(#{}), (try (id(M))#{zz := 1} catch error:E -> E end), (try (id(x))#{zz => 1} catch error:E2 -> E2 end)}.
has(#{b := _}) -> yes;
has(_) -> no.

t_bigmap() ->
    M = bm(200, #{}),
    get_all(200, M, 0).
bm(0, M) -> M;
bm(N, M) -> bm(N - 1, M#{N => N * N}).
get_all(0, _, A) -> A;
get_all(N, M, A) -> #{N := V} = M, get_all(N - 1, M, A + V).

-record(r, {a, b = 2, c}).
t_records() ->
    R = #r{a = id(1)},
    S = R#r{c = 3, b = id(9)},
    {R, S, S#r.c, (try (id({x}))#r.a catch error:E -> E end)}.

t_bits() ->
    B = <<1, 2:4, 3:12/little, "abc", 1.5/float, 300/utf8, 70000/utf16, -1:3>>,
    <<A, X:4, Y:12/little, Abc:3/binary, F/float, U/utf8, U16/utf16, Z:3/signed, Rest/bits>> = id(B),
    {B, A, X, Y, Abc, F, U, U16, Z, Rest}.

t_bitmatch() -> [bmatch(X) || X <- [<<1, 2, 3>>, <<2, 5, "hello", 9>>, <<3:2, 1:1>>, <<>>, <<"xyz">>, x, <<4, 0:100>>]].
bmatch(<<1, R/binary>>) -> {one, R};
bmatch(<<2, N, S:N/binary, T/bits>>) -> {two, S, T};
bmatch(<<3:2, R/bits>>) -> {three, R};
bmatch(<<"xy", C>>) -> {c, C};
bmatch(<<4, N:100>>) -> N;
bmatch(<<>>) -> empty;
bmatch(_) -> none.

t_bitloop() -> {bytes(<<"hello world">>, []), dup(<<"abc">>, <<>>, 100), << <<(X + 1)>> || <<X>> <= <<"abc">> >>, [X || <<X:3>> <= <<255, 1, 7>>]}.
bytes(<<C, R/binary>>, A) -> bytes(R, [C | A]);
bytes(<<>>, A) -> A.
dup(_, A, 0) -> A;
dup(B, A, N) -> dup(B, <<A/binary, B/binary, N>>, N - 1).

t_bitfail() -> [bfail(X) || X <- [{a, 8}, {1, -1}, {1, x}, {<<1:3>>, bin}, {1.5, f}, {1114112, u}]].
bfail({V, bin}) -> try <<V/binary>> catch error:E -> E end;
bfail({V, f}) -> try <<V:17/float>> catch error:E -> E end;
bfail({V, u}) -> try <<V/utf8>> catch error:E -> E end;
bfail({V, S}) -> try <<V:S>> catch error:E -> E end.

t_gc() -> gc(2000, seq(1, 50), []).
gc(0, L, Acc) -> {sum(L, 0), len(Acc, 0)};
gc(N, L, Acc) -> gc(N - 1, map(fun(X) -> X + 0 end, L), case N rem 10 of 0 -> [L, {N, L}, <<N:64>>]; _ -> [N | Acc] end).
len([_ | T], N) -> len(T, N + 1);
len([], N) -> N.

t_eq() -> [{A == B, A =:= B, A < B, A >= B, A /= B, A =/= B} || A <- vals(), B <- vals()].
vals() -> [1, 1.0, a, "x", <<"x">>, {1}, {1.0}, #{}, [], 1 bsl 70, -3].

t_guards() -> [g(X) || X <- [1, 1.5, a, [], [1], {}, <<>>, <<1:1>>, #{}, fun id/1, true, 1 bsl 99, "s"]].
g(X) -> [T || {T, true} <- [{int, is_integer(X)}, {fl, is_float(X)}, {num, is_number(X)}, {atom, is_atom(X)}, {list, is_list(X)},
         {tuple, is_tuple(X)}, {bin, is_binary(X)}, {bits, is_bitstring(X)}, {map, is_map(X)}, {fn, is_function(X)},
         {f1, is_function(X, 1)}, {bool, is_boolean(X)}, {pid, is_pid(X)}, {ref, is_reference(X)}, {port, is_port(X)}]].

t_mutual() -> even(100001).
even(0) -> true;
even(N) -> odd(N - 1).
odd(0) -> false;
odd(N) -> even(N - 1).
