%% Machine code tail-calls natives that raise, with a `catch` around the call of the function. The
%% handler is at the return address, and the exception is in registers that a return does not
%% preserve. @stress
-module(compiled_catches).
-export([main/0]).

main() ->
    lists:foreach(fun(F) -> io:format("~p~n", [F]), rounds(F, 3000) end,
                  [error_3, error_2, error_1, exit_1, throw_1, badarg, value]).

%% Long enough to be compiled, in time slices that end within.
rounds(F, 0) -> io:format("  ~p ~p~n", [shape(catch last(F, [x])), deep(F, 50)]);
rounds(F, N) ->
    R = shape(catch last(F, [x])),
    R = shape(catch last(F, [x])),
    rounds(F, N - 1).

deep(F, 0) -> shape(catch last(F, [y]));
deep(F, N) ->
    R = deep(F, N - 1),
    R = shape(catch last(F, [y])),
    R.

last(error_3, A) -> erlang:error(badarg, A, [{error_info, #{}}]);
last(error_2, A) -> erlang:error(badarg, A);
last(error_1, _) -> erlang:error(badarg);
last(exit_1, A) -> exit(A);
last(throw_1, A) -> throw(A);
last(badarg, A) -> atom_to_list(A);
last(value, A) -> list_to_tuple(A).

shape({'EXIT', {R, [{M, F, A, _} | _]}}) when is_list(A) -> {error, R, M, F, length(A)};
shape({'EXIT', {R, [{M, F, A, _} | _]}}) -> {error, R, M, F, A};
shape({'EXIT', R}) -> {exit, R};
shape(V) -> {value, V}.
