%% Checks where calls of funs, `apply/2` and `apply/3` fail: as instructions, through the functions,
%% and as the first call of a process. @stress
-module(failing_applies).
-export([main/0, b/1, l/1, b2/2,l2/2, ab/2, al/2, af/1, m1/1,m2/1, s/0]).
main() ->
  logger:set_primary_config(level, none),
  T = fun(N, F) -> io:format("~w ~0p~n", [N, try F() catch C:R:S -> {C,case R of {badarity,_} -> badarity; _ -> R end,[{M,Fn,case A of _ when is_list(A) -> {length(A)}; _ -> A end,proplists:get_value(line,I)} || {M,Fn,A,I} <- S, M =/= erl_eval, M=/=init]} end]) end,
  T(body_badfun, fun() -> b(x) end), T(body_arity, fun() -> b(fun() -> ok end) end),
  T(last_badfun, fun() -> l(x) end), T(last_arity, fun() -> l(fun() -> ok end) end),
  T(body2_badfun, fun() -> b2(x,1) end), T(body2_arity, fun() -> b2(fun() -> ok end,1) end),
  T(last2_badfun, fun() -> l2(x,1) end), T(last2_arity, fun() -> l2(fun() -> ok end,1) end),
  T(ab, fun() -> ab(x,[1]) end), T(ab_ar, fun() -> ab(fun() -> ok end,[1]) end), T(ab_list, fun() -> ab(fun() -> ok end,[1|x]) end),
  T(al, fun() -> al(x,[1]) end), T(al_ar, fun() -> al(fun() -> ok end,[1]) end), T(al_list, fun() -> al(fun() -> ok end,[1|x]) end), T(al_nolist, fun() -> al(fun() -> ok end,x) end),
  T(af, fun() -> af([x,[1]]) end), T(af_ar, fun() -> af([fun() -> ok end,[1]]) end), T(af_list, fun() -> af([fun() -> ok end,[1|x]]) end), T(af_ok, fun() -> af([fun(X) -> error(X) end,[1]]) end),
  T(m1, fun() -> m1([x,[1]]) end), T(m1_ar, fun() -> m1([fun() -> ok end,[1]]) end), T(m1_list, fun() -> m1([fun() -> ok end,[1|x]]) end),
  T(m2, fun() -> m2([x,[1]]) end), T(m2_ar, fun() -> m2([fun() -> ok end,[1]]) end), T(m2_list, fun() -> m2([fun() -> ok end,[1|x]]) end), T(m2e, fun() -> m2([fun(X) -> error(X) end,[1]]) end), T(m1e, fun() -> m1([fun(X) -> error(X) end,[1]]) end),
  T(err_fun, fun() -> b2(fun erlang:error/1, x) end), T(err_funl, fun() -> l2(fun erlang:error/1, x) end), T(err_funa, fun() -> ab(fun erlang:error/1, [x]) end), T(err_funal, fun() -> al(fun erlang:error/1, [x]) end),
  T(err2_fun, fun() -> ab(fun erlang:error/2, [x,[y]]) end), T(err2_funal, fun() -> al(fun erlang:error/2, [x,[y]]) end), T(exit_fun, fun() -> b2(fun erlang:exit/1, x) end), T(throw_funl, fun() -> l2(fun erlang:throw/1, x) end),
  T(nif_err, fun() -> b2(fun erlang:nif_error/1, x) end),T(abs_fun, fun() -> b2(fun erlang:abs/1, x) end), T(abs_l, fun() -> l2(fun erlang:abs/1, x) end),
  T(undef_fun, fun() -> b2(fun no:no/1, x) end), T(undef_l, fun() -> l2(fun no:no/1, x) end), T(ext_ar, fun() -> b2(fun lists:map/2, x) end), T(ext_arl, fun() -> l2(fun lists:map/2, x) end), 
  T(map, fun() -> [x || _ <- lists:map(fun erlang:error/1, [1])] end),
  T(sort, fun() -> lists:sort(x, [1,2,3]) end), T(sort2, fun() -> lists:sort(x, [1,2]) end), T(filter, fun() -> lists:filter(fun(_) -> 3 end, [1]) end), T(foldl, fun() -> lists:foldl(fun(_) -> x end, 0, [1]) end),
  [begin {P, R} = spawn_monitor(M, Fu, A), receive {'DOWN', R, _, P, Re} -> io:format("~0p ~0p~n", [{M,Fu,case A of [F|_] when is_function(F) -> f; _ -> A end}, case Re of {{badarity,_},S1} -> {bar,pt(S1)}; {R1,S1} -> {R1,pt(S1)}; R2 -> R2 end]) end end || {M,Fu,A} <- [{erlang,apply,[x,[1]]},{erlang,apply,[fun() -> ok end,[1]]},{erlang,apply,[fun() -> ok end,[1|x]]},{erlang,apply,[fun() -> ok end,x]},{erlang,apply,[fun(X) -> error(X) end,[x]]},{?MODULE,b,[x]},{?MODULE,l,[x]},{?MODULE,s,[]},{erlang,error,[x]},{no,no,[]},{erlang,error,[x,[y]]},{erlang,abs,[x]},{erlang,apply,[lists,x,[1]]},{erlang,apply,[lists,1,[1]]},{lists,map,[x,x]}]],
  [T({apply3, N}, F) || {N, F} <- [{1, fun() -> a3(x, y, z) end}, {2, fun() -> a3l(x, y, z) end}, {3, fun() -> m1([1, 2, 3]) end}, {4, fun() -> m2([lists, x, y]) end}, {5, fun() -> a3(lists, nothing, [1]) end}, {6, fun() -> a3l(lists, nothing, [1]) end}]].
pt(S) -> [{M,Fn,case A of _ when is_list(A) -> {length(A)}; _ -> A end,proplists:get_value(line,I)} || {M,Fn,A,I} <- S].
a3(M, F, A) -> X = apply(M, F, A), {X}.
a3l(M, F, A) -> apply(M, F, A).
b(F) -> X = F(1), {X}.
l(F) -> F(1).
b2(F, A) -> X = F(A), {X}.
l2(F, A) -> F(A).
ab(F, A) -> X = apply(F, A), {X}.
al(F, A) -> apply(F, A).
af(A) -> X = apply(fun erlang:apply/2, A), {X}.
m1(A) -> X = apply(erlang, apply, A), {X}.
m2(A) -> apply(erlang, apply, A).
s() -> error(z), ok.
