%% Uses keys and parameters of public-key cryptography at the limits of their ranges, and checks the
%% shared secret or the error. @seconds 120
-module(crypto_edges).
-export([main/0]).
t(N, F) -> io:format("~p: ~0p~n", [N, try short(F()) catch C:R -> {C, shorten(R)} end]).
shorten({A, {_F,_L}, T}) -> {A, T};
shorten({A, _, T}) -> {A, T};
shorten(R) -> R.
short(B) when is_binary(B), byte_size(B) > 40 -> {bin, byte_size(B), erlang:phash2(B)};
short(T) when is_tuple(T) -> list_to_tuple([short(X) || X <- tuple_to_list(T)]);
short(L) when is_list(L) -> [short(X) || X <- L];
short(X) -> X.
main() ->
  P = 16#FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE65381FFFFFFFFFFFFFFFF,
  G = 2, Pr = 123456789123456789123456789,
  [t({dh, N}, fun() -> crypto:compute_key(dh, Pub, Pr, [P, G]) end) || {N, Pub} <- [{zero, 0}, {one, 1}, {two, 2}, {pm1, P-1}, {p, P}, {pp1, P+1}, {pm2, P-2}, {five, 5}, {seven, 7}, {eleven,11}, {q, (P-1) div 2}, {big, P*2}, {neg1, <<>>}]],
  [t({dhpriv, N}, fun() -> crypto:compute_key(dh, 7, V, [P, G]) end) || {N, V} <- [{zero, 0}, {one, 1}, {pm1, P-1}, {p, P}, {big, P*P}, {empty, <<>>}]],
  [t({dhgen, N}, fun() -> {A, B} = crypto:generate_key(dh, [P, G]), {is_binary(A), is_binary(B), byte_size(A)} end) || N <- [1]],
  [t({dhsmall, PP, GG}, fun() -> crypto:compute_key(dh, 3, 4, [PP, GG]) end) || {PP, GG} <- [{23, 5}, {7, 2}, {15, 2}, {16, 3}, {0, 0}, {1, 1}, {P, 0}, {P, 1}, {P, P - 1}, {P, P}, {P*P, 2}]],
  [t({dhgensmall, PP, GG}, fun() -> {A,B}=crypto:generate_key(dh, [PP, GG]), {is_binary(A), is_binary(B)} end) || {PP, GG} <- [{23, 5}, {0, 0}, {P, 0}, {P, 1}, {P,P-1}]],
  [t({dhgenpriv, V}, fun() -> {A,B}=crypto:generate_key(dh, [P, G], V), {is_binary(A), is_binary(B)} end) || V <- [0, 1, <<>>]],
  [begin
    {Pub, Priv} = crypto:generate_key(ecdh, C, <<1:(Sz*8)>>),
    t({ec, C}, fun() -> {Pub, Priv} end),
    [t({ecgen, C, N}, fun() -> crypto:generate_key(ecdh, C, V) end) || {N, V} <- [{zero, 0}, {zerob, <<0>>}, {zeros, <<0:(Sz*8)>>}, {one, 1}, {ff, binary:copy(<<255>>, Sz)}, {long, <<1, 0:(Sz*8)>>}, {empty, <<>>}, {short, <<5>>}, {order1, ord(C)-1}, {order2, ord(C)+1}]],
    [t({ecpriv, C, N}, fun() -> crypto:compute_key(ecdh, Pub, V, C) end) || {N, V} <- [{zero, 0}, {zerob, <<0>>}, {zeros, <<0:(Sz*8)>>}, {one, 1}, {ff, binary:copy(<<255>>, Sz)}, {empty, <<>>}, {two, 2}, {order, ord(C)}, {order1, ord(C)-1}]],
    <<4, X:Sz/binary, Y:Sz/binary>> = Pub,
    Odd = binary:last(Y) band 1,
    Points = [{plain, Pub}, {hyb, <<(6+Odd), X/binary, Y/binary>>}, {hybwrong, <<(7-Odd), X/binary, Y/binary>>}, {comp, <<(2+Odd), X/binary>>}, {compw, <<(3-Odd), X/binary>>}, {inf, <<0>>}, {empty, <<>>}, {bad, <<4, X/binary, X/binary>>}, {five, <<5, X/binary, Y/binary>>}, {longp, <<Pub/binary, 0>>}, {zero, <<4, 0:(16*Sz)>>}, {cbad, <<2, 0:(8*Sz)>>}, {infl, <<0, X/binary, Y/binary>>}, {comphyb, <<(6+Odd), X/binary>>}],
    [t({ecdh, C, N}, fun() -> crypto:compute_key(ecdh, V, 7, C) end) || {N, V} <- Points],
    Sig = crypto:sign(ecdsa, sha256, <<"x">>, [Priv, C]),
    [t({verify, C, N}, fun() -> crypto:verify(ecdsa, sha256, <<"x">>, Sig, [V, C]) end) || {N, V} <- Points],
    [t({sign, C, N}, fun() -> is_binary(crypto:sign(ecdsa, sha256, <<"x">>, [V, C])) end) || {N, V} <- [{one, 1}, {order1, ord(C)-1}]]
   end || {C, Sz} <- [{secp256r1, 32}, {secp256k1, 32}, {secp384r1, 48}]],
  [t({rsagen, E}, fun() -> {[A, B], L} = crypto:generate_key(rsa, {1024, E}), {A, byte_size(B), length(L), hd(L)} end) || E <- [3, 65537, 17, <<1,0,1>>, <<0,1,0,1>>, <<0,0,3>>, <<3>>, 1, 2, 4, 0, <<>>, <<0>>, 1 bsl 64 + 1, <<255,255,255,255,255>>]],
  {[E0, N0], [E0, N0, D0 | _] = Full} = crypto:generate_key(rsa, {1024, 65537}),
  S = crypto:sign(rsa, sha256, <<"x">>, [E0, N0, D0]),
  [t({rsaverify, E}, fun() -> crypto:verify(rsa, sha256, <<"x">>, S, [E, N0]) end) || E <- [65537, <<1,0,1>>, <<0,1,0,1>>, 0, 1, 2, 3, <<>>, <<0>>, 1 bsl 64 + 1, 1 bsl 300 + 1, -3]],
  [t({rsaenc, E}, fun() -> byte_size(crypto:public_encrypt(rsa, <<"x">>, [E, N0], rsa_pkcs1_padding)) end) || E <- [65537, <<0,1,0,1>>, 0, 1, 2, 3, <<>>, <<0>>, 1 bsl 64 + 1, 1 bsl 300 + 1]],
  [t({rsasign, E}, fun() -> is_binary(crypto:sign(rsa, sha256, <<"x">>, [E | tl(L)])) end) || L <- [[E0, N0, D0], Full], E <- [65537, <<0,1,0,1>>, 0, 1, 3, <<>>]],
  [t({rsan, NN}, fun() -> crypto:public_encrypt(rsa, <<"x">>, [65537, NN], rsa_no_padding) end) || NN <- [0, 1, 2, 15, <<>>, 1 bsl 512, (1 bsl 512) + 1]],
  ok.
ord(secp256r1) -> 16#FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551;
ord(secp256k1) -> 16#FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
ord(secp384r1) -> 16#FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973.
