%% Decodes every encoding of the parts of each kind of term, valid and invalid, and prints the term,
%% the number of bytes used, and the term encoded again.
-module(external_terms_in_odd_encodings).
-export([main/0]).
main() ->
    [io:format("~s: ~s~n", [N, one(B)]) || {N, B} <- cases()], ok.
one(B) ->
    R = try binary_to_term(<<131, B/binary>>) of T -> {ok, T} catch error:badarg -> badarg; C:E -> {C, E} end,
    U = try binary_to_term(<<131, B/binary>>, [used]) of {_, Used} -> Used - 1 - byte_size(B) catch _:_ -> x end,
    case R of
        {ok, T1} -> io_lib:format("~0p ~w ~s", [shown(T1), U, written(term_to_binary(T1))]);
        _ -> io_lib:format("~0p ~w", [R, U])
    end.
written(B) when byte_size(B) < 60 -> io_lib:format("~w", [B]);
written(B) -> io_lib:format("~w", [erlang:crc32(B)]).
shown(T) when is_pid(T) -> {pid, node(T)};
shown(T) when is_port(T) -> {port, node(T)};
shown(T) when is_reference(T) -> {ref, node(T)};
shown(T) -> T.
nm(F, A) -> lists:flatten(io_lib:format(F, A)).
atoms() -> [{"atom", <<100, 3:16, "a@b">>}, {"small_atom", <<115, 3, "a@b">>}, {"utf8", <<118, 3:16, "a@b">>}, {"small_utf8", <<119, 3, "a@b">>}, {"cache", <<82, 0>>}].
oddatoms() -> [{"latin", <<100, 1:16, 233>>}, {"slatin", <<115, 1, 233>>}, {"badutf", <<119, 1, 233>>}, {"overlong", <<119, 2, 16#c1, 16#81>>}, {"surrogate", <<119, 3, 16#ed, 16#a0, 16#80>>}, {"empty", <<119, 0>>}, {"empty16", <<100, 0:16>>},
    {"long", <<118, 510:16, (binary:copy(<<195, 169>>, 255))/binary>>}, {"toolong", <<118, 512:16, (binary:copy(<<195, 169>>, 256))/binary>>}, {"l255", <<100, 255:16, (binary:copy(<<"a">>, 255))/binary>>}, {"l256", <<100, 256:16, (binary:copy(<<"a">>, 256))/binary>>}, {"zero", <<119, 1, 0>>}, {"cz", <<119, 2, 16#c0, 16#80>>}, {"max", <<119, 4, 16#f4, 16#8f, 16#bf, 16#bf>>}, {"over", <<119, 4, 16#f4, 16#90, 16#80, 16#80>>}, {"fffe", <<119, 3, 16#ef, 16#bf, 16#be>>}, {"half", <<119, 2, 195>>}, {"u8at", <<119, 5, 195,169, "@h ">>}].
ints() -> [{nm("i~w_~w", [V, K]), B} || V <- [0, 1, 2, 255, 256, -1, 1 bsl 27, 1 bsl 31, 1 bsl 32, 1 bsl 59, 1 bsl 60, 1 bsl 63], {K, B} <- enc(V)]
    ++ [{"big0", <<110, 0, 0>>}, {"big0s", <<110, 0, 1>>}, {"big0s2", <<110, 0, 2>>}, {"b1s2", <<110, 1, 2, 5>>}, {"negzero", <<110, 1, 1, 0>>}, {"lbig0", <<111, 0:32, 0>>}, {"lead0", <<110, 9, 0, 1:72/little>>}, {"lead0b", <<110, 12, 1, (1 bsl 70):96/little>>}, {"min60", <<110, 8, 1, (1 bsl 59):64/little>>}, {"short", <<110, 5, 0, 1, 2>>}].
enc(V) -> [{a, <<97, V>>} || V >= 0, V < 256] ++ [{b, <<98, V:32>>} || V >= -(1 bsl 31), V < 1 bsl 31] ++ [{n, <<110, 8, (sign(V)), (abs(V)):64/little>>}, {o, <<111, 8:32, (sign(V)), (abs(V)):64/little>>}, {n4, <<110, 4, (sign(V)), (abs(V)):32/little>>}].
sign(V) when V < 0 -> 1; sign(_) -> 0.
others() -> [{"nil", <<106>>}, {"bin", <<109, 1:32, "x">>}, {"tuple", <<104, 0>>}, {"float", <<70, 1.0/float>>}].
here() -> <<119, 13, "nonode@nohost">>.
cases() ->
    A = atoms() ++ oddatoms(),
    [{"atom " ++ N, B} || {N, B} <- A] ++ [{"int " ++ N, B} || {N, B} <- ints()]
    ++ [{"export arity " ++ N, <<113, 119, 1, "m", 119, 1, "f", B/binary>>} || {N, B} <- ints() ++ others() ++ atoms(), lists:prefix("i0", N) orelse lists:prefix("i1_", N) orelse lists:prefix("i2_", N) orelse lists:prefix("i255", N) orelse hd(N) =/= $i]
    ++ [{"export m " ++ N, <<113, B/binary, 119, 1, "f", 97, 1>>} || {N, B} <- ints() ++ others() ++ A]
    ++ [{"export f " ++ N, <<113, 119, 1, "f", B/binary, 97, 1>>} || {N, B} <- A]
    ++ [{"pid " ++ N, <<103, B/binary, 1:32, 2:32, 3>>} || {N, B} <- A ++ others()]
    ++ [{"npid " ++ N, <<88, B/binary, 1:32, 2:32, 3:32>>} || {N, B} <- A ++ others()]
    ++ [{nm("pid nums ~w ~w ~w", [I, S, C]), <<103, 119, 3, "a@b", I:32, S:32, C>>} || I <- [0, 1 bsl 15, 1 bsl 18, 1 bsl 28, 1 bsl 31], S <- [0, 1 bsl 3, 1 bsl 13, 1 bsl 31], C <- [0, 3, 4, 255]]
    ++ [{nm("npid nums ~w ~w ~w ~w", [byte_size(H), I, S, C]), <<88, H/binary, I:32, S:32, C:32>>} || H <- [<<119, 3, "a@b">>, here()], I <- [0, 1 bsl 15, 1 bsl 18, 1 bsl 28, 1 bsl 31], S <- [0, 1 bsl 13, 1 bsl 31], C <- [0, 4, 1 bsl 31]]
    ++ [{"port " ++ N, <<102, B/binary, 1:32, 3>>} || {N, B} <- A ++ others()]
    ++ [{"nport " ++ N, <<89, B/binary, 1:32, 3:32>>} || {N, B} <- A ++ others()]
    ++ [{"v4port " ++ N, <<120, B/binary, 1:64, 3:32>>} || {N, B} <- A ++ others()]
    ++ [{nm("port nums ~w ~w ~w", [byte_size(H), I, C]), <<102, H/binary, I:32, C>>} || H <- [<<119, 3, "a@b">>, here()], I <- [0, 1 bsl 18, 1 bsl 28, 1 bsl 31], C <- [0, 3, 4, 255]]
    ++ [{nm("nport nums ~w ~w ~w", [byte_size(H), I, C]), <<89, H/binary, I:32, C:32>>} || H <- [<<119, 3, "a@b">>, here()], I <- [0, 1 bsl 18, 1 bsl 28, 1 bsl 31], C <- [0, 3, 4]]
    ++ [{nm("v4port nums ~w ~w ~w", [byte_size(H), I, C]), <<120, H/binary, I:64, C:32>>} || H <- [<<119, 3, "a@b">>, here()], I <- [0, 1 bsl 28, 1 bsl 31, 1 bsl 32, 1 bsl 60, 1 bsl 63], C <- [0, 3]]
    ++ [{"ref " ++ N, <<101, B/binary, 1:32, 3>>} || {N, B} <- A ++ others()]
    ++ [{"nref " ++ N, <<114, 2:16, B/binary, 3, 1:32, 2:32>>} || {N, B} <- A ++ others()]
    ++ [{"nnref " ++ N, <<90, 2:16, B/binary, 3:32, 1:32, 2:32>>} || {N, B} <- A ++ others()]
    ++ [{nm("ref nums ~w ~w ~w", [byte_size(H), I, C]), <<101, H/binary, I:32, C>>} || H <- [<<119, 3, "a@b">>, here()], I <- [0, 1 bsl 17, 1 bsl 18, 1 bsl 31], C <- [0, 3, 4]]
    ++ [{nm("nref nums ~w ~w ~w ~w", [byte_size(H), I, C, L]), <<114, L:16, H/binary, C, (words(L, I))/binary>>} || H <- [<<119, 3, "a@b">>, here()], I <- [0, 1 bsl 17, 1 bsl 18, 1 bsl 31], C <- [0, 3, 4], L <- [1, 2, 3, 4, 5, 6, 7]]
    ++ [{nm("nnref nums ~w ~w ~w ~w", [byte_size(H), I, C, L]), <<90, L:16, H/binary, C:32, (words(L, I))/binary>>} || H <- [<<119, 3, "a@b">>, here()], I <- [0, 1 bsl 17, 1 bsl 18, 1 bsl 31], C <- [0, 4], L <- [1, 2, 3, 4, 5, 6, 7]]
    ++ [{"ref short", <<90, 3:16, 119, 3, "a@b", 0:32, 0:32>>}]
    ++ [{"float text " ++ T, <<99, (list_to_binary(string:pad(T, 31, trailing, 0)))/binary>>} || T <- ["1.0", " 1.0", "1", "1e5", "1.0e5", "1.0E5", "nan", "inf", "+1.0", "-1.0", "1.0x", "1.0 ", "1.", ".5", "1.0e400", "1.0e-400", "-0.0", "0x1p3", "1.00000000000000000000e+00", ""]]
    ++ [{nm("float ~w", [X]), <<70, X:64>>} || X <- [0, 1 bsl 63, 16#7ff0000000000000, 16#7ff8000000000000, 16#fff0000000000000, 1]]
    ++ [{"string 0", <<107, 0:16>>}, {"string", <<107, 2:16, "ab">>}, {"string short", <<107, 3:16, "ab">>}, {"list 0", <<108, 0:32, 106>>}, {"list 0 tail", <<108, 0:32, 97, 5>>}, {"list improper", <<108, 1:32, 97, 5, 97, 6>>}, {"list huge", <<108, 16#ffffffff:32, 97, 5, 106>>}, {"tuple 0", <<104, 0>>}, {"ltuple 0", <<105, 0:32>>}, {"ltuple 1", <<105, 1:32, 106>>}, {"ltuple huge", <<105, 16#7fffffff:32, 106>>}, {"tuple short", <<104, 2, 106>>}]
    ++ [{nm("bits ~w ~w ~w", [N, B, L]), <<77, N:32, B, (binary:copy(<<255>>, L))/binary>>} || N <- [0, 1, 2], B <- [0, 1, 7, 8, 9, 255], L <- [N, N + 1]]
    ++ [{"bin 0", <<109, 0:32>>}, {"bin short", <<109, 2:32, 1>>}, {"map 0", <<116, 0:32>>}, {"map dup", <<116, 2:32, 97, 1, 97, 2, 97, 1, 97, 3>>}, {"map dup enc", <<116, 2:32, 97, 1, 97, 2, 98, 1:32, 97, 3>>}, {"map unsorted", <<116, 2:32, 97, 9, 97, 2, 97, 1, 97, 3>>}, {"map short", <<116, 2:32, 97, 9, 97, 2, 97, 1>>}, {"map float key", <<116, 2:32, 97, 1, 97, 2, 70, 1.0/float, 97, 3>>}, {"map zeros", <<116, 2:32, 70, 0.0/float, 97, 2, 70, -0.0/float, 97, 3>>}]
    ++ [{nm("map of ~w dup", [N]), <<116, (N + 1):32, (<< <<98, K:32, 97, 1>> || K <- lists:seq(1, N)>>)/binary, 97, 7, 97, 0>>} || N <- [7, 32, 33, 40]]
    ++ [{"trailing", <<97, 1, 97, 2>>}, {"none", <<>>}, {"twice", <<131, 97, 1>>}]
    ++ [{nm("tag ~w", [T]), <<T, 0:64, 0:64, 0:64>>} || T <- lists:seq(0, 255), T < 71 orelse T > 76, T =/= 77, T =/= 80, T =/= 70, T =/= 99]
    ++ [{nm("compressed ~w ~w", [D, X]), <<80, (byte_size(P) + D):32, (zlib:compress(P))/binary, X/binary>>} || P <- [<<109, 100:32, 0:800>>], D <- [-1, 0, 1, 1000, 16#7fffff00], X <- [<<>>, <<1>>]]
    ++ [{"compressed 0", <<80, 0:32, (zlib:compress(<<>>))/binary>>}, {"compressed trailing", <<80, 3:32, (zlib:compress(<<97, 1, 9>>))/binary>>}, {"compressed in compressed", <<80, 20:32, (zlib:compress(<<80, 2:32, (zlib:compress(<<97, 1>>))/binary>>))/binary>>}, {"compressed versioned", <<80, 3:32, (zlib:compress(<<131, 97, 1>>))/binary>>}, {"comp inside tuple", <<104, 1, 80, 2:32, (zlib:compress(<<97, 1>>))/binary>>}, {"comp cut", begin Z = zlib:compress(<<109, 100:32, 0:800>>), <<80, 105:32, (binary:part(Z, 0, byte_size(Z) - 4))/binary>> end}, {"comp adler", begin Z2 = zlib:compress(<<97, 1>>), S = byte_size(Z2) - 1, <<Y:S/binary, L>> = Z2, <<80, 2:32, Y/binary, (L bxor 1)>> end}]
    ++ funs().
words(L, I) -> << <<(if K =:= 1 -> I; true -> 16#80000000 + K end):32>> || K <- lists:seq(1, L)>>.
funs() ->
    {Ar, Ix, U} = {1, 0, <<7:128>>},
    P = <<103, 119, 3, "a@b", 1:32, 2:32, 3>>,
    Mk = fun(Size, A, Index, Free, M, OI, OU, Pid, Env) -> B = <<A, U/binary, Index:32, Free:32, M/binary, OI/binary, OU/binary, Pid/binary, Env/binary>>, <<112, (byte_size(B) + 4 + Size):32, B/binary>> end,
    M = <<119, 4, "nomd">>, I1 = <<97, 1>>,
    [{"fun plain", Mk(0, Ar, Ix, 0, M, I1, I1, P, <<>>)}, {"fun size", Mk(5, Ar, Ix, 0, M, I1, I1, P, <<>>)}, {"fun size-", Mk(-5, Ar, Ix, 0, M, I1, I1, P, <<>>)}]
    ++ [{"fun m " ++ N, Mk(0, 1, 0, 0, B, I1, I1, P, <<>>)} || {N, B} <- atoms() ++ others()]
    ++ [{"fun index " ++ N, Mk(0, 1, 0, 0, M, B, I1, P, <<>>)} || {N, B} <- others()]
    ++ [{"fun uniq " ++ N, Mk(0, 1, 0, 0, M, I1, B, P, <<>>)} || {N, B} <- others()]
    ++ [{"fun pid " ++ N, Mk(0, 1, 0, 0, M, I1, I1, B, <<>>)} || {N, B} <- [{"npid", <<88, 119, 3, "a@b", 1:32, 2:32, 3:32>>}]]
    ++ [{nm("fun arity ~w free ~w", [A, E]), Mk(0, A, 0, E, M, I1, I1, P, binary:copy(<<106>>, E))} || A <- [0, 1, 200, 254, 255], E <- [0, 1, 54, 55, 255], A + E =< 255]
    ++ [{nm("fun index ~w", [Z]), Mk(0, 1, Z, 0, M, I1, I1, P, <<>>)} || Z <- [0, 1, 1 bsl 31, 16#ffffffff]]
    ++ [{"old fun", <<117, 0:32, P/binary, M/binary, 97, 1, 97, 1>>}].
