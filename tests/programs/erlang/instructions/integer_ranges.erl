%% Computes with small integers whose ranges follow from their sources: at the ends of a range,
%% where branches with different knowledge join, around loops, in registers that are overwritten,
%% and after tests that fail midway. @stress @fence @always
-module(integer_ranges).
-export([main/0, ends/1, meets/2, loop/2, swapped/2, fails/1, wide/1, signs/1, shifts/1, divided/1, again/2, caught/1, sized/2,
         counted/1, words/1, masks/2, chosen/1, little/1, lengths/2, below/1, large/3]).

main() ->
    Edge = (1 bsl 59) - 1,
    Terms = [0, 1, -1, 127, 128, 255, 256, Edge, Edge + 1, -Edge - 1, -Edge - 2, 1 bsl 64, 1.0, 255.0, -0.0, a, [], "x", {1}, <<1>>, <<1:3>>],
    Bins = [<<>>, <<0>>, <<255>>, <<127, 128>>, <<1, 2, 3>>, <<255, 255, 255, 255>>, <<0:56, 1>>, <<-1:64>>, <<1:63>>, <<7:5, -1:64>>,
            <<16#80, 0, 0, 0, 0, 0, 0, 0>>, <<"hello world, this is plain">>, <<"h", 200, "llo wor">>, <<13, 10, "abcdefghijkl">>,
            <<16#7FFFFFFFFFFFFFFF:64, 0:64>>],
    Subs = lists:append([parts(B) || B <- Bins]),
    Runs = [{ends, 1, Subs}, {fails, 1, Subs}, {wide, 1, Subs}, {signs, 1, Subs}, {shifts, 1, Subs}, {divided, 1, Subs}, {caught, 1, Subs},
            {words, 1, Subs}, {little, 1, Subs}, {below, 1, Subs}, {counted, 1, Subs ++ Terms}, {chosen, 1, Terms}],
    [io:format("~p: ~p~n", [F, [erlang:phash2([out(F, [X]) || X <- L]), length(lists:usort([out(F, [X]) || X <- L]))]]) || {F, 1, L} <- Runs],
    [io:format("~p: ~p~n", [F, [erlang:phash2([out(F, [X, Y]) || X <- Subs, Y <- Terms])]]) || F <- [meets, loop, swapped, again, sized, masks, lengths]],
    [io:format("~p~n", [out(F, [X])]) || F <- [ends, signs, shifts, divided, wide], X <- [<<-1:64>>, <<0:56, 1>>, <<127, 128>>]],
    Larges = [<<(I * 7919):64, (I bsl 66):72, 5, 6>> || I <- lists:seq(1, 99)],
    io:format("large: ~p~n", [erlang:phash2([large(B, 1, 1 bsl 70) || B <- Larges, _ <- lists:seq(1, 60)])]),
    ok.

out(F, Args) -> try apply(?MODULE, F, Args) catch C:R -> {C, R} end.

parts(B) ->
    S = bit_size(B),
    [B | [P || From <- [0, 3, 8], N <- [7, 8, 9, 16, 64, 65], From + N =< S, <<_:From, P:N/bits, _/bits>> <- [B]]].

%% Sums, differences and products at the largest that are small.
ends(<<X:56, Y, _/bits>>) ->
    {X + Y, X - Y, Y - X, X * Y, X * X, Y * Y, (X * 8) - 1, X * 16, -X * 8, X bsl 3, X bsl 4, (X * 8) + Y, (X * 15) + Y};
ends(<<X:32, _/bits>>) -> {X * X, X * X * X, (X bsl 27) - 1, X bsl 28, X + 1 bsl 59};
ends(<<X, _/bits>>) -> {X - 256, X * X * X * X * X * X * X, X + (1 bsl 59) - 1, X - (1 bsl 59)};
ends(<<_:3, X:5, _/bits>>) -> X;
ends(<<X:1, _/bits>>) -> {X, -X};
ends(_) -> none.

%% On one way it is a byte, on the other whatever was given.
meets(B, T) ->
    V = case B of
        <<X, _/bits>> when X < 128 -> X;
        <<_, X:16, _/bits>> -> X - 40000;
        _ -> T
    end,
    W = if V =:= 255 -> 1; V < 200 -> V; true -> {V} end,
    try {V + 1, V * 3, V band 15, V =:= T, V == T, is_integer(V), W} catch error:badarith -> {W, is_number(V), V >= 0, V =< 255} end.

%% The register of the accumulator begins as a byte, and is a large integer or a float in the end.
loop(B, T) -> loop(B, T, case B of <<X, _/bits>> -> X; _ -> 0 end).
loop(<<X, R/bits>>, T, A) when A < 1 bsl 70 -> loop(R, T, A * 1000 + X);
loop(<<_, R/bits>>, T, A) when T > A -> loop(R, T, A / 2);
loop(_, T, A) -> {A, T}.

swapped(<<X, Y:16/signed, _/bits>>, T) ->
    {P, Q} = case X > 100 of true -> {T, X}; false -> {Y, T} end,
    id({Q, P, catch P + Q, catch Q bor P, P < Q, P =:= Q});
swapped(B, T) -> {B, T}.

%% Registers that were written before a later part did not fit.
fails(<<A, B:16, 7:4, C:4, _/bits>>) -> {one, A + B + C};
fails(<<A:12, 255:8, B:4/signed, _/bits>>) -> {two, A - B};
fails(<<A, B, C>>) -> {three, A bxor B, B bor C};
fails(<<A:3, R/bits>>) -> {four, A, R};
fails(R) -> {five, R}.

wide(<<A:7, B:9, C:16, D:32, R/bits>>) -> {A, B, C, D, A + B + C + D, R};
wide(<<A:1, B:2, C:3, D:4, E:5, F:1, _/bits>>) -> [A, B, C, D, E, F, A bor B bor C bor D];
wide(<<A:4, B:4, _/bits>>) -> A * 16 + B;
wide(R) -> R.

signs(<<A:8/signed, B:16/signed-little, C:24/signed, D:16/little, R/bits>>) ->
    {A, B, C, D, A * B, A - C, abs(A), -B, A band 255, C bsr 3, A bor D, B bxor C, A div 3, A rem 7, B div 8, B rem 8, C div -1, R};
signs(<<A:8/signed, _/bits>>) -> {A, A < 0, A + 128, A bsl 51, A bsl 52, -A, A * -1};
signs(<<A:2/signed, _/bits>>) -> A - 1;
signs(_) -> none.

shifts(<<A:8, B:8, R/bits>>) ->
    {A bsl 0, A bsl 51, A bsl 52, A bsr 0, A bsr 4, A bsr 63, A bsr 64, A bsl B, A bsr B, A bsl -1, A bsr -1, (A bsl 51) + B, bnot A, R};
shifts(<<A:8/signed, _/bits>>) -> {A bsl 51, A bsl 52, A bsr 7, A bsr 63};
shifts(_) -> none.

divided(<<A:16/signed, B, C:8/signed, _/bits>>) ->
    {A div 16, A rem 16, A div 10, A rem 10, B div 16, B rem 16, B div 10, B rem 10, B rem 1, B div 1,
     catch A div C, catch A rem C, catch B div (C + 1), (A * 1000) rem 1024, A div (B + 1), A rem 1 bsl 50};
divided(<<A, _/bits>>) -> {A div 2, A rem 2, A rem 300, catch A div (A - A)};
divided(_) -> none.

again(<<X, R/bits>>, T) ->
    V = id(X),
    Z = X band 7,
    U = setelement(1, {T}, V),
    again(R, case Z of 0 -> U; 1 -> Z; 2 -> T; _ -> catch T + X end);
again(_, T) -> T.

%% Behind an exception nothing is known.
caught(B) ->
    <<X, _/bits>> = case B of <<_, _/bits>> -> B; _ -> <<9>> end,
    V = try id(X) / (X - 255) of F -> F catch error:badarith -> X end,
    W = try byte_size(B) + X catch _:_ -> none end,
    {V, W, V == X, is_float(V), catch V + X}.

sized(B, T) ->
    case B of
        <<N, P:N/binary, R/bits>> -> {N, P, R, N + byte_size(P)};
        <<N:3, P:N, _/bits>> -> {N, P, catch P + T};
        _ -> {byte_size(B) + 1, bit_size(B) - 1, catch tuple_size(T) - 1, catch length(T) * 2, catch map_size(T) + 1}
    end.

counted(T) ->
    S = try byte_size(T) catch error:_ -> T end,
    try {S + 1, S * 2, S =:= T} catch error:_ -> {S} end.

words(<<X:56, Y, R/bits>>) when Y =< 127, Y =/= 13, X band 16#80808080808080 =:= 0 ->
    case ((X bxor 16#0D0D0D0D0D0D0D) - 16#01010101010101) band 16#80808080808080 of
        0 -> {plain, words(R)};
        N -> {N, R}
    end;
words(<<X, R/bits>>) when X =< 127 -> [X | words(R)];
words(R) -> R.

masks(<<X:16, Y:8/signed, _/bits>>, T) -> {X band T, T band 255, catch Y band T, (catch T rem 5), catch T rem X, X bor Y, X bxor Y};
masks(<<X, _/bits>>, T) -> {catch X band T, catch (T band 15) + X, catch (T rem 16) * X, catch (T rem 3) bsl 50};
masks(_, _) -> none.

chosen(X) when X =:= 5; X =:= 255 -> X + 1;
chosen(X) when is_integer(X), X >= 0, X =< 255 -> X * 2;
chosen(X) when X >= 0, X =< 255 -> {X, X * 2};
chosen(X) when X > 255, is_integer(X) -> X - 255;
chosen(X) -> {X}.

little(<<A:24/little, B:8/signed-little, C:32/little-signed, _/bits>>) -> {A, B, C, A + C, A * B};
little(<<A:16/little, 1:8, _/bits>>) -> A;
little(<<A:16/native, _/bits>>) -> A bsr 1;
little(<<A:5/little, _/bits>>) -> A;
little(_) -> none.

lengths(B, T) ->
    L = bit_size(B),
    case L > 20 of
        true when L rem 8 =:= 0 -> {L, L div 8, L bsl 40, L bsl 58};
        true -> catch L + T;
        false -> {L, catch element(L, {a, b, T, d, e, f, g, h, i}), catch element(L rem 3 + 1, {T, x, y})}
    end.

below(<<X, R/bits>>) when X >= 48, X =< 57 -> {X - 48, below(R)};
below(<<X, R/bits>>) when X < 0; X > 255 -> {never, X, R};
below(<<X, R/bits>>) when X < 256, X >= 0 -> [X | below(R)];
below(R) -> R.

%% A match that makes a large integer leaves nothing in registers that only the other clause reads.
large(<<_:64, W:72, _:8, T/bits>>, _, B) -> {abs(min(256 - B, W)) + 4, T};
large(<<V:8, 3:2, _/bits>>, _, B) -> {V, B};
large(_, A, B) -> {no, A, B}.

id(X) -> X.
