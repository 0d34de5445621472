%% Calls at which random ones have found the runtimes to differ.
%% @stress
-module(e_found).
-export([main/0]).

main() ->
    %% A sum beyond its modulus is brought within it by a binary, even an empty one.
    [io:format("~w ~w: ~w~n", [S, L, erlang:adler32(S, L)])
     || S <- [0, 1, 65520, 65521, 268435455, 16#FFFFFFFF], L <- [[], "", <<>>, [<<>>], [[] | <<>>], [<<>>, <<>>], "a", [<<>>, $a], [$a | <<>>], <<1:4, 2:4>>]],
    %% Where a binary is one of the parts, or becomes a part of one.
    Long = binary:copy(<<"0123456789">>, 300),
    <<_:3, Odd/bits>> = Long,
    Bits = [binary:part(Long, 0, N) || N <- [63, 64, 65, 66, 255, 256, 257, 3000]] ++ [<<0:(N * 8), 1:3>> || N <- [63, 64, 65, 66]] ++ [<<0:3>>]
        ++ [begin <<R:N/bits, _/bits>> = Odd, R end || N <- [64 * 8, 65 * 8, 65 * 8 + 3]] ++ [begin <<_:8, R:N/bits, _/bits>> = Long, R end || N <- [64 * 8, 65 * 8, 65 * 8 + 3]],
    [io:format("~w: ~w~n", [bit_size(B), [sizes(T) || T <- [B, [B, B], {B, "text", [B | B]}, #{a => B}]]]) || B <- Bits],
    Pieces = ["", "a", lists:duplicate(100, $x), lists:duplicate(255, $x), <<>>, <<"ab">>] ++ [binary:part(Long, 1, N) || N <- [100, 127, 128, 200, 255, 256, 257, 300, 511, 512, 513, 2999]]
        ++ [begin <<R:N/bytes, _/bits>> = Odd, R end || N <- [100, 255, 256, 400, 600]],
    [io:format("~w ~w ~w~n", [iolist_size(A), iolist_size(B), parts(L)]) || A <- Pieces, B <- Pieces, L <- [[A, B], [A, B | <<"end">>], [A, [B, A], $b]]],
    [io:format("~w~n", [parts([lists:duplicate(N, P)])]) || N <- [30, 33, 40, 100, 200], P <- [$a, <<"a">>, <<"0123456789">>, binary:part(Long, 0, 250), binary:part(Long, 0, 256)]],
    %% What can't be a character is told before what is no character data, if it comes before.
    [io:format("~w ~w: ~0p~n", [F, A, try apply(unicode, F, A) of R -> R catch C:E -> {C, E} end])
     || F <- [characters_to_binary, characters_to_list], X <- [-1, 1 bsl 70, -(1 bsl 63), 1.5, a, 16#110000, 16#D800, -(1 bsl 59) - 1], T <- [2.4, [], [b], <<"x">>, "ok"],
        L <- [[X | T], ["a", X | T], [[X] | T], [<<"b">>, [X] | T], [[X | 2.5], "k"]], A <- [[L], [L, latin1]]],
    [io:format("~w: ~0p~n", [T, try erlang:dt_restore_tag(T) catch C:E -> {C, E} end]) || T <- [true, false, {1, []}, a, []]].

sizes(T) ->
    L = erlang:term_to_iovec(T),
    true = iolist_to_binary(L) =:= term_to_binary(T),
    [byte_size(B) || B <- L].

parts(L) ->
    V = erlang:iolist_to_iovec(L),
    true = iolist_to_binary(V) =:= iolist_to_binary(L),
    [byte_size(B) || B <- V].
