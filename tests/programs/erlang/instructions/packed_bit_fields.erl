%% Builds binaries from integers of a few bits that add up to whole bytes, after each other and
%% after other segments, and with elements of literal tuples. @stress @fence
-module(packed_bit_fields).
-export([main/0, four/4, odd/3, mixed/4, wide/3, long/2, onto/2, onto/3, bits/2, constants/1, part/2, table/1, pair/2, known/1, hexed/1, unhexed/1]).

main() ->
    Edge = (1 bsl 59) - 1,
    Vs = [0, 1, 7, 8, 15, 16, -1, -8, 255, 256, 65535, Edge, Edge + 1, -Edge - 2, 1 bsl 70, -(1 bsl 70), 1.0, a, <<1>>],
    Few = [0, 5, -3, 300, 1 bsl 65, 2.5],
    show(four, [[A, B, C, D] || A <- Few, B <- Few, C <- Vs, D <- Few]),
    show(odd, [[A, B, C] || A <- Vs, B <- Few, C <- Vs]),
    show(mixed, [[A, B, C, D] || A <- Vs, B <- [<<>>, <<"abc">>, <<1:3>>, x], C <- Few, D <- [$a, 233, 16#D800, 16#10FFFF, -1]]),
    show(wide, [[A, B, C] || A <- Vs, B <- Vs, C <- Few]),
    show(long, [[A, B] || A <- Vs, B <- Vs]),
    show(bits, [[A, B] || A <- Vs, B <- Few]),
    show(constants, [[A] || A <- Vs]),
    show(part, [[A, B] || A <- Vs, B <- Vs]),
    show(table, [[A] || A <- Vs ++ [2, 3, 4, -2, 5]]),
    show(pair, [[A, B] || A <- [0, 1, 2, 3, a, 1.0, 1 bsl 70], B <- [{}, {x}, {x, y}, [], <<>>, #{}]]),
    show(known, [[B] || B <- [<<>>, <<0>>, <<1, 2, 3>>, <<200, 15, 255>>, <<3:7>>]]),
    show(onto, [[A, B] || A <- Few, B <- Few]),
    All = list_to_binary(lists:seq(0, 255)),
    io:format("~p ~p~n", [hexed(All) =:= binary:encode_hex(All), unhexed(hexed(All)) =:= All]),
    Longer = lists:foldl(fun(I, Acc) -> onto(Acc, I, I * 3) end, <<>>, lists:seq(1, 5000)),
    io:format("~p ~p~n", [byte_size(Longer), erlang:phash2(Longer)]).

show(F, Argss) ->
    L = [try apply(?MODULE, F, As) catch C:R -> {C, R} end || As <- Argss],
    io:format("~p: ~p ~p ~p~n", [F, length(L), length(lists:usort(L)), erlang:phash2(L)]).

four(A, B, C, D) -> <<A:4, B:4, C:2, D:6>>.
odd(A, B, C) -> <<A:3, B:11, C:2>>.
mixed(A, B, C, D) -> <<A:1, C:7, B/binary, D/utf8, A:12, C:20, "xy", C:5, A:3>>.
wide(A, B, C) -> <<A:40, B:16, C:8, A:33, B:15, C:16, A:60, B:4>>.
long(A, B) -> <<A:56, B:8, A:64, B:7, A:57>>.
bits(A, B) -> {<<A:3, B:6>>, <<A:1>>, <<A:8/little, B:16/little>>, <<A:4/signed, B:4/signed>>, <<A:12/little, B:4>>}.
constants(A) -> <<15:4, A:4, 1:1, 0:3, -1:4, A:8, 16#ABCD:16, 5:3, A:5>>.
part(A, B) -> {byte_size(<<A:4, B:4>>), <<"prefix", A:4, B:4, "suffix">>, <<A:2, B:2, A:2, B:2, A:8>>}.

onto(A, B) -> onto(onto(<<>>, A, B), B, A).
onto(Acc, A, B) -> <<Acc/binary, A:4, B:12, A:3, B:5, (A + 1):8>>.

table(I) -> {element(I, {zero, one, {two}, "three"}), catch element(I + 1, {10, 20, 30})}.
pair(I, T) -> {element(I, T), element(1, {T})}.

%% The number is known to lie within the tuple, or may lie beside it.
known(<<X, Y:4, Z:4, R/bits>>) ->
    {element((X band 3) + 1, {a, b, c, d}), catch element(Y, {1, 2, 3, 4, 5}), catch element(Z - 3, {p, q}), R};
known(<<X:7, R/bits>>) -> {element(X rem 2 + 1, {even, odd}), catch element(X, {}), R};
known(_) -> element(2, {no, yes}).

hexed(B) -> hexed(B, <<>>).
hexed(<<A:4, B:4, C:4, D:4, R/binary>>, Acc) -> hexed(R, <<Acc/binary, (digit(A)):8, (digit(B)):8, (digit(C)):8, (digit(D)):8>>);
hexed(<<>>, Acc) -> Acc.
digit(N) -> element(N + 1, {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $A, $B, $C, $D, $E, $F}).
unhexed(B) -> unhexed(B, <<>>).
unhexed(<<A, B, C, D, R/binary>>, Acc) -> unhexed(R, <<Acc/binary, (value(A)):4, (value(B)):4, (value(C)):4, (value(D)):4>>);
unhexed(<<>>, Acc) -> Acc.
value(C) when C >= $0, C =< $9 -> C - $0;
value(C) -> C - $A + 10.
