%% Builds binaries with the instructions of OTP 24 and before, and checks results and errors.
-module(binary_ops_before_otp_25).
-if(?OTP_RELEASE =< 25).
-compile(r24).
-endif.
-export([main/0, id/1]).
id(X) -> X.
main() ->
    io:format("~p~n", [[fixed(1, 2), fixed(-1, 70000), bits(5, 9), string(258, <<"xyz">>)]]),
    io:format("~p~n", [[sized(3, N) || N <- [0, 1, 7, 8, 64, 65, 200]]]),
    io:format("~p~n", [[floats(1.5), floats(7), little(16#123456)]]),
    io:format("~p~n", [[texts(C, 16#20AC) || C <- [$a, 16#E9, 16#10FFFF]]]),
    io:format("~p~n", [append(lists:seq(1, 300), <<>>)]),
    io:format("~p~n", [append(lists:seq(1, 5), <<1:4>>)]),
    io:format("~p~n", [{each(<<"a b&c">>), sixes(<<"abcdefgh">>), odd(<<1, 2, 255>>), parts([<<"ab">>, <<>>, <<"c">>])}]),
    io:format("~p~n", [guarded([<<1>>, a, <<2:3>>, <<1, 2, 3>>, 5])]),
    %% Same result and operand; one part of the binary in itself; a binary that others hold too.
    B = append([1, 2, 3], <<>>),
    C = [twice(B), twice(B), B],
    io:format("~p ~p~n", [C, [byte_size(X) || X <- C]]),
    Fails = [
        fun() -> fixed(id(a), 1) end,
        fun() -> fixed(1, id(2.0)) end,
        fun() -> string(id(1), id([])) end,
        fun() -> string(id(1), id(<<1:3>>)) end,
        fun() -> sized(1, id(-1)) end,
        fun() -> sized(a, id(8)) end,
        fun() -> sized(1, id(1 bsl 62)) end,
        fun() -> sized(1, id(1 bsl 80)) end,
        fun() -> sized(1, id(x)) end,
        fun() -> floats(id(x)) end,
        fun() -> floats(id(1 bsl 2000)) end,
        fun() -> texts(id(16#D800), $a) end,
        fun() -> texts($a, id(16#110000)) end,
        fun() -> texts(id(-1), id(a)) end,
        fun() -> append(id([a]), <<>>) end,
        fun() -> append(id([1]), id(x)) end,
        fun() -> append(id([1]), id(<<1:3>>)) end,
        fun() -> part(id(<<1, 2>>), id(3)) end,
        fun() -> part(id(<<1, 2>>), id(-3)) end,
        fun() -> parts([<<1>>, id(b)]) end,
        fun() -> parts([<<1>>, id(<<1:1>>)]) end
    ],
    [io:format("~p~n", [fails(F)]) || F <- Fails],
    io:format("~p~n", [many(2000, [])]).

fails(F) ->
    try F() catch K:V:S -> {K, V, [{N, A, length(Info)} || {?MODULE, N, A, Info} <- lists:sublist(S, 1)], [E || {_, _, _, I} <- S, {error_info, E} <- I]} end.
fixed(A, B) -> <<A:16, B:32, 7, "abc">>.
bits(A, B) -> <<A:3, B:7, 1:1>>.
string(A, B) -> <<A:16, "head", B/binary, "tail", 0:64>>.
sized(A, N) -> <<A:N>>.
floats(F) -> <<F/float, F:32/float-little, 1>>.
little(I) -> <<I:24/little, I:48/little-signed, I:13>>.
texts(C, D) -> <<C/utf8, D/utf16, C/utf32, D/utf8, D/utf16-little>>.
append([I | T], Acc) -> append(T, <<Acc/bitstring, I:16, 255>>);
append([], Acc) -> Acc.
twice(B) -> <<B/binary, B/binary, 1>>.
part(B, N) -> <<B:N/binary, 0>>.
each(B) -> << <<C, $;>> || <<C>> <= B >>.
sixes(B) -> << <<(C band 63):6>> || <<C>> <= B >>.
odd(B) -> << <<C:N>> || <<C>> <= B, N <- [1, 3, 12] >>.
parts(L) -> << <<P/binary, 1:8>> || P <- L >>.
guarded(L) -> [case X of _ when <<X/binary, 1>> =:= <<1, 1>> -> one; _ when byte_size(<<X/bitstring>>) > 2 -> long; _ -> other end || X <- L].
many(0, Acc) -> erlang:phash2(Acc);
many(N, Acc) ->
    T = {N, <<N:32, "of", (integer_to_binary(N))/binary>>, [N]},
    many(N - 1, [<<(element(2, T))/binary, N:7, 0:1>>, T | lists:sublist(Acc, 40)]).
