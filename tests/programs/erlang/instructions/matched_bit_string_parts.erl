%% Matches parts of bit strings: copied if they are a few whole bytes, otherwise referenced; of any
%% length, at any offset, in registers of each kind, after parts that match and before others that
%% do not; and integers of both byte orders, signed and unsigned. @stress @fence
-module(matched_bit_string_parts).
-export([main/0, id/1]).

id(X) -> X.

main() ->
    Whole = << <<(I * 37 rem 251)>> || I <- lists:seq(1, 200) >>,
    Heap = id(binary:copy(binary:part(Whole, 0, 40))),
    Odd = begin <<_:3, R/bits>> = id(<<5:3, Whole/binary, 1:1>>), R end,
    All = [Whole, Heap, Odd, <<>>, <<1>>, <<1:1>>, binary:part(Whole, 13, 100), <<Heap/binary, 3:5>>],
    tell(tails, [tail(B, N) || B <- All, N <- lists:seq(0, 100)]),
    tell(tails_of_bits, [bits(B, N) || B <- All, N <- lists:seq(0, 70)]),
    tell(sizes, [sized(B, N, M) || B <- All, N <- [0, 1, 2, 5, 8, 9], M <- lists:seq(-1, 80)]),
    tell(odd_sizes, [catches(fun() -> sized(B, 1, id(M)) end) || B <- All, M <- [a, 1.0, 1 bsl 70, -(1 bsl 70), (1 bsl 58), all, []]]),
    tell(fixed, [fixed(B) || B <- parts(All)]),
    tell(registers, [registers(id(B), 1, 2, 3, 4, 5, 6) || B <- parts(All)]),
    tell(then_fails, [then_fails(B) || B <- parts(All)]),
    tell(same, [same(B, []) || B <- parts(All)]),
    tell(numbers, [numbers(B) || B <- parts(All)]),
    tell(units, [units(B) || B <- parts(All)]),
    tell(words, length(words(binary:copy(<<"some words, more or less long: antidisestablishmentarianism ">>, 400), 0, []))),
    tell(held, held(id(<<1, 2, 3, 4>>), 3000, [])),
    tell(kept, erlang:phash2(kept(binary:copy(Whole, 40), []))).

tell(What, T) ->
    io:format("~p ~p ~p~n", [What, erlang:phash2(T), case is_list(T) of true -> lists:sublist(T, 6); false -> T end]).
catches(F) -> try F() catch C:R -> {C, R} end.
parts(All) -> All ++ [begin <<_:N, R/bits>> = <<0:N, B/bits>>, R end || B <- All, N <- [1, 4, 7, 8, 64]] ++ [binary:copy(<<N>>, N) || N <- lists:seq(0, 20)].

tail(B, N) -> case B of <<_:N/binary, R/binary>> -> {N, R}; <<_:N/binary, R/bits>> -> {bits, N, R}; _ -> none end.
bits(B, N) -> case B of <<X:N/bits, R/bits>> -> {X, R}; _ -> none end.
sized(B, N, M) -> case B of <<_:N/unit:3, X:M/binary, R/bits>> -> {X, bit_size(R)}; <<X:M/bits, _/bits>> -> {bits, X}; _ -> none end.
fixed(<<A:0/binary, B:1/binary, C:7/binary, D:8/binary, E:3/binary, F:9/binary, R/binary>>) -> {A, B, C, D, E, F, R};
fixed(<<A:2/binary, B:3/binary, _:4, C:4/binary, D:5/bits, R/bits>>) -> {A, B, C, D, R};
fixed(<<A:6/binary, R/bits>>) -> {A, R};
fixed(<<A:3/bits, R/bits>>) -> {A, R};
fixed(R) -> R.
registers(<<A:2/binary, B:8, R/bits>>, C, D, E, F, G, H) -> {id(A), B, C, D, E, F, G, H, id(R)};
registers(<<R/bits>>, C, D, E, F, G, H) -> {C, D, E, F, G, H, id(R)}.
then_fails(<<A:4/binary, B:4/binary, 1, R/binary>>) -> {one, A, B, R};
then_fails(<<A:4/binary, 2:16, R/bits>>) -> {two, A, R};
then_fails(<<A:5/bits, 0:3, R:8/binary, _/binary>>) -> {three, A, R};
then_fails(<<A:2/binary, R/bits>>) -> {four, A, R};
then_fails(_) -> none.
same(<<B:1/binary, R/bits>>, A) -> same(R, [B | A]);
same(R, A) -> {R, length(A), lists:sublist(A, 3)}.
numbers(B) ->
    [case B of <<X:8/signed, Y:16/little, Z:24/signed-little, _/bits>> -> {X, Y, Z}; _ -> none end,
     case B of <<X:3/signed, Y:13/signed, Z:56/little, R/bits>> -> {X, Y, Z, R}; _ -> none end,
     case B of <<X:7/little, Y:17/little-signed, R/bits>> -> {X, Y, R}; _ -> none end,
     case B of <<X:56/signed, Y:8/signed-little, R/binary>> -> {X, Y, R}; _ -> none end,
     case B of <<X:32/native, Y:32/signed-native, Z:64/little, _/bits>> -> {X, Y, Z}; _ -> none end,
     case B of <<X:56, Y:56/signed-little, Z:40/signed-little, _/bits>> -> {X, Y, Z}; _ -> none end].
units(B) ->
    [case B of <<_, R/binary-unit:16>> -> R; _ -> none end, case B of <<_:4, R/binary-unit:4>> -> R; _ -> none end,
     case B of <<X:3/binary-unit:5, R/binary-unit:3>> -> {X, R}; _ -> none end].
words(B, N, A) ->
    case B of
        <<W:N/binary, C, R/binary>> when C =:= $\s; C =:= $, -> words(R, 0, [W | A]);
        <<_:N/binary, _, _/binary>> -> words(B, N + 1, A);
        _ -> A
    end.
held(_, 0, A) -> lists:sum([byte_size(X) || X <- A]);
held(<<X:3/binary, R/binary>>, N, A) -> held(<<R/binary, X/binary>>, N - 1, [X, R | lists:sublist(A, 20)]).
kept(<<A:10/binary, B:70/binary, R/binary>>, L) -> kept(R, [A, B | L]);
kept(R, L) -> [R | L].
