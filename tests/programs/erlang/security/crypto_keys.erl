%% Checks public keys of module crypto: signatures, encryption, key agreement, and errors of invalid
%% keys and arguments.
-module(crypto_keys).
-export([main/0]).

-define(P, 16#ef633de04200d85b05abf033dc39bfd40d50122d93e8e1a7c04086fe310d60652eee717011ab2ce0b2ed8dea374bdaf3825c70d29bda3680902ba76a42766199).
-define(Q, 16#c1c3ac86298141ec900ac9ddabb5ce0cf18b74c9359c2db254381b592fa71c24410a6feee21ef9c307a14aa0ec4991159b674c79709bcc300edbb9d797694f8b).
-define(D, 16#6f4bc9bfd985f9da49b2ad41379c01610509d36bc353aa70e0f1523cbf2eeb14788d97b22943bb09ba14472cd97543a21ea848ecec39c13bbdf8578ebcfda83cddaf64f3db008e2276fd02f43764364a1ad94adb704a47e1af11f8580fd9e0130eeb6bdd6173775a34e0228a765aa6ff954adb4ec7b62c94dd18b3b1e47b2c1).
-define(C, 16#aa6dd4956310e0318414592e96ae8e2331f22a0d7cbc614919dca00ce2b883fca8fe4fafb49d8e2d22b06aac05c4e21ee4fe4f8e65e40e5d8926cf0d2a5b9186).
-define(DSA_P, 16#c2797215a29456a8287884ebc8fc1a6756d8297e8a333d3670498002e922faa4472ee3ee45c678ea699aff02be21b59d53becacfb7022f82e328769307d45a025921455a068964afae99e20c61dddf3e180c2f84edff7b573b07bd07a1f29f7d4b25a010ab73f408bbdb1583066ff9529e69704ec69ee932ba5379ab1f584bb3).
-define(DSA_Q, 16#9d3aa4226e89b39584c3bbaa44d8770f8ca3b3a8c76170bc57ba141d).
-define(DSA_G, 16#7bc6b78bff82cd2571691b8b9e4de1ab2a96ee6b818024397599cb2e43191a8d04c1962cb82f1d2e22e76c8bd09ac1b8568238dcabd01f2d2152ecb5d6e23d91dd77b09005b38c73a60675d4fffdde179e49c4eecd181b06f4fba4cea633e76bf8780080b7b89714de94dd28dd43cf3d000dfca634e66204ff5e90e37e4fa6ba).

main() ->
    rsa(),
    curves(),
    edwards(),
    groups(),
    bad().

rsa_keys() ->
    N = ?P * ?Q,
    {[65537, N], [65537, N, ?D, ?P, ?Q, ?D rem (?P - 1), ?D rem (?Q - 1), ?C]}.

rsa() ->
    {Pub, Priv} = rsa_keys(),
    M = <<"a message">>,
    show(sign, [{D, erlang:md5(crypto:sign(rsa, D, M, K))}
        || D <- [md4, md5, sha, sha224, sha256, sha384, sha512, sha3_224, sha3_256, ripemd160, none],
           K <- [Priv, lists:sublist(Priv, 3)]]),
    Options = [[], [{rsa_padding, rsa_pkcs1_pss_padding}], [{rsa_padding, rsa_x931_padding}]
        | [[{rsa_padding, rsa_pkcs1_pss_padding}, {rsa_pss_saltlen, S}, {rsa_mgf1_md, sha}] || S <- [-2, -1, 0, 20]]],
    show(verify, [begin
        S = crypto:sign(rsa, D, M, Priv, O),
        {crypto:verify(rsa, D, M, S, Pub, O), crypto:verify(rsa, D, <<"other">>, S, Pub, O),
         crypto:verify(rsa, D, {digest, crypto:hash(D, M)}, S, Pub, O)}
     end || D <- [sha, sha256], O <- Options]),
    show(salts, [crypto:verify(rsa, sha256, M, crypto:sign(rsa, sha256, M, Priv, pss(A)), Pub, pss(B))
        || A <- [-1, 0, 20], B <- [-2, -1, 0, 20, 32]]),
    show(encrypt, [begin
        E = crypto:public_encrypt(rsa, <<"data">>, Pub, O),
        {byte_size(E), crypto:private_decrypt(rsa, E, Priv, O)}
     end || O <- [rsa_pkcs1_padding, rsa_pkcs1_oaep_padding,
        [{rsa_padding, rsa_pkcs1_oaep_padding}, {rsa_oaep_md, sha256}, {rsa_oaep_label, <<255>>}],
        [{rsa_padding, rsa_pkcs1_oaep_padding}, {rsa_oaep_md, sha}, {rsa_mgf1_md, sha256}]]]),
    E = crypto:private_encrypt(rsa, <<"data">>, Priv, rsa_pkcs1_padding),
    show(private, {erlang:md5(E), crypto:public_decrypt(rsa, E, Pub, rsa_pkcs1_padding),
        byte_size(crypto:public_decrypt(rsa, E, Pub, rsa_no_padding))}),
    show(tampered, [try_(fun() -> crypto:private_decrypt(rsa, <<B:1024>>, Priv, O) end)
        || B <- [1, 12345 bsl 500], O <- [rsa_pkcs1_padding, rsa_pkcs1_oaep_padding]]),
    {[_, New], Key} = crypto:generate_key(rsa, {1024, 65537}),
    show(generate, {length(Key), bit_length(New),
        crypto:verify(rsa, sha256, M, crypto:sign(rsa, sha256, M, Key), lists:sublist(Key, 2))}),
    show(public_of, crypto:privkey_to_pubkey(rsa, Priv) =:= Pub).

pss(Salt) -> [{rsa_padding, rsa_pkcs1_pss_padding}, {rsa_pss_saltlen, Salt}].

bit_length(B) -> length(integer_to_list(binary:decode_unsigned(B), 2)).

curves() ->
    Curves = [secp192r1, secp224r1, secp256k1, secp256r1, secp384r1, secp521r1],
    [begin
        {Pub, Priv} = crypto:generate_key(ecdh, Curve, 123456789),
        {Pub2, Priv2} = crypto:generate_key(ecdh, Curve),
        Shared = crypto:compute_key(ecdh, Pub, Priv2, Curve),
        Half = (byte_size(Pub) - 1) div 2,
        <<4, X:Half/binary, _:(Half - 1)/binary, Y>> = Pub,
        Short = <<(2 + Y rem 2), X/binary>>,
        show(Curve, {Pub, Priv, Shared =:= crypto:compute_key(ecdh, Pub2, Priv, Curve),
            Shared =:= crypto:compute_key(ecdh, Short, Priv2, Curve),
            erlang:md5(crypto:compute_key(ecdh, Pub, <<99>>, Curve))}),
        show(sign, [begin
            S = crypto:sign(ecdsa, D, <<"text">>, [Priv2, Curve]),
            {D, crypto:verify(ecdsa, D, <<"text">>, S, [Pub2, Curve]), crypto:verify(ecdsa, D, <<"test">>, S, [Pub2, Curve]),
             crypto:verify(ecdsa, D, <<"text">>, <<S/binary, 0>>, [Pub2, Curve]),
             crypto:verify(ecdsa, D, <<"text">>, S, [Pub, Curve])}
         end || D <- [sha, sha256, sha512, md5]]),
        show(explicit, crypto:generate_key(ecdh, crypto:ec_curve(Curve), 123456789) =:= {Pub, Priv})
     end || Curve <- Curves],
    show(points, [try_(fun() -> crypto:compute_key(ecdh, B, <<5>>, secp256r1) end)
        || B <- [<<>>, <<0>>, <<4>>, <<4, 0:512>>, <<2, 5:256>>, a]]),
    show(numbers, [try_(fun() -> crypto:generate_key(ecdh, secp256r1, B) end)
        || B <- [<<>>, <<0>>, 1, <<(-1):256>>, <<1:264>>, a]]),
    show(signatures, [crypto:verify(ecdsa, sha256, <<"m">>, S, [element(1, crypto:generate_key(ecdh, secp256r1, 7)), secp256r1])
        || S <- [<<>>, <<48, 0>>, <<48, 6, 2, 1, 1, 2, 1, 1>>, <<48, 6, 2, 1, 0, 2, 1, 1>>, <<48, 7, 2, 2, 0, 1, 2, 1, 1>>]]).

edwards() ->
    {Pub, Priv} = crypto:generate_key(eddsa, ed25519, <<7:256>>),
    S = crypto:sign(eddsa, none, <<"text">>, [Priv, ed25519]),
    show(ed25519, {Pub, Priv, S, crypto:verify(eddsa, none, <<"text">>, S, [Pub, ed25519]),
        crypto:verify(eddsa, none, <<"test">>, S, [Pub, ed25519])}),
    {X1, Y1} = crypto:generate_key(eddh, x25519, <<9:256>>),
    {X2, Y2} = crypto:generate_key(ecdh, x25519),
    show(x25519, {X1, Y1, crypto:compute_key(eddh, X1, <<77:256>>, x25519),
        crypto:compute_key(eddh, X1, Y2, x25519) =:= crypto:compute_key(ecdh, X2, Y1, x25519)}),
    show(bad, [try_(F) || F <- [
        fun() -> crypto:compute_key(eddh, <<0:256>>, Y1, x25519) end,
        fun() -> crypto:compute_key(eddh, <<1>>, Y1, x25519) end,
        fun() -> crypto:compute_key(eddh, X1, <<1>>, x25519) end,
        fun() -> crypto:generate_key(eddsa, ed25519, <<1>>) end,
        fun() -> crypto:sign(eddsa, none, <<>>, [<<1>>, ed25519]) end,
        fun() -> crypto:verify(eddsa, none, <<>>, <<1>>, [Pub, ed25519]) end]]).

groups() ->
    {P, _} = dh(),
    show(dh, try_(fun() -> crypto:compute_key(dh, 12345, 77, [P, 2]) end)),
    {B1, C1} = crypto:generate_key(dh, [P, 2]),
    {B2, C2} = crypto:generate_key(dh, [P, 2, 200]),
    show(dh, {crypto:compute_key(dh, B1, C2, [P, 2]) =:= crypto:compute_key(dh, B2, C1, [P, 2]), bit_length(C2)}),
    show(dh, [try_(fun() -> crypto:compute_key(dh, X, 77, [P, 2]) end) || X <- [0, 1, P, P - 1, a]]),
    show(mod_pow, [try_(fun() -> crypto:mod_pow(X, Y, Z) end) || X <- [0, 1, 3, P - 1], Y <- [0, 1, 65537], Z <- [1, 2, 1024, P]]),
    Prime = binary:encode_unsigned(P),
    show(srp, [begin
        U = crypto:generate_key(srp, {user, [<<2>>, Prime, V]}, <<5:200>>),
        H = crypto:generate_key(srp, {host, [<<77:304>>, <<2>>, Prime, V]}, <<6:200>>),
        erlang:md5(term_to_binary({U, H, crypto:compute_key(srp, element(1, H), U, {user, [<<9:160>>, Prime, <<2>>, V]}),
            crypto:compute_key(srp, element(1, U), H, {host, [<<77:304>>, Prime, V]})}))
     end || V <- ['3', '6', '6a']]),
    Dsa = [?DSA_P, ?DSA_Q, ?DSA_G],
    Y = binary:decode_unsigned(crypto:mod_pow(?DSA_G, 424242, ?DSA_P)),
    show(dsa, [begin
        S = crypto:sign(dss, D, <<"text">>, Dsa ++ [424242]),
        {crypto:verify(dss, D, <<"text">>, S, Dsa ++ [Y]), crypto:verify(dss, D, <<"test">>, S, Dsa ++ [Y])}
     end || D <- [sha, sha224, sha256, sha512]]).

%% The group of 1024 bits of RFC 2409.
dh() ->
    {16#FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE65381FFFFFFFFFFFFFFFF, 2}.

bad() ->
    {Pub, Priv} = rsa_keys(),
    Long = binary:copy(<<1>>, 200),
    [show(bad, try_(F)) || F <- [
        fun() -> crypto:sign(foo, sha, <<>>, Priv) end,
        fun() -> crypto:sign(rsa, foo, <<>>, Priv) end,
        fun() -> crypto:sign(rsa, sha, a, Priv) end,
        fun() -> crypto:sign(rsa, sha, {digest, <<1>>}, Priv) end,
        fun() -> crypto:sign(rsa, sha, {a, <<1>>}, Priv) end,
        fun() -> crypto:sign(rsa, sha, {digest, a}, Priv) end,
        fun() -> crypto:sign(rsa, sha, {a}, Priv) end,
        fun() -> crypto:sign(rsa, sha, <<>>, Pub) end,
        fun() -> crypto:sign(rsa, sha, <<>>, [a]) end,
        fun() -> crypto:sign(rsa, sha, <<>>, Priv, a) end,
        fun() -> crypto:sign(rsa, sha, <<>>, Priv, [a]) end,
        fun() -> crypto:sign(rsa, sha, <<>>, Priv, [{a, b}]) end,
        fun() -> crypto:sign(rsa, sha, <<>>, Priv, [{rsa_padding, b}]) end,
        fun() -> crypto:sign(rsa, sha, <<>>, Priv, [{rsa_pss_saltlen, -3}]) end,
        fun() -> crypto:sign(rsa, sha, <<>>, Priv, [{rsa_mgf1_md, foo}]) end,
        fun() -> crypto:sign(rsa, sha, <<>>, Priv, [{rsa_padding, rsa_no_padding}]) end,
        fun() -> crypto:sign(rsa, blake2b, <<>>, Priv) end,
        fun() -> crypto:sign(rsa, none, Long, Priv) end,
        fun() -> crypto:sign(ecdsa, sha, <<>>, [1, secp256r1], [{rsa_padding, rsa_pkcs1_padding}]) end,
        fun() -> crypto:sign(ecdsa, sha, <<>>, [1, nosuchcurve]) end,
        fun() -> crypto:verify(rsa, sha, <<>>, a, Pub) end,
        fun() -> crypto:verify(rsa, sha, <<>>, <<1>>, Pub) end,
        fun() -> crypto:verify(rsa, sha, <<>>, <<1>>, Priv) end,
        fun() -> crypto:verify(ecdsa, sha, <<>>, <<1>>, [<<1>>, secp256r1]) end,
        fun() -> crypto:public_encrypt(rsa, Long, Pub, rsa_pkcs1_padding) end,
        fun() -> crypto:public_encrypt(rsa, <<>>, Pub, [x]) end,
        fun() -> crypto:public_encrypt(rsa, <<>>, Pub, [{x, y}]) end,
        fun() -> crypto:public_encrypt(rsa, <<>>, Pub, foo) end,
        fun() -> crypto:public_encrypt(rsa, a, Pub, rsa_pkcs1_padding) end,
        fun() -> crypto:public_encrypt(rsa, <<>>, [a], rsa_pkcs1_padding) end,
        fun() -> crypto:generate_key(rsa, {100, 3}) end,
        fun() -> crypto:generate_key(rsa, {a, 3}) end,
        fun() -> crypto:generate_key(rsa, {512, a}) end,
        fun() -> crypto:generate_key(rsa, {512, 2}) end,
        fun() -> crypto:generate_key(ecdh, nosuchcurve) end,
        fun() -> crypto:generate_key(ecdh, nosuchcurve, 1) end,
        fun() -> crypto:generate_key(dh, [a, b]) end,
        fun() -> crypto:generate_key(dh, [<<23>>]) end,
        fun() -> crypto:privkey_to_pubkey(ecdsa, [1, secp256r1]) end]].

%% Without the place in the library's sources.
try_(F) ->
    try F()
    catch
        error:{Kind, {File, Line}, Text} when is_list(File), is_integer(Line) -> {Kind, Text};
        Class:Reason -> {Class, Reason}
    end.

show(What, Value) -> io:format("~0p ~0p~n", [What, Value]).
