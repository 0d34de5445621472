%% Machine code raises exceptions that reach handlers in machine code: across frames, from natives,
%% arithmetic, matches and function clauses, caught by `try` and `catch`, with `after`, by class,
%% and raised again. @stress @fence
-module(compiled_throws).
-export([main/0]).

main() ->
    Kinds = [throw, error, exit, badarith, badmatch, case_clause, if_clause, function_clause, try_clause, badfun, badarity, undef, badarg, badmap,
             badkey, float, bits, none],
    [io:format("~p ~p~n", [K, rounds(K, 30)]) || K <- Kinds],
    io:format("~p~n", [lists:sum([try deep(50) catch throw:{found, X} -> X end || _ <- lists:seq(1, 200)])]),
    io:format("~p~n", [again(20)]).

rounds(K, 0) -> all(K);
rounds(K, N) -> R = all(K), R = all(K), rounds(K, N - 1).

all(K) -> {tried(K), caught(K), nested(K), after_all(K), last(K), below(K, 8), order(K)}.

tried(K) -> X = [K], try fails(K, 1) of V -> {ok, V, X} catch C:R -> {C, strip(R), X} end.
caught(K) -> X = {K}, V = (catch fails(K, 2)), {X, shape(V)}.
nested(K) -> try try fails(K, 3) catch throw:T -> {inner, T} end catch C:R:S -> {outer, C, strip(R), element(1, hd(S)) =/= []} end.
after_all(K) ->
    put(count, 0),
    R = try try fails(K, 4) after put(count, get(count) + 1) end catch C:E -> {C, strip(E)} after put(count, get(count) + 1) end,
    {R, get(count)}.
last(K) -> try_last(K).
try_last(K) -> try id(fails(K, 5)) catch error:E -> {error, strip(E)}; C:_ -> C end.
below(K, 0) -> fails(K, 6);
below(K, N) when N rem 3 =:= 0 -> try [N | below(K, N - 1)] catch exit:_ when N > 3 -> {gone, N} end;
below(K, N) when N =:= 8 -> try below(K, N - 1) catch C:R -> {C, strip(R), N} end;
below(K, N) -> {N, below(K, N - 1)}.
order(K) -> A = shape(catch fails(K, 7)), B = shape(catch fails(none, 7)), C = shape(catch fails(K, 8)), {A, B, C}.

fails(throw, N) -> throw({t, N});
fails(error, N) -> error({e, N});
fails(exit, N) -> exit({x, N});
fails(badarith, N) -> N + id(a);
fails(badmatch, N) -> {N} = id(N), ok;
fails(case_clause, N) -> case id(N) of none -> ok end;
fails(if_clause, N) -> if N < 0 -> ok end;
fails(function_clause, N) -> clause(N);
fails(try_clause, N) -> try id(N) of none -> ok catch throw:_ -> ok end;
fails(badfun, N) -> (id(N))(1);
fails(badarity, N) -> (id(fun() -> N end))(1);
fails(undef, N) -> j_throws_none:f(N);
fails(badarg, N) -> atom_to_list(id(N));
fails(badmap, N) -> M = id(N), M#{a => 1};
fails(badkey, N) -> M = id(#{b => N}), M#{a := 1};
fails(float, N) -> id(1.0e308) * N * 1.0e10;
fails(bits, N) -> <<(id(a)):N>>;
fails(none, N) -> N.
clause(a) -> 1;
clause(b) -> 2.

deep(0) -> throw({found, 7});
deep(N) -> 1 + deep(N - 1).

%% Handlers that raise, over time slices.
again(0) -> done;
again(N) ->
    try lists:foreach(fun(I) -> I =:= 3 andalso throw({stop, N}) end, lists:seq(1, 5))
    catch throw:{stop, M} when M > 15 -> again(N - 1);
          throw:{stop, M} -> try error(M) catch error:M -> again(M - 1) end
    end.

strip({badarity, _}) -> badarity;
strip(R) -> R.
shape({'EXIT', {R, [{M, F, A, _} | _]}}) when is_list(A) -> {error, strip(R), M, F, length(A)};
shape({'EXIT', {R, [{M, F, A, _} | _]}}) -> {error, strip(R), M, F, A};
shape({'EXIT', R}) -> {exit, R};
shape(V) -> {value, V}.
id(X) -> X.
