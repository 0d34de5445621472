%% More of what the interpreter is compared with stock on, with much variety in operands and registers.
-module(interp_more).
-compile([nowarn_export_all, export_all]).
id(X) -> X.

t_regs() -> regs(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).
regs(A, B, C, D, E, F, G, H, I, J) ->
    X = id(A), Y = id(B), Z = id({C, D}), W = id([E, F | G]), V = id(#{h => H, I => J}),
    {J, I, H, G, F, E, D, C, B, A, X, Y, Z, W, V, A + B * C - D, swap(A, B), swap3(A, B, C)}.
swap(A, B) -> sw(B, A).
swap3(A, B, C) -> sw3(C, A, B).
sw(A, B) -> {A, B}.
sw3(A, B, C) -> [A, B | C].

t_atoms() -> [sel(A) || A <- [a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, zz, 5, []]].
sel(a01) -> 1; sel(a02) -> 2; sel(a03) -> 3; sel(a04) -> 4; sel(a05) -> 5; sel(a06) -> 6; sel(a07) -> 7;
sel(a08) -> 8; sel(a09) -> 9; sel(a10) -> 10; sel(a11) -> 11; sel(a12) -> 12; sel(a13) -> 13; sel(_) -> none.

t_ints() -> [isel(A) || A <- [0, 1, 17, 1000, -5, 1 bsl 59 - 1, 1 bsl 59, -(1 bsl 70), 3.0, x]].
isel(0) -> z; isel(17) -> a; isel(1000) -> b; isel(-5) -> c; isel(576460752303423487) -> d;
isel(576460752303423488) -> e; isel(-1180591620717411303424) -> f; isel(3.0) -> g; isel(_) -> none.

t_tuples() -> [tsel(T) || T <- [{}, {1}, {a, 2}, {b, 2}, {a, 2, 3}, {c, 1, 2, 3}, {x, 1, 2, 3, 4}, [], a, #{}]].
tsel({}) -> 0; tsel({X}) -> {one, X}; tsel({a, X}) -> {a, X}; tsel({b, X}) -> {b, X}; tsel({a, X, Y}) -> {X, Y};
tsel({c, X, Y, Z}) -> [X, Y, Z]; tsel(T) when is_tuple(T), tuple_size(T) > 4 -> big; tsel(_) -> none.

t_wide() ->
    T = id({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}),
    {A, B, _, _, C, _, D, E, F, _, _, G, H, _, _, _, _, I, J, K} = T,
    {K, J, I, H, G, F, E, D, C, B, A, setelement(5, T, x), erlang:append_element(T, y), element(id(7), T)}.

-record(big, {a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8}).
t_record() ->
    R = id(#big{c = id(x)}),
    R1 = R#big{a = id(1)}, R2 = R1#big{h = id(z), d = id([1]), b = R},
    {R1, R2, R2#big.d, is_record(R2, big), is_record(id(x), big), is_record(R2, big, 9), R2#big{a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8}}.

t_lists() ->
    L = [X * Y || X <- seq(1, 12), Y <- seq(1, X), X rem 2 =:= Y rem 2],
    {L, [X || {X, _} <- [{1, 2}, 3, {4, 5}]], [X || X <- L, X > 20, X < 50], lists:reverse(L), lists:keyfind(2, 1, [{1, a}, {2, b}]),
     [A || [A | _] <- [[1], [], [2, 3]]], L -- [1, 4], hd(L), tl([1, 2]), length(L), lists:member(9, L)}.
seq(N, M) when N > M -> [];
seq(N, M) -> [N | seq(N + 1, M)].

t_floats() -> [fl(A, B) || A <- [1, 2.5, -3, 1 bsl 70, 0.0, -0.0], B <- [2, 0.5, -7.25]].
fl(A, B) ->
    X = A * 1.0, Y = B + 0.0,
    {X + Y, X - Y, X * Y, X / Y, -X, (X + 1.0) * (Y - 2.0) / 3.0, A / B, X < Y, X == Y, A =:= B, trunc(X), round(Y), abs(X), float(A)}.
t_float_loop() -> floop(1000, 0.0, 1.0).
floop(0, A, B) -> {A, B};
floop(N, A, B) -> floop(N - 1, A + B / N, B * 1.001 - 0.0005).

t_maps() ->
    M0 = #{}, K = id(k),
    M1 = M0#{a => 1, K => 2, {x, y} => 3, "str" => 4, 1.5 => 5, 7 => 6, (1 bsl 70) => 7},
    M2 = M1#{a := id(9), K := id(8)},
    #{a := A, k := KV, 7 := Seven, {x, y} := XY} = id(M2),
    F = fun(#{a := 1}) -> one; (#{a := X, k := _}) -> {two, X}; (#{}) -> none; (_) -> nomap end,
    {M1, M2, A, KV, Seven, XY, [F(M) || M <- [M1, M2, #{}, x]], maps:size(M2), is_map_key(a, M2), map_get(K, M2),
     case M2 of #{K := Val, nokey := _} -> Val; #{K := Val} -> {only, Val} end, M1 =:= M2, M1 == M2#{a := 1, k := 2}, M1 < M2}.
t_large_map() ->
    M = lm(100, #{}),
    M1 = M#{5 := five, 50 => fifty, new => 1, {x} => 2},
    #{5 := A, 99 := B, new := C} = M1,
    {A, B, C, maps:size(M1), has(M1, 100), has(M1, 101), M1 =:= M, maps:get(77, M1), (maps:remove(5, M1)) =:= maps:remove(5, M1#{5 => x}),
     try (id(M1))#{nokey := 1} catch error:E -> E end}.
lm(0, M) -> M;
lm(N, M) -> lm(N - 1, M#{N => {N, N * N}}).
has(M, K) -> case M of #{K := _} -> true; _ -> false end.

t_funs() ->
    A = id(1), B = id(2), C = id(3),
    F0 = fun() -> {A, B, C} end, F3 = fun(X, Y, Z) -> {X, Y, Z, A, B, C} end,
    F1 = fun(X) -> fun(Y) -> fun(Z) -> [A, X, Y, Z] end end end,
    {F0(), F3(x, y, z), ((F1(7))(8))(9), (fun id/1)(5), (fun ?MODULE:id/1)(6), is_function(F3, 3), is_function(F3, 2), is_function(id(x)),
     [F(10) || F <- [fun(X) -> X + A end, fun(X) -> X - B end, fun erlang:abs/1, fun(X) when X > 100 -> big; (_) -> small end]],
     fact(30), F0 =:= F0, F0 == F3, apply(F3, [1, 2, 3]), apply(fun erlang:'+'/2, [1, 2])}.
fact(N) -> F = fun G(0) -> 1; G(K) -> K * G(K - 1) end, F(N).

t_cmp() -> [{A < B, A =< B, A > B, A >= B, A == B, A /= B, A =:= B, A =/= B, ifs(A, B)} || A <- vals(), B <- vals()].
vals() -> [0, 1, -1, 1.0, 0.0, 1 bsl 60, -(1 bsl 60), 1.0e20, a, b, {}, {1}, {1.0}, {a, b}, [], [1], [a | b], "abc", <<>>, <<1>>, <<1:3>>, #{}, #{a => 1}, #{a => 1.0}, fun id/1].
ifs(A, B) ->
    if A < B -> lt; A == B, A =:= B -> same; A == B -> eq; true -> gt end.
t_cmp_const() -> [{X < 5, X >= 5, X =:= 5, X == 5, X /= 5, 5 < X, X == a, X =:= [], X =/= <<"x">>, X == 5.0, X =:= "abc"} || X <- vals()].

t_bool() -> [{A and B, A or B, A xor B, not A, A andalso B, A orelse B, bg(A, B)} || A <- [true, false], B <- [true, false]].
bg(A, B) when A, not B -> a; bg(A, B) when A xor B -> b; bg(A, B) when A and B -> c; bg(_, _) -> d.
t_guards() -> [g(X, Y) || X <- [1, a, "l", {1, 2}, <<1, 2>>, 2.5, #{a => 1}], Y <- [1, 2, x]].
g(X, Y) when is_integer(X), X + Y > 2 -> {sum, X + Y};
g(X, Y) when is_list(X), length(X) =:= Y -> len;
g(X, Y) when is_tuple(X), element(Y, X) =:= 2 -> el;
g(X, Y) when is_binary(X), byte_size(X) - Y =:= 0 -> bytes;
g(X, Y) when is_float(X), trunc(X) rem Y =:= 0; is_map_key(a, X), Y =:= x -> fm;
g(X, Y) when is_atom(X) andalso (is_atom(Y) orelse Y > 1) -> at;
g(X, Y) when (X bsl Y) > 0 -> shift;
g(_, _) -> none.

t_bits_int() ->
    B = <<16#12, 16#34, 16#56, 16#78, 16#9a, 16#bc, 16#de, 16#f0, 1, 2, 3, 4, 5, 6, 7, 8, 9>>,
    <<A:1, A2:3, A3:4/signed, A4:16/little, A5:24/big-signed, A6:32/little-signed, A7:7, R/bits>> = id(B),
    N = id(13),
    <<C1:N, C2:N/little, C3:N/signed, C4:(N * 2)/little-signed, _/bits>> = id(B),
    <<D1:64, D2:64/little-signed, _:8>> = id(B),
    <<E1:100, _/bits>> = id(B), <<E2:100/little-signed, _/bits>> = id(B),
    {A, A2, A3, A4, A5, A6, A7, R, C1, C2, C3, C4, D1, D2, E1, E2}.
t_bits_build() ->
    [ [<<V:S>>, <<V:S/little>>, <<1:1, V:S>>, <<1:3, V:S/little, 2:5>>] || V <- [0, 1, -1, 255, 65536, -123456789, 1 bsl 80, -(1 bsl 65)], S <- [0, 1, 7, 8, 9, 16, 31, 32, 63, 64, 65, 100]].
t_bits_float() ->
    [begin B = <<F/float, F:32/float, F:16/float, F/little-float>>, <<A/float, A1:32/float, A2:16/float, A3/little-float>> = id(B), {B, A, A1, A2, A3} end || F <- [0.0, 1.0, -1.5, 3.0e-5, 7]]
    ++ [case <<X:64>> of <<F/float>> -> F; _ -> nan end || X <- [16#7ff0000000000000, 16#7ff8000000000000, 16#3ff0000000000000]].
t_bits_utf() ->
    [begin B = <<C/utf8, C/utf16, C/utf16-little, C/utf32, C/utf32-little>>, <<A/utf8, A1/utf16, A2/utf16-little, A3/utf32, A4/utf32-little>> = id(B), {B, A, A1, A2, A3, A4} end || C <- [0, 65, 127, 128, 16#7ff, 16#800, 16#d7ff, 16#e000, 16#ffff, 16#10000, 16#10ffff]]
    ++ [case B of <<C/utf8, R/binary>> -> {C, R}; <<C, _/binary>> -> {bad, C}; <<>> -> none end || B <- [<<16#c0, 16#80>>, <<16#ed, 16#a0, 16#80>>, <<16#f4, 16#90, 16#80, 16#80>>, <<16#e2, 16#82>>, <<>>, <<"é"/utf8>>]]
    ++ [[C || <<C/utf8>> <= <<"aé漢😀"/utf8>>]]
    ++ [case B of <<_/utf8, _/utf16, R/binary>> -> R; _ -> no end || B <- [<<"a", 0, 65, 9>>, <<1>>]].
t_bits_bin() ->
    B = id(<<"hello, world">>),
    <<H:5/binary, _:2/binary, W/binary>> = B,
    <<X:3/bits, Y:13/bitstring, Z/bitstring>> = B,
    N = id(4),
    <<P:N/binary, Q:N/unit:2, R/binary>> = B,
    {H, W, X, Y, Z, P, Q, R, <<H/binary, " ", W/binary>>, <<X/bits, Y/bits, Z/bits>>, <<W:3/binary>>, <<0:3, W/bits, 1:5>>,
     <<(id(<<1, 2, 3>>)):2/binary-unit:4>>, byte_size(Z), bit_size(Y), <<B/binary, B/binary>>, split(B, []), case B of <<"hell", C, _/bits>> -> C end}.
split(<<A:2/binary, R/binary>>, Acc) -> split(R, [A | Acc]);
split(R, Acc) -> {R, Acc}.
t_bits_fail() -> [bf(B) || B <- [<<>>, <<1>>, <<1, 2>>, <<1:1>>, <<2, 3, 4>>, <<3:4>>, <<4, 1, "a">>, <<4, 2, "a">>, <<5, 0, 0>>, <<255:9>>, a, [], 1]].
bf(<<1, X/binary>>) when byte_size(X) > 0 -> {a, X};
bf(<<1>>) -> b;
bf(<<2, _:16>>) -> c;
bf(<<3:4>>) -> d;
bf(<<4, N, S:N/binary>>) -> {e, S};
bf(<<5, 0:16>>) -> f;
bf(<<_:9>>) -> g;
bf(B) when is_bitstring(B) -> {h, bit_size(B)};
bf(_) -> none.
t_bits_comp() ->
    {<< <<(X * 2)>> || X <- seq(1, 20) >>, << <<X:3>> || X <- seq(1, 21), X rem 2 =:= 1 >>, [{A, B} || <<A:4, B:4>> <= <<"abc">>],
     << <<B:8, A:8>> || <<A, B>> <= <<"abcdef">> >>, << <<(Y)/utf8>> || Y <- "añ漢" >>, [X || <<X:16/little>> <= <<1, 0, 2, 0, 3>>], << <<X/float>> || X <- [1.5, 2] >>}.
t_append() -> {app(seq(1, 300), <<>>), byte_size(app2(10000, <<>>)), app3(seq(1, 50), <<1:1>>)}.
app([H | T], A) -> app(T, <<A/binary, H, (H * 3):16>>);
app([], A) -> A.
app2(0, A) -> A;
app2(N, A) -> app2(N - 1, <<A/binary, "some text to append">>).
app3([H | T], A) -> B = <<A/bits, H:7>>, C = <<A/bits, (H + 1):7>>, true = bit_size(B) =:= bit_size(C), app3(T, B);
app3([], A) -> A.
t_fork() ->
    A = app(seq(1, 40), <<>>), B = <<A/binary, "b">>, C = <<A/binary, "c">>, D = <<B/binary, C/binary>>, {A, B, C, D}.
t_ctx() -> ctx(<<"key=value;k2=v2;">>, [], <<>>, <<>>).
ctx(<<"=", R/binary>>, Acc, K, <<>>) -> ctx(R, Acc, {K}, <<>>);
ctx(<<";", R/binary>>, Acc, {K}, V) -> ctx(R, [{K, V} | Acc], <<>>, <<>>);
ctx(<<C, R/binary>>, Acc, {K}, V) -> ctx(R, Acc, {K}, <<V/binary, C>>);
ctx(<<C, R/binary>>, Acc, K, <<>>) -> ctx(R, Acc, <<K/binary, C>>, <<>>);
ctx(<<>>, Acc, _, _) -> Acc.
t_tail() -> [tl1(<<1, 2, 3>>), tl1(<<9, 2, 3>>), tl1(<<>>)].
tl1(<<1, R/binary>> = B) -> {R, B};
tl1(<<_, _/binary>> = B) -> {B, byte_size(B)};
tl1(B) -> {e, B}.

t_big() -> {pow(3, 300), pow(-7, 101) div pow(5, 30), pow(2, 200) rem 1000007, pow(2, 100) band pow(3, 60), -pow(2, 90) bsr 13, pow(5, 40) bxor -pow(3, 50),
    bnot pow(2, 70), pow(2, 64) - pow(2, 64) + 1, pow(10, 30) > pow(9, 31), pow(2, 59) - 1, -pow(2, 59), abs(-pow(2, 80)), 1 bsl 200 bsr 199, pow(7, 50) * pow(11, 40)}.
pow(_, 0) -> 1;
pow(X, N) -> X * pow(X, N - 1).

t_deep() -> {build(50000), depth(build(50000), 0)}.
build(0) -> leaf;
build(N) -> {N band 3, build(N - 1)}.
depth({_, T}, N) -> depth(T, N + 1);
depth(leaf, N) -> N.
t_body() -> sum(seq(1, 200000)).
sum([H | T]) -> H + sum(T);
sum([]) -> 0.

t_sort() -> {msort([ (X * 7919) rem 1009 || X <- seq(1, 1000)]), lists:sort([c, 1, 2.0, "a", {}, a])}.
msort([]) -> []; msort([X]) -> [X];
msort(L) -> {A, B} = halve(L, [], []), merge(msort(A), msort(B)).
halve([A, B | T], X, Y) -> halve(T, [A | X], [B | Y]);
halve([A], X, Y) -> {[A | X], Y};
halve([], X, Y) -> {X, Y}.
merge([A | T], [B | _] = L) when A =< B -> [A | merge(T, L)];
merge(L, [B | T]) -> [B | merge(L, T)];
merge([], L) -> L;
merge(L, []) -> L.

t_recv() -> {receive X -> X after 0 -> none end, receive Y when Y > 1 -> Y after id(0) -> none2 end}.
t_literals() -> {lit(), lit() =:= lit(), [a, "b", {c, 1.5, <<"binary literal that is longer than sixty-four bytes, so that it is counted, perhaps">>}, #{k => [v]}, 123456789012345678901234567890, fun erlang:abs/1]}.
lit() -> {x, [1, 2, 3], #{a => {b, "c"}}, <<"bits">>}.
t_case() -> [c(X) || X <- [1, {ok, 2}, {error, r}, [a | b], nil, "s"]].
c(X) ->
    case X of
        {ok, Y} -> case Y of 2 -> two; _ -> other end;
        {error, R} -> R;
        [H | _] when is_atom(H) -> H;
        [_ | T] -> T;
        N when is_integer(N), N > 0 -> begin Z = N * 2, Z end;
        _ -> default
    end.
