%% Uses public keys of sizes that OpenSSL refuses to compute with. Natives that take a peer's key
%% must not take seconds for one.
-module(crypto_limits).
-export([main/0]).

main() ->
    {ok, _} = application:ensure_all_started(crypto),
    [rsa(N, E) || {N, E} <- [{1024, 17}, {1024, 1024}, {1024, 1030}, {3072, 65}, {3073, 17}, {3073, 64}, {3073, 65},
                             {16384, 17}, {16384, 65}, {16385, 17}, {32768, 17}, {32768, 32768}]],
    [dsa(P, Q) || {P, Q} <- [{1024, 160}, {1024, 224}, {1024, 256}, {1024, 120}, {1024, 512}, {10000, 160}, {10001, 160},
                             {32768, 256}, {32768, 32768}]],
    [dsa_sign(P, Q, X) || {P, Q, X} <- [{1024, 127, 120}, {2048, 1024, 800}, {8192, 8192, 8000}]].

rsa(NBits, EBits) ->
    Key = [bytes(EBits, 7), bytes(NBits, NBits)],
    Signature = binary:copy(<<1>>, (NBits + 7) div 8),
    [tell({rsa_verify, NBits, EBits, Padding}, fun() ->
        crypto:verify(rsa, sha256, <<"x">>, Signature, Key, [{rsa_padding, Padding}])
     end) || Padding <- [rsa_pkcs1_padding, rsa_pkcs1_pss_padding, rsa_x931_padding]],
    [tell({rsa_encrypt, NBits, EBits, Padding}, fun() ->
        crypto:public_encrypt(rsa, <<"x">>, Key, [{rsa_padding, Padding}])
     end) || Padding <- [rsa_pkcs1_padding, rsa_pkcs1_oaep_padding]],
    tell({rsa_public_decrypt, NBits, EBits}, fun() ->
        crypto:public_decrypt(rsa, Signature, Key, [{rsa_padding, rsa_no_padding}])
    end).

dsa(PBits, QBits) ->
    Key = [bytes(PBits, PBits), bytes(QBits, QBits), <<3>>, bytes(PBits - 1, 5)],
    tell({dsa_verify, PBits, QBits}, fun() ->
        crypto:verify(dss, sha256, <<"x">>, <<48, 6, 2, 1, 5, 2, 1, 6>>, Key)
    end).

dsa_sign(PBits, QBits, XBits) ->
    Key = [bytes(PBits, PBits), bytes(QBits, QBits), <<3>>, bytes(XBits, 5)],
    tell({dsa_sign, PBits, QBits, XBits}, fun() -> crypto:sign(dss, sha256, <<"x">>, Key) end).

%% The bytes of an odd number of so many bits, always the same.
bytes(Bits, Seed) ->
    All = iolist_to_binary([erlang:md5(<<Seed:32, I:32>>) || I <- lists:seq(0, Bits div 128)]),
    High = 1 bsl (Bits - 1),
    binary:encode_unsigned((binary:decode_unsigned(All) rem High) bor High bor 1).

tell(What, F) ->
    Result =
        try F() of
            B when is_binary(B) -> {bytes, byte_size(B)};
            Other -> Other
        catch
            error:{Tag, _, Text} -> {Tag, Text}
        end,
    io:format("~0p ~0p~n", [What, Result]).
