%% Checks funs: captured values, named recursion, use as keys, `fun_info`, and calls through apply.
%% @stress @shared
-module(closures).
-export([main/0, add/2]).

add(A, B) -> A + B.

main() ->
    K = 10, L = [1, 2, 3],
    F = fun(X) -> X + K + length(L) end,
    io:format("~p~n", [F(1)]),
    io:format("~p~n", [[{I, V} || {I, V} <- erlang:fun_info(F), lists:member(I, [arity, type, module, env, new_index])]]),
    Fac = fun Me(0) -> 1; Me(N) -> N * Me(N - 1) end,
    io:format("~p~n", [Fac(25)]),
    G = fun ?MODULE:add/2, H = fun add/2,
    io:format("~p ~p ~p~n", [G(1, 2), H(3, 4), erlang:fun_info(G)]),
    io:format("~p~n", [apply(G, [5, 6])]),
    io:format("~p~n", [apply(?MODULE, add, [7, 8])]),
    io:format("~p~n", [lists:map(fun({A, B}) -> A * B; (A) -> A end, [{2, 3}, 4])]),
    Compose = fun(Fs) -> fun(X) -> lists:foldl(fun(Fn, A) -> Fn(A) end, X, Fs) end end,
    io:format("~p~n", [(Compose([fun(X) -> X + 1 end, fun(X) -> X * 2 end, F]))(1)]),
    M = #{G => g, F => f},
    io:format("~p ~p~n", [maps:get(G, M), maps:get(F, M)]),
    io:format("~p ~p~n", [is_function(F, 1), is_function(F, 2)]),
    io:format("~p~n", [G =:= fun ?MODULE:add/2]),
    io:format("~p~n", [binary_to_term(term_to_binary(F)) =:= F]),
    Counter = lists:foldl(fun(_, Acc) -> fun() -> Acc() + 1 end end, fun() -> 0 end, lists:seq(1, 1000)),
    io:format("~p~n", [Counter()]),
    io:format("~p~n", [[X || X <- lists:seq(1, 30), Y <- [2, 3], X rem Y =:= 0, X > 20]]),
    io:format("~p~n", [[F2(2) || F2 <- [fun(X) -> X end, fun(X) -> -X end]]]),
    io:format("~p~n", [erlang:fun_to_list(fun lists:map/2)]),
    io:format("~p~n", [(fun(_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, X) -> X end)(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)]).
