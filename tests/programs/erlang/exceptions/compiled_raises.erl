%% Checks edge cases of exceptions: the size `all` in a register, natives that only raise, called in
%% each way and with each number of arguments, lists that contain a number or something like one,
%% and a native that traps in a tail call. @stress @fence
-module(compiled_raises).
-export([main/0, id/1]).

id(X) -> X.

main() ->
    [io:format("~p ~p~n", [F, R]) || {F, R} <- [{all, all(id(<<"abc">>), id(all))}, {raisers, raisers()}, {lists, lists()},
        {deep, [deep(id(N)) || N <- [0, 1, 6, 7, 8, 9, 60]]}, {again, again()}, {last, lists:usort([length(found(id(<<"aab">>), pattern())) || _ <- lists:seq(1, 300)])}]].

t(F) ->
    try F() catch C:R:S -> {C, R, [{M, N, A, info(L)} || {M, N, A, L} <- lists:sublist(S, 4), M =:= ?MODULE orelse M =:= erlang]} end.
info(L) -> [case X of {line, _} -> line; _ -> X end || X <- L, element(1, X) =/= file].

%% In the code it is all of the value; in a register no size.
all(B, A) ->
    [t(F) || F <- [fun() -> <<B:A/binary>> end, fun() -> <<1, B:A/binary>> end, fun() -> <<B:A/bitstring>> end,
        fun() -> <<"x", B:A/bits, 7:A>> end, fun() -> <<B/binary, B:A/binary>> end, fun() -> <<(id(1)):A>> end,
        fun() -> <<(id(1)):A/float>> end, fun() -> << <<X:A/binary>> || X <- [B, B] >> end,
        fun() -> <<R:A/binary, _/binary>> = B, R end, fun() -> <<_:A/binary>> = B end, fun() -> <<R:A/bitstring>> = B, R end,
        fun() -> <<_:A/unit:8-binary, R/binary>> = B, R end, fun() -> <<B:A/binary-unit:1>> end, fun() -> <<B:A/binary-unit:16>> end,
        fun() -> <<B/binary, B/bits>> end]].

raisers() ->
    [t(F) || F <- [fun() -> error(id(x)) end, fun() -> error(x, id([a, b])) end, fun() -> error(x, id(none)) end,
        fun() -> error(x, [1], id([{error_info, #{cause => c}}])) end, fun() -> error(x, [1], id([bad])) end, fun() -> exit(id(x)) end,
        fun() -> throw(id(x)) end, fun() -> erlang:nif_error(id(x)) end, fun() -> erlang:nif_error(id(x), [1]) end,
        fun() -> erlang:raise(error, id(x), [{m, f, 1, []}]) end, fun() -> erlang:raise(id(bad), x, []) end,
        fun() -> apply(erlang, id(error), [x]) end, fun() -> apply(erlang, id(throw), [x]), ok end, fun() -> (id(fun erlang:exit/1))(x) end,
        fun() -> apply(id(fun erlang:error/2), [x, [1]]), ok end, fun() -> erlang:exit(id(self), x) end, fun() -> erlang:exit(here, x, bad) end,
        fun() -> erlang:error() end, fun() -> element(id(3), {a, b}) end, fun() -> _ = binary_part(id(<<"abc">>), 2, 4), ok end,
        fun() -> try throw(id(a)) after put(t, 1) end end, fun() -> try error(id(a)) catch throw:_ -> 1 end end,
        fun() -> {caught, catch throw(id(v))} end, fun() -> {'EXIT', {R, _}} = (catch error(id(v))), R end, fun() -> catch exit(id(v)) end]].

lists() ->
    [t(fun() -> list_to_integer(id(L)) end) || L <- texts()] ++ [t(fun() -> list_to_integer(id(L), B) end) || B <- [2, 10, 16, 36, 37], L <- texts()]
        ++ [string:to_integer(id(L)) || L <- ["", "x", "-", "-x", "12x", "-12", "+0x", "99999999999", "999999999999", "1234567890123456789012x"]]
        ++ [t(fun() -> binary_to_integer(list_to_binary(id(L))) end) || L <- texts()].
texts() ->
    ["", "0", "-0", "+0", "-", "+", "--1", "+-1", "1-", "12", "-12", "+12", "007", "x", "1x", "fF", "-Zz", "0000000000000000000001", "99999999999",
        "-99999999999", "999999999999", "zzzzzzzzzzz", "zzzzzzzzzzzz", "-zzzzzzzzzzz", "12345678901234567", "123456789012345678",
        "576460752303423487", "576460752303423488", "-576460752303423488", "-576460752303423489", "1234567890123456789012", "1_000", [$1 | $2], [$1 | x],
        [$1, 256], [$1, -49], [$1, a], [$1, 1 bsl 70], [[$1]], [$-, [$1]], "1 ", " 1", "/", ":", "@", "[", "`", "{", a, <<"1">>].

%% Fewer frames than a trace has entries, and more.
deep(N) -> try down(N) catch error:E:S -> {E, length(S), [A || {_, _, A, _} <- S, is_list(A)]} end.
down(0) -> error(bottom);
down(N) -> id(down(N - 1)).

%% Raised again through handlers that do not want it, by the same and by another class.
again() ->
    [t(fun() -> try middle(C, V) catch C:{V, _} -> 1 end end) || {C, V} <- [{throw, 1}, {error, 1}, {exit, 1}]]
        ++ [t(fun() -> try middle(id(C), 1) catch _:R:S -> erlang:raise(throw, R, S) end end) || C <- [throw, error, exit]].
middle(C, V) ->
    try inner(C, V) of X -> {of_, X} catch C:none -> none after put(middle, V) end.
inner(throw, V) -> throw(V);
inner(error, V) -> error(V);
inner(exit, V) -> exit(V).

pattern() -> {ok, P} = re:compile("a"), P.
%% The native traps, and what that returns to drops the frame.
found(S, P) -> {match, L} = matches(S, P), L.
matches(S, P) -> V = id(S), W = id(P), _ = id(x), re:run(V, W, [global]).
