%% Calls funs with an environment after their module was purged, as tail calls and otherwise.
-module(funs_of_purged_modules).
-export([main/0]).
main() ->
    F = fun(N, Cs) -> {function,1,N,1,Cs} end,
    Forms = [{attribute,1,module,gone},{attribute,1,export,[{f,1}]}, F(f, [{clause,1,[{var,1,'X'}],[],[{'fun',1,{clauses,[{clause,1,[{var,1,'Y'}],[],[{tuple,1,[{var,1,'X'},{var,1,'Y'}]}]}]}}]}])],
    {ok,gone,B} = compile:forms(Forms, []),
    {module,gone} = code:load_binary(gone,"gone.beam",B),
    G = gone:f([1,2]),
    {[1,2],3} = G(3),
    code:delete(gone), code:purge(gone),
    io:format("~p~n", [try call(G, 3) catch C:R -> {C, shape(R)} end]),
    io:format("~p~n", [try tail(G, 3) catch C1:R1 -> {C1, shape(R1)} end]).
shape({badfun, F}) -> {badfun, is_function(F)}; shape(R) -> R.
call(G, X) -> R = G(X), [R].
tail(G, X) -> G(X).
