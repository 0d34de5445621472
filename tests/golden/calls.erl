%% Calls and frames.
-module(calls).
-export([local/1, last/1, external/1, external_last/1, frame/2, trim/3, swap/2, recursive/2, native_last/1, native_body/1]).

local(X) -> recursive(X, 1) + 1.
last(X) -> recursive(X, 1).
external(X) -> [lists:sum(X)].
external_last(X) -> lists:sum(X).
frame(X, Y) -> {recursive(X, Y), recursive(Y, X), X, Y}.
trim(X, Y, Z) -> A = recursive(X, Y), B = recursive(A, Z), recursive(B, A).
swap(X, Y) -> recursive(Y, X).
recursive(0, A) -> A;
recursive(N, A) -> recursive(N - 1, A + N).
native_last(X) -> atom_to_list(X).
native_body(X) -> [atom_to_list(X), erlang:setelement(1, X, a)].
