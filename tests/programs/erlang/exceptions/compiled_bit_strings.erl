%% Machine code matches and builds bit strings at unaligned positions and near their ends, with
%% values that do not fit, and binaries that grow in place, are kept in between, and are shared.
%% @stress @fence
-module(compiled_bit_strings).
-export([main/0]).

main() ->
    Texts = [<<>>, <<"plain">>, <<"na", 239/utf8, "ve"/utf8>>, <<16#4e16/utf8, 16#1f600/utf8, "x">>, <<16#C3>>, <<16#E4, 16#B8>>, <<16#F0, 16#9F, 16#98>>,
             <<255, 1>>, <<16#ED, 16#A0, 16#80>>, <<16#C0, 16#80>>, <<16#F4, 16#90, 16#80, 16#80>>, <<"abc", 1:3>>],
    rounds(fun() -> [text(T) || T <- Texts] end, 100),
    io:format("~p~n", [[text(T) || T <- Texts]]),
    Data = [<<N:M>> || {N, M} <- [{0, 0}, {1, 1}, {5, 7}, {255, 8}, {16#1234, 16}, {16#12345, 20}, {16#123456, 24}, {16#12345678, 32}, {16#123456789a, 40},
                                 {16#123456789abc, 48}, {16#123456789abcde, 56}, {16#123456789abcdef0, 64}, {16#123456789abcdef012, 72}, {1, 200}]],
    rounds(fun() -> [data(D) || D <- Data] end, 100),
    io:format("~p~n", [[data(D) || D <- Data]]),
    io:format("~p~n", [[data(shift(D)) || D <- Data]]),
    Values = [0, 65, 127, 128, 255, 256, -1, -129, 16#7ff, 16#800, 16#d800, 16#ffff, 16#10000, 16#110000, 1 bsl 60, -(1 bsl 70), 1.5, a, <<"bin">>, <<1:3>>,
              binary:copy(<<"long ">>, 30), []],
    rounds(fun() -> [built(V) || V <- Values] end, 50),
    [io:format("~P~n", [built(V), 60]) || V <- Values],
    rounds(fun() -> grown() end, 20),
    io:format("~p~n", [grown()]).

rounds(F, 0) -> F();
rounds(F, N) -> F(), F(), rounds(F, N - 1).

text(T) -> {points(T, []), skipped(T, 0), words(T, <<>>)}.
points(<<C/utf8, R/binary>>, L) -> points(R, [C | L]);
points(R, L) -> {R, L}.
skipped(<<_/utf8, R/binary>>, N) -> skipped(R, N + 1);
skipped(R, N) -> {bit_size(R), N}.
words(<<C, R/bits>>, A) when C >= $a, C =< $z -> words(R, <<A/binary, (C - 32)>>);
words(<<C/utf8, R/bits>>, A) -> words(R, <<A/binary, C/utf8, C/utf8>>);
words(_, A) -> A.

shift(D) -> <<_:3, R/bits>> = <<5:3, D/bits>>, R.
data(D) -> {sizes(D), seven(D), skips(D, bit_size(D) div 9), exact(D)}.
sizes(<<A:8, R/bits>>) -> {8, A, s16(R)};
sizes(R) -> R.
s16(<<A:16, R/bits>>) -> {16, A, s24(R)};
s16(R) -> R.
s24(<<A:24, R/bits>>) -> {24, A, s32(R)};
s24(<<A:13, _/bits>>) -> {13, A};
s24(R) -> R.
s32(<<A:32/signed, R/bits>>) -> {32, A, s40(R)};
s32(<<A:32/little, R/bits>>) -> {32, A, s40(R)};
s32(R) -> R.
s40(<<A:40, R/bits>>) -> {40, A, R};
s40(R) -> R.
seven(<<A:56, R/bits>>) when A band 16#80808080808080 =:= 0 -> {ascii, A, seven(R)};
seven(<<A:48, R/bits>>) -> {48, A, seven(R)};
seven(<<A:40, R/bits>>) -> {40, A, seven(R)};
seven(<<A:1, R/bits>>) -> {1, A, R};
seven(R) -> R.
skips(D, N) ->
    case D of
        <<_:N/bytes, X, _/bits>> -> {byte, X};
        <<_:N, X:1, _/bits>> -> {bit, X};
        _ -> none
    end.
exact(<<1:1>>) -> one;
exact(<<255>>) -> ff;
exact(<<16#1234:16>>) -> x1234;
exact(<<16#123456789abcde:56>>) -> seven;
exact(_) -> other.

built(V) ->
    [t(fun() -> <<V>> end), t(fun() -> <<V:16, 1, V:24>> end), t(fun() -> <<V:64>> end), t(fun() -> <<V:32/signed, V:56>> end),
     t(fun() -> <<V/utf8>> end), t(fun() -> <<"a string of the code", V/utf8, 0>> end), t(fun() -> <<V/binary>> end),
     t(fun() -> <<"<", V/binary, ">", V/binary, 1:16>> end), t(fun() -> <<V:12>> end), t(fun() -> <<V/bits, 7:3>> end), t(fun() -> <<V:16/little>> end)].

%% A binary that grows, with parts of it kept, and one that two go on from.
grown() ->
    A = grow(300, <<>>),
    B = <<A/binary, "b">>,
    C = <<A/binary, "cc", 16#4e16/utf8>>,
    D = <<B/binary, C/binary>>,
    {byte_size(A), erlang:phash2(A), binary:part(B, byte_size(B) - 3, 3), binary:part(C, byte_size(C) - 6, 6), erlang:phash2(D), kept(50, <<>>, [])}.
grow(0, B) -> B;
grow(N, B) when N rem 7 =:= 0 -> grow(N - 1, <<B/binary, "seven", N:16>>);
grow(N, B) when N rem 11 =:= 0 -> grow(N - 1, <<B/binary, (integer_to_binary(N))/binary>>);
grow(N, B) when N rem 13 =:= 0 -> grow(N - 1, <<B/binary, <<>>/binary>>);
grow(N, B) -> grow(N - 1, <<B/binary, N, (N * 3)/utf8>>).
kept(0, B, L) -> {erlang:phash2(L), byte_size(B)};
kept(N, B, L) -> C = <<B/binary, N>>, kept(N - 1, C, [C, <<B/binary, "other">> | L]).

t(F) -> try F() catch C:R -> {C, R} end.
