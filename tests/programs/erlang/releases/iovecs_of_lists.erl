%% Checks the parts that `iolist_to_iovec/1` makes of a list. Since OTP 27, large ones stay
%% separate. @stress @shared @fence
-module(iovecs_of_lists).
-export([main/0]).

b(N) -> list_to_binary([(I * 7) band 255 || I <- lists:seq(1, N)]).
%% A part of a binary that doesn't begin with a byte, and one that does.
odd(N) -> <<_:3, P:N/binary, _/bits>> = <<5:3, (b(N))/binary, 1:5>>, P.
part(N) -> binary:part(b(N + 20), 7, N).

show(What, L) ->
    R = try
            Parts = erlang:iolist_to_iovec(L),
            true = iolist_to_binary(L) =:= iolist_to_binary(Parts),
            true = lists:all(fun(P) -> is_binary(P) andalso P =/= <<>> end, Parts),
            lists:map(fun byte_size/1, Parts)
        catch C:E -> {C, E} end,
    io:format("~w: ~w~n", [What, R]).

main() ->
    Sizes = [1, 10, 64, 65, 255, 256, 257, 300, 511, 512, 513, 514, 1000, 1024, 5000],
    [show({alone, N}, [b(N)]) || N <- [0 | Sizes]],
    [show({odd, N}, [odd(N)]) || N <- [0 | Sizes]],
    [show({two, N}, [<<1>>, b(N), b(N)]) || N <- Sizes],
    [show({bytes, N}, [1, b(N), 2, [b(N) | 3] | <<"end">>]) || N <- Sizes],
    [show({parts, N}, [part(N), odd(N), [], part(N), <<>>]) || N <- Sizes],
    [show({both, K, N}, [[b(K), odd(N)] || _ <- lists:seq(1, 4)]) || K <- [1, 60, 100, 512, 513], N <- [60, 512, 513, 2000]],
    [show({many, N}, lists:duplicate(N, 7)) || N <- [0, 1, 5000]],
    [show({small, N}, lists:duplicate(300, b(N))) || N <- [2, 50, 100]],
    [show({bad, T}, T) || T <- [<<1:1>>, [<<1:1>>], [1, <<1:3>>], [256], [a], [1 | 2], [b(600), x], [b(600) | <<1:1>>], x, <<>>, []]],
    %% What is taken from the list lasts.
    L = [begin P = erlang:iolist_to_iovec([I, b(600), part(513), <<I, I>>, odd(700)]), erlang:garbage_collect(), P end || I <- lists:seq(1, 20)],
    Me = self(),
    spawn(fun() -> Me ! {parts, L} end),
    receive {parts, M} -> io:format("~w ~w~n", [M =:= L, erlang:phash2(M)]) end.
