%% Calls funs with many arguments and large environments, which are in machine registers and in
%% memory. @stress @fence
-module(funs_with_many_arguments).
-export([main/0, id/1, six/6, thirteen/13]).

id(X) -> X.

main() ->
    [io:format("~p ~p~n", [N, [catches(fun() -> called(F, N) end) || F <- funs(N)]]) || N <- lists:seq(0, 14)],
    io:format("~p~n", [loop(id(fun(A, B, C, D, E, F, G) -> A + B + C + D + E + F + G end), 5000, 0)]),
    io:format("~p~n", [nested(300, id(fun(A, B, C, D, E, F) -> [A, B, C, D, E, F] end), [])]).

catches(F) -> try F() catch C:R:S -> {C, R, element(2, hd(S)), element(2, lists:nth(2, S))} end.
six(A, B, C, D, E, F) -> {A, B, C, D, E, F}.
thirteen(A, B, C, D, E, F, G, H, I, J, K, L, M) -> {A, B, C, D, E, F, G, H, I, J, K, L, M}.

%% Each with nothing, one and twelve words in its environment; some of another arity, some by name,
%% some no funs at all.
funs(N) ->
    [A, B, C, D, E, F, G, H, I, J, K, L] = [{N, X} || X <- lists:seq(1, 12)],
    [fun() -> none end, fun() -> A end, fun() -> [A, B, C, D, E, F, G, H, I, J, K, L] end,
     fun(X1, X2, X3, X4, X5) -> [X1, X2, X3, X4, X5] end, fun(X1, X2, X3, X4, X5) -> [X1, X2, X3, X4, X5, A, B, C] end,
     fun(X1, X2, X3, X4, X5, X6) -> [X1, X2, X3, X4, X5, X6] end, fun(X1, X2, X3, X4, X5, X6) -> [X1, X2, X3, X4, X5, X6, A] end,
     fun(X1, X2, X3, X4, X5, X6) -> [X1, X2, X3, X4, X5, X6, A, B, C, D, E, F, G, H, I, J, K, L] end, fun ?MODULE:six/6, fun six/6,
     fun(X1, X2, X3, X4, X5, X6, X7) -> [X1, X2, X3, X4, X5, X6, X7, L, A] end,
     fun(X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12) -> [X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, A, B, C] end,
     fun(X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13) -> [X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, A, B, C] end,
     fun ?MODULE:thirteen/13, not_a_fun, {?MODULE, six}].

called(F, 0) -> id(F());
called(F, 5) -> id(F(1, [2], {3}, 4.0, <<5>>));
called(F, 6) -> id(F(1, [2], {3}, 4.0, <<5>>, six));
called(F, 7) -> id(F(1, [2], {3}, 4.0, <<5>>, six, 7));
called(F, 8) -> F(1, [2], {3}, 4.0, <<5>>, six, 7, 8);
called(F, 12) -> F(1, [2], {3}, 4.0, <<5>>, six, 7, 8, 9, 10, 11, 12);
called(F, 13) -> [F(1, [2], {3}, 4.0, <<5>>, six, 7, 8, 9, 10, 11, 12, 13) | F(a, b, c, d, e, f, g, h, i, j, k, l, m)];
called(F, N) -> apply(F, lists:seq(1, N)).

loop(_, 0, S) -> S;
loop(F, N, S) -> loop(F, N - 1, F(N, 1, 2, 3, 4, 5, S) rem 1000003).

nested(0, _, A) -> erlang:phash2(A);
nested(N, F, A) ->
    G = id(fun(P, Q, R, S, T, U) -> F(U, T, S, R, Q, [P, N]) end),
    nested(N - 1, F, [erlang:phash2(G(N, lists:seq(1, N rem 50), {N}, N / 2, <<N:32>>, A)) | lists:sublist(A, 3)]).
