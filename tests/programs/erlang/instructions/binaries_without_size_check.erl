%% Builds and reads bit strings whose sizes need no computation: UTF-8 characters at byte
%% boundaries, segments of whole bytes, binaries that grow in place. Covers the simple case of each,
%% its limits, and the cases just outside. @stress @shared @fence
-module(binaries_without_size_check).
-export([main/0, id/1]).

id(X) -> X.

main() ->
    [io:format("~p ~p~n", [F, R]) || {F, R} <- [
        {characters, [characters(P) || P <- [0, 3, 8]]}, {bytes, bytes()}, {short, short()}, {skipped, [skip(id(T), 0) || T <- texts()]},
        {read, [catches(fun() -> read(id(T), 0) end) || T <- texts()]}, {built, [catches(fun() -> built(id(T), <<>>) end) || T <- lists()]},
        {integers, [catches(fun() -> integers(id(V)) end) || V <- [0, 1, -1, 255, 256, -129, 1 bsl 40, -(1 bsl 58), 1 bsl 63, 1 bsl 70, a, 1.0]]},
        {sizes, [catches(fun() -> sized(id(V), id(S)) end) || V <- [1, -2, 1 bsl 80], S <- [0, 1, 7, 8, 9, 63, 64, 65, 72, -1, -8, 1 bsl 70, a]]},
        {units, [catches(fun() -> united(id(V), id(S)) end) || V <- [1, -2], S <- [0, 1, 2, 3, 5, -1]] ++ [catches(fun() -> <<V:S/unit:64>> end) || V <- [id(1), id(-1)], S <- [id((1 bsl 58) + 1), id((1 bsl 59) - 1), id(1 bsl 61)]]},
        {parts, [catches(fun() -> parts(id(B), id(S)) end) || B <- binaries(), S <- [0, 1, 3, 65, 1000, -1, a]]},
        {others, [catches(fun() -> others(id(B), id(3)) end) || B <- binaries()]}, {limits, limits()},
        {twice, twice(id(<<"start">>))}, {itself, itself(id(<<"ab">>), 12)}, {behind, [behind(id(B)) || B <- binaries() ++ [id(<<5:3>>)]]},
        {matched, matched(id(<<"abc">>), 400)}, {grown, grown(20000, <<>>)}, {mixed, mixed(3000, <<>>, [])}, {comprehended, comprehended(lists:seq(1, 3000))},
        {sent, sent(id(<<"sent">>), 40)}, {kept, kept(2000, <<>>, [])}, {large, large(300, <<>>)}, {unaligned, unaligned(1000, <<>>)}]],
    ok.

%% All kinds of characters, at the position P and at the end.
points() -> [0, 1, 127, 128, 129, 16#7FF, 16#800, 16#FFF, 16#1000, 16#D7FF, 16#E000, 16#FFFD, 16#FFFE, 16#FFFF, 16#10000, 16#FFFFF, 16#100000, 16#10FFFF].
characters(P) -> erlang:phash2([{one(<<0:P, C/utf8, T/binary>>, P), C} || C <- points(), T <- [<<>>, <<1>>, <<1, 2, 3>>, <<"tail">>]]).
one(B, P) -> <<_:P, C/utf8, R/bits>> = B, {C, R}.

%% What any two, three and four bytes are.
bytes() ->
    Some = [0, 16#7F, 16#80, 16#81, 16#8F, 16#90, 16#9F, 16#A0, 16#BF, 16#C0, 16#C1, 16#C2, 16#DF, 16#E0, 16#ED, 16#EF, 16#F0, 16#F4, 16#F5, 16#FF],
    Two = [what(<<A, B>>) || A <- lists:seq(0, 255), B <- Some],
    Four = [what(<<A, B, C, D>>) || A <- [16#C2, 16#E0, 16#E1, 16#ED, 16#EF, 16#F0, 16#F1, 16#F4, 16#F5], B <- Some, C <- [0, 16#80, 16#BF, 16#C0], D <- [0, 16#80, 16#BF, 16#C0]],
    {erlang:phash2(Two), erlang:phash2(Four), length([C || C <- Two ++ Four, is_integer(C)])}.
what(<<C/utf8, _/binary>>) -> C;
what(_) -> none.
short() -> [what(id(B)) || B <- [<<>>, <<16#C3>>, <<16#E2, 16#82>>, <<16#F0, 16#9F, 16#98>>, <<1:7>>, <<16#C3, 1:7>>, <<16#C3, 16#A9>>, <<16#C3, 16#A9, 1:1>>]].

texts() ->
    [<<>>, <<"plain">>, <<"na\x{ef}ve \x{4e16}\x{754c} \x{1f600}."/utf8>>, <<"bad \xff">>, <<"end \xe2\x82">>, <<"\x{1f600}"/utf8>>, <<"half \xed\xa0\x80 pair">>].
read(<<C/utf8, R/binary>>, S) -> read(R, S + C);
read(<<>>, S) -> S.
skip(<<_/utf8, R/binary>>, N) -> skip(R, N + 1);
skip(R, N) -> {N, R}.

lists() -> ["plain", [16#E9, 16#4E16, 16#1F600, $.], [16#D800], [16#110000], [-1], [a], [1.0], lists:seq(100, 700), [1 bsl 70]].
built([C | T], B) -> built(T, <<B/binary, C/utf8>>);
built([], B) -> {byte_size(B), erlang:phash2(B), <<(hd(unicode:characters_to_list(B)))/utf8>>}.

integers(V) -> {<<V>>, <<V:16>>, <<V:24>>, <<V:32, V:40>>, <<V:48, V:56>>, <<V:64>>, <<V/signed>>, <<V:16/little>>, <<V:12, V:4>>, <<V:72>>, <<"x", V:8, "y", V:64>>}.
sized(V, S) -> {<<V:S>>, <<"a", V:S, "b">>}.
united(V, S) -> {<<V:S/unit:8>>, <<V:S/unit:64>>, <<V:S/unit:3>>}.

binaries() -> [<<>>, <<"ab">>, <<"0123456789">>, binary:copy(<<"x">>, 64), binary:copy(<<"y">>, 65), binary:part(binary:copy(<<"z">>, 300), 7, 20), part(), list_to_binary(lists:seq(1, 200)), <<5:3>>, a].
%% A part that begins within a byte.
part() -> <<_:3, P:4/binary, _/bits>> = id(<<"abcdefgh">>), P.
parts(B, S) -> {<<"<", B/binary, ">">>, <<B:S/binary, 1>>}.
others(B, S) -> {<<B/bits, 1:1>>, <<1:1, B/bits>>, <<B:S/binary-unit:2>>, <<1.5:32/float, B/binary>>}.
%% Sizes about those up to which binaries lie on the heap.
limits() -> [begin B = binary:copy(<<"x">>, N), X = <<B/binary, N:24, "yz">>, Y = <<N:8, B/binary>>, {byte_size(X), byte_size(Y), erlang:phash2({X, Y})} end || N <- [0, 1, 55, 56, 57, 58, 59, 60, 62, 63, 64, 65, 300]].

%% Two that begin alike: what was written behind the one is not the other's.
twice(B) ->
    A = <<B/binary, "longer than a small one">>, X = <<A/binary, 1>>, Y = <<A/binary, 2>>, Z = <<A/binary, 3, 4>>, V = <<X/binary, 5>>, W = <<X/binary, 6>>,
    {A, X, Y, Z, V, W}.
itself(B, 0) -> {byte_size(B), erlang:phash2(B)};
itself(B, N) -> itself(<<B/binary, B/binary>>, N - 1).
%% Onto others than those that grow.
behind(B) when is_bitstring(B) -> X = <<B/bits, 7>>, Y = <<X/bits, 1:3>>, Z = <<Y/bits, 8, "end">>, {X, Y, bit_size(Z), Z, catches(fun() -> <<B/binary, 1>> end)};
behind(B) -> catches(fun() -> <<B/binary, 1>> end).

%% It is read while it grows.
matched(B, 0) -> {byte_size(B), erlang:phash2(B)};
matched(<<C, R/binary>> = B, N) -> matched(<<B/binary, (C + N), (byte_size(R)):16>>, N - 1).

grown(0, B) -> {byte_size(B), erlang:phash2(B)};
grown(N, B) -> grown(N - 1, <<B/binary, N, "k", (N band 16#7FF)/utf8, N:24, (integer_to_binary(N))/binary>>).

%% Others are made between, and kept.
mixed(0, B, L) -> {byte_size(B), erlang:phash2({B, L})};
mixed(N, B, L) ->
    X = <<N:32, "k">>, Y = <<X/binary, (lists:nth(1 + N rem 9, points()))/utf8>>,
    mixed(N - 1, <<B/binary, Y/binary, 0>>, case N rem 7 of 0 -> [Y, B | L]; _ -> [X | lists:sublist(L, 60)] end).
comprehended(L) -> X = << <<N:16, (N band 16#FF)>> || N <- L >>, Y = << <<N/utf8>> || N <- L >>, Z = << <<N:3>> || N <- L >>, erlang:phash2({X, Y, Z}).

%% Each grows it on from what the other has.
sent(B, N) -> P = spawn_link(fun() -> answer() end), sent(P, B, N).
sent(P, B, 0) -> P ! stop, {byte_size(B), erlang:phash2(B)};
sent(P, B, N) -> P ! {self(), B}, X = <<B/binary, "mine", N>>, receive {P, Y} -> sent(P, case N rem 3 of 0 -> X; _ -> Y end, N - 1) end.
answer() -> receive {From, B} -> From ! {self(), <<B/binary, "yours, which is longer", 1:16>>}, answer(); stop -> ok end.

%% Beginnings of it are kept, and grown later.
kept(0, _, L) -> {length(L), erlang:phash2([<<X/binary, 1, 2>> || X <- L] ++ [<<X/binary, 3>> || X <- L])};
kept(N, B, L) -> kept(N - 1, <<B/binary, N:16>>, case N rem 50 of 0 -> [B | L]; _ -> L end).
large(0, B) -> {byte_size(B), erlang:phash2(B)};
large(N, B) -> large(N - 1, <<B/binary, (binary:copy(<<N>>, 3000))/binary, N:8>>).
unaligned(0, B) -> {bit_size(B), erlang:phash2(B)};
unaligned(N, B) -> unaligned(N - 1, <<B/bits, N:3, N:8, 1:5>>).

catches(F) -> try F() catch C:R -> {C, R} end.
