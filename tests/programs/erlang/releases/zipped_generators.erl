%% Zip generators (OTP 28) build binaries larger than the first block of a growing one, with
%% collections in between. Earlier releases do not have them. @stress @shared @fence
-module(zipped_generators).
-export([main/0]).
-if(?OTP_RELEASE >= 28).
-export([sums/2, noisy/2, keys/2]).

sums(A, B) -> << <<(X + Y + Z + W):64>> || X := Y <- A && Z := W <- B>>.

%% What is made meanwhile has the growing binary move to the old generation.
noisy(A, B) -> << <<(erlang:phash2({X, lists:seq(1, Z rem 50)})):32, (garbage(Y, W)):8>> || X := Y <- A && Z := W <- B>>.

keys(A, L) -> << <<X:17, (Y rem 2):1>> || X := _ <- A && Y <- L>>.

garbage(Y, W) -> erlang:garbage_collect(), length(lists:seq(1, (Y + W) rem 100)).

map(N) -> maps:iterator(#{X => X || X <- lists:seq(1, N)}, ordered).

main() ->
    [begin
         M = map(N), S = lists:seq(1, N),
         io:format("~w: ~w ~w~n", [N, sums(M, M) =:= << <<(A * 4):64>> || A <- S>>, erlang:md5(sums(M, M))])
     end || N <- [0, 1, 31, 32, 33, 64, 65, 500, 3000]],
    M = map(200),
    io:format("~w~n~w~n", [erlang:md5(noisy(M, M)), erlang:md5(term_to_binary(keys(map(1000), lists:seq(1, 1000))))]),
    %% What was made so far stays as it was while it is built on.
    [Half, Whole] = [sums(map(N), map(N)) || N <- [40, 80]],
    io:format("~w ~w~n", [binary:part(Whole, 0, byte_size(Half)) =:= Half, byte_size(Whole)]),
    io:format("~w~n", [[sums(map(2), map(2)) =:= <<4:64, 8:64>>, catch sums(map(2), map(3)) =:= no]]).
-else.
main() -> [io:format("~w: none~n", [erlang:system_info(otp_release) < "28"])].
-endif.
