%% Checks exceptions: classes, reasons, stack traces, `after`, nesting, and raising again.
%% @stress @shared
-module(exception_classes).
-export([main/0, f/1, undefined_guard/1]).

f(badarith) -> 1 / zero();
f(badmatch) -> {a, _} = id({b, 1});
f(case_clause) -> case id(3) of 1 -> one end;
f(if_clause) -> X = id(1), if X > 2 -> two end;
f(function_clause) -> undefined_guard(id(x));
f(badarg) -> atom_to_list(id(1));
f(undef) -> (id(no_such_module)):no_such_function(1, 2);
f(badfun) -> (id(17))(1);
f(badarity) -> (id(fun(A) -> A end))(1, 2);
f(badkey) -> maps:get(id(k), #{});
f(badmap) -> maps:get(k, id([]));
f(badmap2) -> (id(notmap))#{k => 1};
f(badkey2) -> (id(#{}))#{k := 1};
f(try_clause) -> try id(1) of 2 -> ok catch _:_ -> no end;
f(system_limit) -> 1 bsl id(100000000000);
f(badrecord) -> element(id(5), {a, b});
f(throw) -> throw(ball);
f(exit) -> exit({my, reason});
f(error) -> error({my, error}, [arg1, arg2]);
f(nocatch) -> catch throw(inside), ok;
f(hd) -> hd(id([]));
f(list_to_integer) -> list_to_integer(id("12x"));
f(binary) -> <<(id(a)):8>>;
f(binary_size) -> <<1:(id(-1))>>;
f(apply) -> apply(erlang, id(hd), [[]]).

zero() -> id(0).
id(X) -> X.
undefined_guard(X) when is_integer(X) -> X.

main() ->
    [show(K) || K <- [badarith, badmatch, case_clause, if_clause, function_clause, badarg, undef, badfun, badarity,
                      badkey, badmap, badmap2, badkey2, try_clause, system_limit, badrecord, throw, exit, error,
                      nocatch, hd, list_to_integer, binary, binary_size, apply]],
    io:format("~p~n", [try try throw(a) after io:format("after~n") end catch throw:a -> caught end]),
    io:format("~p~n", [try try error(a) catch error:a -> error(b) end catch error:B -> B end]),
    io:format("~p~n", [catch throw(thrown)]),
    io:format("~p~n", [catch exit(ended)]),
    {'EXIT', {R, [{M, F, A, _} | _]}} = (catch f(function_clause)),
    io:format("~p ~p~n", [R, {M, F, A}]),
    io:format("~p~n", [try erlang:raise(throw, raised, []) catch C1:R1:S1 -> {C1, R1, S1} end]),
    io:format("~p~n", [erlang:raise(not_a_class, x, [])]),
    Deep = try deep(50) catch error:deep:S -> length(S) end,
    io:format("~p~n", [Deep]),
    V = try id(ok) of ok -> fine catch _:_ -> bad after io:format("cleanup~n") end,
    io:format("~p~n", [V]).

deep(0) -> error(deep);
deep(N) -> 1 + deep(N - 1).

show(K) ->
    try f(K) of V -> io:format("~p: value ~p~n", [K, V])
    catch C:R:St ->
        [{M, F, A, Info} | _] = St,
        io:format("~p: ~p ~p at ~p:~p/~p line ~p~n", [K, C, R, M, F, A, proplists:get_value(line, Info)]),
        io:format("   ~p~n", [proplists:get_value(error_info, Info)])
    end.
