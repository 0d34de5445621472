%% Checks ciphers of module crypto in their modes, at once and in parts, padding, authentication,
%% and errors. @stress
-module(crypto_ciphers).
-export([main/0]).
-compile([nowarn_deprecated_function]).

main() ->
    Blocks = [aes_128_cbc, aes_192_cbc, aes_256_cbc, aes_128_ecb, aes_192_ecb, aes_256_ecb, des_ede3_cbc],
    Streams = [aes_128_ofb, aes_192_ofb, aes_256_ofb, aes_128_cfb8, aes_192_cfb8, aes_256_cfb8, aes_128_cfb128, aes_192_cfb128,
               aes_256_cfb128, aes_128_ctr, aes_192_ctr, aes_256_ctr, des_ede3_cfb, chacha20],
    Sealed = [aes_128_gcm, aes_192_gcm, aes_256_gcm, aes_128_ccm, aes_192_ccm, aes_256_ccm, chacha20_poly1305],
    Known = crypto:supports(ciphers),
    show(known, fun() -> (Blocks ++ Streams ++ Sealed) -- Known end),
    [show({info, C}, fun() -> crypto:cipher_info(C) end) || C <- Blocks ++ Streams ++ Sealed ++ [none, aes_cbc, "aes"]],
    [one_time(C, N) || C <- Blocks, N <- [0, 16, 48, 16000]],
    [one_time(C, N) || C <- Streams, N <- [0, 1, 7, 16, 33, 64, 200, 70000]],
    [pieces(C) || C <- Blocks ++ Streams],
    [padded(C, P, N) || C <- [aes_128_cbc, des_ede3_cbc, aes_256_ecb, aes_128_ctr], P <- [undefined, none, zero, pkcs_padding],
                        N <- [0, 5, 8, 16, 20, 33]],
    show(random, fun() ->
        [byte_size(crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), bytes(N), [{padding, random}])) || N <- [0, 1, 16, 17]]
    end),
    [unpadded(P, N) || P <- [undefined, none, zero, random, pkcs_padding], N <- [0, 5, 16, 20, 32]],
    %% Counters that overflow.
    [show({overflow, C}, fun() -> hash(crypto:crypto_one_time(C, bytes(key(C)), binary:copy(<<255>>, 16), binary:copy(<<0>>, 300), true)) end)
     || C <- [aes_128_ctr, chacha20]],
    [sealed(C, Iv, A, N, T) || C <- Sealed, Iv <- [7, 12, 13], A <- [0, 5, 70000], N <- [1, 16, 1000], T <- [4, 16]],
    [show({empty, C}, fun() -> hex(element(2, crypto:crypto_one_time_aead(C, bytes(key(C)), bytes(12), <<>>, <<"aad">>, true))) end)
     || C <- Sealed, C =/= aes_128_ccm, C =/= aes_192_ccm, C =/= aes_256_ccm],
    [show({tag, C, T}, fun() -> crypto:crypto_one_time_aead(C, bytes(key(C)), bytes(12), <<"text">>, <<"aad">>, T, true) end)
     || C <- Sealed, T <- [-1, 0, 1, 5, 16, 17, 18, a]],
    [show({iv, C, Iv}, fun() -> crypto:crypto_one_time_aead(C, bytes(key(C)), bytes(Iv), <<"text">>, <<"aad">>, true) end)
     || C <- Sealed, Iv <- [0, 1, 6, 14, 128, 129]],
    show(long, fun() -> crypto:crypto_one_time_aead(aes_128_ccm, bytes(16), bytes(13), bytes(65536), <<>>, true) end),
    %% Long enough to be done elsewhere.
    show(large, fun() -> hash(crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), bytes(3 bsl 20), true)) end),
    state(),
    [show(refused, F) || F <- [
        fun() -> crypto:crypto_one_time(none, bytes(16), bytes(16), <<>>, true) end,
        fun() -> crypto:crypto_one_time("aes", bytes(16), bytes(16), <<>>, true) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(15), bytes(16), <<>>, true) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(15), <<>>, true) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, key, bytes(15), <<>>, true) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), iv, <<>>, true) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), data, true) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), <<>>, 'maybe') end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), <<>>, [a]) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), <<>>, [{a, b}]) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), <<>>, [{encrypt, a}]) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), <<>>, [{encrypt, true}, {encrypt, true}]) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), <<>>, [{padding, a}]) end,
        fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), <<>>, [{padding, zero}, {padding, zero}]) end,
        fun() -> crypto:crypto_one_time(aes_128_gcm, bytes(16), bytes(12), <<>>, true) end,
        fun() -> crypto:crypto_one_time(des_ede3_cbc, bytes(16), bytes(8), <<>>, true) end,
        fun() -> crypto:crypto_one_time_aead(aes_128_cbc, bytes(16), bytes(16), <<>>, <<>>, 16, true) end,
        fun() -> crypto:crypto_one_time_aead(aes_128_gcm, bytes(15), bytes(12), <<>>, <<>>, 16, true) end,
        fun() -> crypto:crypto_one_time_aead(aes_128_gcm, bytes(16), bytes(12), <<>>, aad, 16, true) end,
        fun() -> crypto:crypto_one_time_aead(aes_128_gcm, bytes(16), bytes(12), text, <<>>, 16, true) end,
        fun() -> crypto:crypto_one_time_aead(aes_128_gcm, bytes(16), bytes(12), <<>>, <<>>, tag, false) end,
        fun() -> crypto:crypto_one_time_aead(aes_128_gcm, bytes(16), bytes(12), <<>>, <<>>, 16, 'maybe') end,
        fun() -> crypto:crypto_update(make_ref(), <<>>) end,
        fun() -> crypto:crypto_update(a, b) end,
        fun() -> crypto:crypto_final(a) end,
        fun() -> crypto:crypto_dyn_iv_init(aes_128_cbc, bytes(16), true) end
    ]].

one_time(C, N) ->
    #{key_length := K, iv_length := I} = crypto:cipher_info(C),
    show({C, N}, fun() ->
        E = crypto:crypto_one_time(C, bytes(K), bytes(I), bytes(N), true),
        {hash(E), crypto:crypto_one_time(C, bytes(K), bytes(I), E, false) =:= bytes(N)}
    end).

%% Pieces give what the whole gives, as far as there are whole blocks.
pieces(C) ->
    #{key_length := K, iv_length := I} = crypto:cipher_info(C),
    show({pieces, C}, fun() ->
        [begin
            S = crypto:crypto_init(C, bytes(K), bytes(I), [{encrypt, Way}, {padding, P}]),
            R = [byte_size(crypto:crypto_update(S, bytes(N))) || N <- [1, 15, 0, 16, 17, 31, 64, 3, 13]],
            {P, Way, R, crypto:crypto_get_data(S), catch_text(fun() -> hash(crypto:crypto_final(S)) end), crypto:crypto_get_data(S)}
         end || Way <- [true, false], P <- [undefined, none, pkcs_padding]]
    end).

padded(C, P, N) ->
    #{key_length := K, iv_length := I} = crypto:cipher_info(C),
    show({C, P, N}, fun() -> hex(crypto:crypto_one_time(C, bytes(K), bytes(I), bytes(N), [{encrypt, true}, {padding, P}])) end).

unpadded(P, N) ->
    E = crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), bytes(20), [{encrypt, true}, {padding, pkcs_padding}]),
    show({P, N}, fun() -> crypto:crypto_one_time(aes_128_cbc, bytes(16), bytes(16), binary:part(E, 0, N), [{encrypt, false}, {padding, P}]) end).

sealed(C, Iv, A, N, T) ->
    Key = bytes(key(C)),
    show({C, Iv, A, N, T}, fun() ->
        {E, Tag} = crypto:crypto_one_time_aead(C, Key, bytes(Iv), bytes(N), bytes(A), T, true),
        <<First, Rest/binary>> = Tag,
        {hash(E), hex(Tag), crypto:crypto_one_time_aead(C, Key, bytes(Iv), E, bytes(A), Tag, false) =:= bytes(N),
         crypto:crypto_one_time_aead(C, Key, bytes(Iv), E, bytes(A), <<(First bxor 1), Rest/binary>>, false)}
    end).

state() ->
    S = crypto:crypto_init(aes_256_ctr, bytes(32), bytes(16), true),
    show(state, fun() -> [hex(crypto:crypto_update(S, D)) || D <- [<<"one">>, ["two", <<"three">>], <<>>]] end),
    show(state, fun() -> {crypto:crypto_final(S), crypto:crypto_get_data(S)} end).

key(chacha20) -> 32;
key(C) -> maps:get(key_length, crypto:cipher_info(C)).

bytes(N) -> binary:part(binary:copy(<<7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77, 84, 91, 98, 105, 112, 119>>, N div 17 + 1), 0, N).

hash(B) -> {byte_size(B), erlang:phash2(B)}.

hex(B) -> binary_to_list(binary:encode_hex(B)).

catch_text(F) ->
    try F() catch error:{R, _, Text} -> {R, Text} end.

%% Where in the library a fault was found isn't compared.
show(What, F) ->
    io:format("~0p: ~0p~n", [What, try F() catch
        error:{R, {_, Line}, Text}:_ when is_integer(Line) -> {R, Text};
        C:R:Stack -> {Mod, Fun, _, Info} = hd(Stack), {C, R, Mod, Fun, proplists:get_value(error_info, Info)}
    end]).
