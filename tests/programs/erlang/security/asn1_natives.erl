%% Decodes and encodes BER and the bits of PER: generated, damaged and invalid input.
-module(asn1_natives).
-export([main/0]).

main() ->
    rand:seed(exsss, {4, 5, 6}),
    Bers = [iolist_to_binary(asn1rt_nif:encode_ber_tlv(value(4))) || _ <- lists:seq(1, 60)],
    io:format("~p~n", [erlang:phash2(Bers)]),
    [io:format("~p~n", [erlang:phash2([decode(B) | [decode(damaged(B)) || _ <- lists:seq(1, 10)]])]) || B <- Bers],
    [io:format("~0p~n", [decode(B)]) || B <- [<<>>, <<1>>, <<48, 128>>, <<48, 128, 0>>, <<48, 128, 0, 0>>, [<<48>>, [0 | <<1>>]],
        foo, <<1:3>>, <<31, 1>>, <<31, 1, 0>>, <<31, 129, 1, 0>>, <<31, 129, 129, 0>>, <<4, 132, 0, 0, 0, 1, 9>>,
        <<4, 133, 1, 0, 0, 0, 1, 9>>, <<4, 255>>, <<4, 129>>, <<4, 128, 0, 0>>, <<48, 3, 2, 1>>, <<48, 3, 2, 2, 1>>]],
    [io:format("~0p~n", [decode(<<(rand:bytes(rand:uniform(12)))/binary>>)]) || _ <- lists:seq(1, 200)],
    [io:format("~0p ~0p~n", [N, decode(nested(N))]) || N <- [1, 2, 60]],
    io:format("~p~n", [element(1, decode(nested(100000)))]),
    [io:format("~0p ~0p~n", [T, asn1rt_nif:encode_ber_tlv(T)]) || T <- [foo, {1, 2}, {1, <<1:3>>}, {-1, <<>>}, {1 bsl 32, <<>>},
        {16#ffffffff, <<>>}, {a, <<>>}, {1, []}, {1, [{1, <<1>>} | x]}, {1, [x]}, {1, [], 3}, {16#2001e, []}, {31, <<>>},
        {128, <<>>}, {16384, <<1>>}, {65535, [{5, <<>>}, {6, []}]}, {4, <<0:(127 * 8)>>}, {4, <<0:(128 * 8)>>}]],
    [io:format("~p~n", [erlang:phash2([bits() || _ <- lists:seq(1, 200)])]) || _ <- lists:seq(1, 20)],
    [io:format("~0p ~0p~n", [P, catch asn1rt_nif:encode_per_complete(P)]) || P <- [[], <<>>, [3], [99], [20, 5, 1], [21, 0, 9, 1],
        [30, 0, 9, 1], [10, 3, 5, 2, 20, 2, 7, 8], [40, 6, 2, 1, 1], [45, 12, 2, 255, 255], [47, 0, 20, 0, 2, 170, 170]]],
    {T, V} = {'OTP-PKIX', catch public_key:pkix_decode_cert(<<48, 3, 2, 1, 1>>, otp)},
    io:format("~p ~p~n", [T, element(1, V)]).

decode(B) ->
    try asn1rt_nif:decode_ber_tlv(B) catch C:R -> {C, R} end.

nested(N) ->
    iolist_to_binary([lists:duplicate(N, [48, 128]), <<2, 1, 5>>, lists:duplicate(N, [0, 0])]).

value(0) -> {tag(), rand:bytes(rand:uniform(20) - 1)};
value(Depth) ->
    case rand:uniform(3) of
        1 -> {tag(), rand:bytes(case rand:uniform(10) of 1 -> 300; _ -> rand:uniform(20) - 1 end)};
        _ -> {tag(), [value(Depth - 1) || _ <- lists:seq(2, rand:uniform(4))]}
    end.

tag() ->
    Number = case rand:uniform(4) of 1 -> rand:uniform(16384) - 1; 2 -> 20 + rand:uniform(30); _ -> rand:uniform(31) - 1 end,
    (rand:uniform(4) - 1) bsl 16 + Number.

damaged(B) ->
    At = rand:uniform(byte_size(B)) - 1,
    <<Front:At/binary, Byte, Rest/binary>> = B,
    case rand:uniform(3) of
        1 -> Front;
        2 -> <<Front/binary, (rand:uniform(256) - 1), Rest/binary>>;
        3 -> <<Front/binary, (lists:nth(rand:uniform(6), [128, 129, 132, 133, 31, 255])), Byte, Rest/binary>>
    end.

bits() ->
    asn1rt_nif:encode_per_complete([instruction(rand:uniform(11)) || _ <- lists:seq(1, rand:uniform(12))]).

%% 0 to N.
r(N) -> rand:uniform(N + 1) - 1.

ones(N) -> [r(1) || _ <- lists:seq(1, N)].

%% Bytes, the last of which has that many bits unused.
bytes(N, Unused) ->
    [rand:bytes(N - 1), (r(255) bsr Unused) bsl Unused].

instruction(1) -> 0;
instruction(2) -> 1;
instruction(3) -> 2;
instruction(4) -> N = r(8), [10, N, r((1 bsl N) - 1)];
instruction(5) -> N = r(10), [20, N, rand:bytes(N)];
instruction(6) -> N = r(300), [21, <<N:16>>, rand:bytes(N)];
instruction(7) -> N = 1 + r(10), U = r(7), [30, U, N, bytes(N, U)];
instruction(8) -> N = 1 + r(300), U = r(7), [31, U, <<N:16>>, bytes(N, U)];
instruction(9) ->
    {Wanted, N} = {r(30), r(20)},
    [lists:nth(rand:uniform(4), [[40, Wanted, N], [41, Wanted, <<N:16>>], [42, <<Wanted:16>>, N], [43, <<Wanted:16, N:16>>]]), ones(N)];
instruction(10) ->
    Wanted = r(60),
    N = (Wanted + 7) div 8,
    [lists:nth(rand:uniform(3), [[45, Wanted, N], [46, <<Wanted:16>>, N], [47, <<Wanted:16, N:16>>]]), rand:bytes(N)];
instruction(11) ->
    N = r(5),
    Wanted = N * 8 + r(20),
    [lists:nth(rand:uniform(3), [[45, Wanted, N], [46, <<Wanted:16>>, N], [47, <<Wanted:16, N:16>>]]), rand:bytes(N)].
