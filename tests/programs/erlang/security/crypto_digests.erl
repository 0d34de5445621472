%% Checks digests, keyed digests, derived keys and random numbers of module crypto, and errors.
%% @stress
-module(crypto_digests).
-export([main/0]).
-compile([nowarn_deprecated_function]).

main() ->
    Data = [<<>>, <<"a">>, binary:copy(<<"0123456789">>, 13), binary:copy(<<7>>, 70000), ["x", [<<"y">> | "z"]]],
    Hashes = crypto:supports(hashs),
    show(hashes, fun() -> Hashes end),
    [show({info, H}, fun() -> crypto:hash_info(H) end) || H <- Hashes],
    [show({H, erlang:iolist_size(D)}, fun() -> hex(crypto:hash(H, D)) end) || H <- Hashes, D <- Data],
    [show({hmac, H, byte_size(K)}, fun() -> hex(crypto:mac(hmac, H, K, D)) end)
     || H <- Hashes, K <- [<<>>, <<"key">>, binary:copy(<<"long">>, 60)], D <- [hd(Data), lists:last(Data)]],
    %% A state can be gone on from more than once.
    S0 = crypto:hash_init(sha256),
    S1 = crypto:hash_update(S0, "one"),
    [show(state, fun() -> hex(crypto:hash_final(S)) end)
     || S <- [S0, S1, crypto:hash_update(S1, "two"), crypto:hash_update(S1, <<"three">>), crypto:hash_update(S1, binary:copy(<<1>>, 50000))]],
    M = crypto:mac_init(hmac, sha512, <<"key">>),
    show(mac, fun() -> M =:= crypto:mac_update(M, "one") end),
    crypto:mac_update(M, [<<"two">>]),
    show(mac, fun() -> hex(crypto:mac_final(M)) end),
    show(macn, fun() -> hex(crypto:macN(hmac, sha, "key", "data", 7)) end),
    [show({pbkdf2, H, R, L}, fun() -> hex(crypto:pbkdf2_hmac(H, <<"password">>, <<"salt">>, R, L)) end)
     || H <- [sha, sha224, sha256, sha384, sha512, md5, sha3_256, none], R <- [1, 50, 0], L <- [1, 20, 100, 0]],
    show(exor, fun() -> hex(crypto:exor(<<1, 2, 255>>, [7, <<8, 255>>])) end),
    show(equals, fun() -> {crypto:hash_equals(<<1, 2>>, <<1, 2>>), crypto:hash_equals(<<1, 2>>, <<1, 3>>)} end),
    show(bytes, fun() -> [byte_size(crypto:strong_rand_bytes(N)) || N <- [0, 1, 17, 5000]] end),
    show(differ, fun() -> crypto:strong_rand_bytes(16) =/= crypto:strong_rand_bytes(16) end),
    show(range, fun() -> lists:usort([number(crypto:strong_rand_range(N)) < N || N <- [1, 2, 255, 256, 257, 1 bsl 70], _ <- [1, 2, 3]]) end),
    show(all, fun() -> lists:usort([number(crypto:strong_rand_range(3)) || _ <- lists:seq(1, 300)]) end),
    show(uniform, fun() -> lists:usort([crypto:rand_uniform(-2, 3) || _ <- lists:seq(1, 300)]) end),
    show(uniform, fun() -> lists:usort([begin R = crypto:rand_uniform(A, A + 300), R >= A andalso R < A + 300 end || A <- [0, 127, 128, 255, 256, 65400, 1 bsl 64 - 3]]) end),
    show(rand, fun() -> S = crypto:rand_seed_s(), {R, _} = rand:uniform_s(10, S), R >= 1 andalso R =< 10 end),
    show(seed, fun() -> crypto:rand_seed(<<1>>) end),
    [show(refused, F) || F <- [
        fun() -> crypto:hash(foo, "a") end,
        fun() -> crypto:hash("sha", "a") end,
        fun() -> crypto:hash(sha, foo) end,
        fun() -> crypto:hash(sha, <<1:3>>) end,
        fun() -> crypto:hash_init(foo) end,
        fun() -> crypto:hash_update(make_ref(), "a") end,
        fun() -> crypto:hash_update(M, "a") end,
        fun() -> crypto:hash_final(foo) end,
        fun() -> crypto:hash_info(foo) end,
        fun() -> crypto:mac(hmac, foo, "a", "b") end,
        fun() -> crypto:mac(foo, sha, "a", "b") end,
        fun() -> crypto:mac(hmac, sha, "a", foo) end,
        fun() -> crypto:mac_init(hmac, foo, "a") end,
        fun() -> crypto:mac_update(S0, "a") end,
        fun() -> crypto:mac_update(M, foo) end,
        fun() -> crypto:mac_final(S0) end,
        fun() -> crypto:pbkdf2_hmac(sha, "password", <<>>, 1, 1) end,
        fun() -> crypto:strong_rand_bytes(-1) end,
        fun() -> crypto:strong_rand_bytes(1 bsl 40) end,
        fun() -> crypto:strong_rand_range(0) end,
        fun() -> crypto:rand_uniform(5, 5) end,
        fun() -> crypto:exor(<<1>>, <<1, 2>>) end,
        fun() -> crypto:hash_equals(<<1>>, <<1, 2>>) end,
        fun() -> crypto:hash_equals(a, <<>>) end
    ]].

%% What is below a number is told by its bytes, since OTP 29 as a number.
number(B) when is_binary(B) -> binary:decode_unsigned(<<0, B/binary>>);
number(N) -> N.

hex(B) -> binary_to_list(binary:encode_hex(B)).

%% Where in the library a fault was found isn't compared.
show(What, F) ->
    io:format("~0p: ~0p~n", [What, try F() catch
        error:{R, {_, Line}, Text}:_ when is_integer(Line) -> {R, Text};
        C:R:Stack -> {Mod, Fun, _, Info} = hd(Stack), {C, R, Mod, Fun, proplists:get_value(error_info, Info)}
    end]).
