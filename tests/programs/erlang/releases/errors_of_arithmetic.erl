%% Checks the text of arithmetic errors: with operands, except up to OTP 25 for sums and differences
%% with a constant. @stress @shared @fence
-module(errors_of_arithmetic).
-export([main/0, id/1, count/2, last/1, guarded/1]).

id(X) -> X.

main() ->
    [begin
         R = try F(id(A)) of V -> {value, V} catch E:W:S -> {E, W, [{M, Name, As, lists:keyfind(error_info, 1, L)} || {M, Name, As, L} <- lists:sublist(S, 1)]} end,
         io:format("~p ~0p: ~0p~n", [N, A, R])
     end || {N, F} <- lists:enumerate(funs()), A <- [a, [], {1}, 1.5, 1 bsl 70, 7, <<1>>]],
    [io:format("~0p~n", [try G() catch E:W:S -> {E, W, [{M, N, As} || {M, N, As, _} <- lists:sublist(S, 1)]} end])
     || G <- [fun() -> count([1, 2, x, 3], 0) end, fun() -> last(b) end, fun() -> guarded(c) end, fun() -> lists:sum([1, z]) end, fun() -> lists:foldl(fun(X, Acc) -> Acc + X * 2 end, 0, [1, q]) end]],
    io:format("~ts", [try count([y], 0) catch E:W:S -> erl_error:format_exception(E, W, lists:sublist(S, 1)) end]).

funs() ->
    [fun(X) -> X + 1 end, fun(X) -> 1 + X end, fun(X) -> X - 1 end, fun(X) -> 1 - X end, fun(X) -> X + (-1) end, fun(X) -> X - (-3) end, fun(X) -> X + X end, fun(X) -> X - X end,
     fun(X) -> X * 2 end, fun(X) -> 2 * X end, fun(X) -> X div 2 end, fun(X) -> X rem 2 end, fun(X) -> X div 0 end, fun(X) -> X / 2 end, fun(X) -> X / 0 end, fun(X) -> -X end, fun(X) -> +X end,
     fun(X) -> X band 3 end, fun(X) -> X bor 3 end, fun(X) -> X bxor 3 end, fun(X) -> bnot X end, fun(X) -> X bsl 2 end, fun(X) -> X bsr 2 end, fun(X) -> 2 bsl X end, fun(X) -> X + 1.5 end,
     fun(X) -> 1.5 * X end, fun(X) -> X + 1 + 2 end, fun(X) -> (X + 1) * 2 end, fun(X) -> Y = X + 1, {Y, Y} end, fun(X) -> [X - 1] end, fun(X) -> X + (1 bsl 62) end, fun(X) -> abs(X) end,
     fun(X) -> round(X) end, fun(X) -> float(X) end, fun(X) -> X * 1.0e308 * 1.0e308 end, fun(X) -> 1.0e308 * X + 1.0e308 * X end].

%% The sum is the last thing before a call of the function itself.
count([X | T], N) -> count(T, N + 1 + X - 1);
count([], N) -> N.

last(X) -> X + 1.

guarded(X) when X + 1 > 2 -> X;
guarded(X) -> X - 2.
