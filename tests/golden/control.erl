%% Exceptions, funs, messages, apply.
-module(control).
-export([catches/1, tries/2, after_all/1, raises/1, matches/1, no_clause/1, if_clause/1, make/2, call/2, last/2, by_name/3,
         by_list/3, send/2, receives/0, waits/1, selective/1, hibernates/1, again/0, named/0]).

catches(F) -> {catch F()}.
tries(F, X) ->
    try F(X) of
        1 -> one
    catch
        throw:T -> T;
        error:R:S -> {R, S};
        C:V -> {C, V}
    end.
after_all(F) -> try F() after self() ! done end.
raises(X) -> erlang:error({bad, X}).
matches(X) -> {ok, Y} = X, Y.
no_clause(X) -> case X of 1 -> a; 2 -> b end.
if_clause(X) -> if X > 1 -> a; X < 0 -> b end.
make(X, Y) -> fun(Z) -> {X, Y, Z} end.
call(F, X) -> [F(X)].
last(F, X) -> F(X).
by_name(M, F, X) -> {M:F(X), M:F(X, X)}.
by_list(M, F, L) -> apply(M, F, L).
send(P, M) -> P ! M, ok.
receives() -> receive X -> X end.
waits(T) -> receive {a, X} -> X; b -> b after T -> none end.
selective(P) -> R = monitor(process, P), P ! {self(), R}, receive {R, A} -> A end.
hibernates(X) -> erlang:hibernate(?MODULE, again, [X]).
again() -> receive after 10 -> ok end.
named() -> fun lists:map/2.
