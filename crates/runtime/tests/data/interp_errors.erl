%% Exceptions and their traces: every exported function t_*/0 gives a term. Entries of other modules than this one and
%% of natives are left out, since they tell how the test is run.
-module(interp_errors).
-compile([nowarn_export_all, export_all]).

p(F) -> try F() catch C:V:S -> {C, V, own(S)} end.
own(S) when is_list(S) -> [E || E <- S, mine(E)];
own(S) -> S.
mine({M, _, _, _}) -> M =:= ?MODULE orelse M =:= erlang orelse M =:= lists orelse M =:= nosuchmod orelse M =:= x orelse M =:= a;
mine(_) -> true.
f(X) -> X.

t_raise() -> [p(F) || F <- [
    fun() -> erlang:raise(foo, bar, []) end,
    fun() -> erlang:raise(error, bar, x) end,
    fun() -> erlang:raise(error, bar, [{a, b, 1}, {a, b, [1], []}, {fun ?MODULE:f/1, [1]}, {a, b, 2, [{line, 3}, {file, "x"}]}]) end,
    fun() -> erlang:raise(error, bar, [{a, b, c}]) end,
    fun() -> erlang:raise(error, bar, [x]) end,
    fun() -> erlang:raise(throw, bar, dup(12, {a, b, 1, []})) end,
    fun() -> try erlang:raise(throw, bar, []) after ok end end,
    fun() -> try erlang:raise(exit, bar, [{a, b, 1, []}]) after ok end end,
    fun() -> erlang:raise(error, bar, [{a, b, 1, x}]) end,
    fun() -> try f(x) + f(y) catch C:R:S -> erlang:raise(C, {again, R}, S) end end,
    fun() -> try f(x) + f(y) catch error:R:S -> erlang:raise(throw, {again, R}, S) end end,
    fun() -> try throw(deep) catch error:_ -> ok end end,
    fun() -> try f2(5) of _ -> ok catch throw:_ -> ok after f(1) end end]].
dup(0, _) -> [];
dup(N, X) -> [X | dup(N - 1, X)].

t_error() -> [p(F) || F <- [
    fun() -> e2(1) end, fun() -> e3(1) end,
    fun() -> erlang:error(x, none) end, fun() -> erlang:error(x, foo) end,
    fun() -> erlang:error(x, [1], [foo]) end, fun() -> erlang:error(x, [1], foo) end,
    fun() -> erlang:error(x, [1 | 2]) end, fun() -> erlang:error(x, [1, 2, 3]) end,
    fun() -> erlang:nif_error(x) end, fun() -> erlang:nif_error(x, [a]) end,
    fun() -> throw(x) end, fun() -> exit(x) end, fun() -> erlang:error(x) end]].
e2(X) -> erlang:error(X, [a]).
e3(X) -> erlang:error(X, [a], [{error_info, #{cause => foo}}]).

t_apply() -> [p(F) || F <- [
    fun() -> X = f(?MODULE), X:(f(5))(1) end,
    fun() -> apply(f(erlang), f(abs), [1 | f(x)]) end,
    fun() -> apply(fun(A) -> A end, [1 | f(x)]) end,
    fun() -> apply(f(erlang), abs, [f(x)]) end,
    fun() -> apply(f(1), abs, [x]) end,
    fun() -> tail(f(?MODULE), f(nofun)) end,
    fun() -> X = tail(f(?MODULE), f(f)), {X} end,
    fun() -> X = tail(f(erlang), f(abs)), {X} end,
    fun() -> Y = [f(a)], X = tail(f(erlang), f(length)), {X, Y} end,
    fun() -> (f(fun() -> 1 end))(1, 2) end,
    fun() -> (f(fun erlang:abs/1))(f(x)) end,
    fun() -> G = f(fun erlang:abs/1), G(f(x)), ok end,
    fun() -> G = f(fun erlang:abs/1), {G(f(-1))} end,
    fun() -> G = f(fun ?MODULE:undefd/1), {G(f(-1))} end,
    fun() -> (f(x))(1, 2) end,
    fun() -> ?MODULE:undefd(1, 2) end,
    fun() -> erlang:hibernate(x, f(1), []) end]].
tail(M, F) -> M:F(x).

t_data() -> [p(F) || F <- [
    fun() -> map_get(x, f(a)) end, fun() -> map_get(x, f(#{})) end,
    fun() -> #{a := X} = f(#{}), X end, fun() -> #{a := X} = f(z), X end,
    fun() -> hd(f([])) end, fun() -> tl(f(x)) end, fun() -> length(f(x)) end, fun() -> length(f([1 | 2])) end,
    fun() -> element(f(3), {1}) end, fun() -> element(f(x), {1}) end, fun() -> f2(5) end,
    fun() -> (f(x))#{a => 1} end, fun() -> (f(#{}))#{a := 1} end, fun() -> (f(#{b => 1}))#{c => 2, a := 1} end,
    fun() -> tuple_size(f(x)) end, fun() -> byte_size(f(x)) end, fun() -> bit_size(f(1)) end, fun() -> map_size(f(1)) end,
    fun() -> lists:reverse(f(x)) end, fun() -> lists:reverse(f([1 | 2]), []) end, fun() -> lists:member(1, f(x)) end,
    fun() -> f(x) ++ [1] end, fun() -> f([1]) -- f(x) end, fun() -> [1 | f(x)] ++ f(x) end,
    fun() -> binary_part(f(<<1>>), 1, 1) end, fun() -> abs(f(x)) end, fun() -> round(f(x)) end, fun() -> trunc(f(x)) end,
    fun() -> float(f(x)) end, fun() -> {A, A} = {f(1), f(2)}, A end,
    fun() -> case f(1) of 2 -> ok end end, fun() -> Z = f(1), if Z =:= 2 -> ok end end,
    fun() -> try f(1) of 2 -> ok catch _:_ -> no end end,
    fun() -> receive after f(x) -> 1 end end, fun() -> receive after f(-1) -> 1 end end,
    fun() -> receive after f(1 bsl 40) -> 1 end end, fun() -> receive after f(0) -> timeout end end,
    fun() -> case f(x) of Y when hd(Y) =:= 1 -> ok; _ -> guard_failed end end,
    fun() -> case f({1}) of Y when element(2, Y) =:= 1 -> ok; Y when Y + 1 > 0 -> ok; _ -> guard_failed end end]].
f2(X) -> erlang:setelement(X, {}, 1).

t_arith() -> [p(F) || F <- [
    fun() -> f(x) + 1 end, fun() -> 1 + f(x) end, fun() -> f(x) - 1 end, fun() -> 1 - f(x) end, fun() -> f(x) - (-1) end,
    fun() -> f(x) + f(y) end, fun() -> f(x) - f(y) end, fun() -> f(x) + (1 bsl 40) end, fun() -> f(x) + (1 bsl 59) end,
    fun() -> f(x) + 1.5 end, fun() -> f(1) div f(0) end, fun() -> - f(x) end, fun() -> bnot f(x) end,
    fun() -> f(x) band 3 end, fun() -> 1 bsl f(1 bsl 62) end, fun() -> f(x) bsr 1 end, fun() -> f(1) rem f(0) end,
    fun() -> f(1) / f(0) end, fun() -> f(x) / f(2) end, fun() -> f(1.0) / f(0.0) + 1.0 end,
    fun() -> f(1.0e308) * 1.0e308 end, fun() -> f(1.0e308) * 1.0e308 * 2.0 end, fun() -> not f(x) end,
    fun() -> f(x) and f(true) end, fun() -> f(x) andalso f(true) end, fun() -> f(x) * f(2) end,
    fun() -> Y = f(x), f(3), Y + 1 end, fun() -> f(7) div f(2) + f(7) rem f(-2) end, fun() -> f(x) div 2 end,
    fun() -> f(-1 bsl 59) div f(-1) end, fun() -> f(-1 bsl 59) * f(-1) end, fun() -> f(1 bsl 59 - 1) + f(1) end,
    fun() -> f(-1 bsl 59) - f(1) end, fun() -> - f(-1 bsl 59) end, fun() -> f(1 bsl 100) rem f(7) end]].

t_binary() -> [p(F) || F <- [
    fun() -> <<(f(x)):8>> end, fun() -> <<(f(x))/binary>> end, fun() -> <<1:(f(x))>> end,
    fun() -> <<1:8, (f(x))/float>> end, fun() -> <<1:8, (f(-1))/utf8>> end, fun() -> <<1:8, (f(-1))/utf16>> end,
    fun() -> <<1:8, (f(-1))/utf32>> end, fun() -> <<(f(<<1:3>>))/binary>> end, fun() -> <<(f(<<1>>)):2/binary>> end,
    fun() -> <<1:(f(-1))>> end, fun() -> <<(f(<<1>>)):(f(-2))/binary>> end, fun() -> <<(f(1.0)):(f(17))/float>> end,
    fun() -> <<A:8>> = f(<<1, 2>>), A end, fun() -> N = f(x), <<A:N>> = f(<<1, 2>>), A end,
    fun() -> <<(f(<<1, 2>>)):1/binary, (f(x)):4>> end]].

t_trace() -> [p(fun() -> deep(N) end) || N <- [0, 1, 5, 20]].
deep(0) -> only(f(7)), ok;
deep(N) -> X = deep(N - 1), {X}.
only(1) -> 1.

t_clause() -> [p(F) || F <- [fun() -> only(f(2)) end, fun() -> only3(1, f(2), [3]) end, fun() -> (fun(1) -> ok end)(f(2)) end]].
only3(A, A, _) -> ok.

t_nested() ->
    try
        try
            try only(f(2)) catch error:function_clause -> throw(first) end
        catch throw:X -> exit({second, X}) end
    catch exit:Y -> {third, Y} after f(done) end.

t_catch() -> [strip(catch F()) || F <- [fun() -> throw(a) end, fun() -> exit(b) end, fun() -> only(f(2)) end, fun() -> ok end,
    fun() -> 1 + (catch throw(2)) end, fun() -> catch exit(catch throw(3)) end]].
strip({'EXIT', {R, S}}) when is_list(S) -> {'EXIT', R, own(S)};
strip(R) -> R.

t_many() -> many(20000, 0).
many(0, A) -> A;
many(N, A) ->
    V = try thrower(N) catch throw:T -> T; error:_ -> 1 end,
    many(N - 1, A + V).
thrower(N) when N rem 3 =:= 0 -> throw(N);
thrower(N) when N rem 3 =:= 1 -> N + f(x);
thrower(N) -> N.
