%% Checks stack traces of errors that are raised through `apply/3`: once each, as a tail call and
%% not, and in recursion.
-module(stack_traces_of_apply).
-export([main/0]).

main() ->
    [io:format("~p ~p~n", [T, stack(fun() -> outer([a, b, c], T) end)]) || T <- [body, last, double, double_last, other, recursive]].

stack(F) ->
    try F() catch C:R:S -> {C, R, [{M, G, A, lists:keydelete(file, 1, L)} || {M, G, A, L} <- S, M =:= ?MODULE orelse M =:= erlang]} end.

outer([_ | L], T) -> outer(L, T), id(ok);
outer([], T) -> inner(T), id(ok).

inner(body) -> erlang:apply(id(erlang), id(error), id([oops, [body]])), ok;
inner(last) -> erlang:apply(id(erlang), id(error), id([oops, [last]]));
inner(double) -> erlang:apply(id(erlang), id(apply), [id(erlang), id(error), id([oops, [double]])]), ok;
inner(double_last) -> erlang:apply(id(erlang), id(apply), [id(erlang), id(error), id([oops])]);
inner(other) -> erlang:apply(id(erlang), id(atom_to_list), id([1])), ok;
inner(recursive) -> recursive(4).

recursive(0) -> 1;
recursive(N) -> X = recursive(N - 1), X div id(0) + 1.

id(X) -> X.
