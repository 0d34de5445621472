%% Converts, measures and rejects I/O lists of every shape: short ones, and ones so long that
%% another thread converts them. @stress @shared @fence
-module(io_lists).
-export([main/0]).

main() ->
    Heap = <<"a small binary">>,
    Block = binary:copy(<<"0123456789">>, 30),
    <<_:3, Odd:100/binary, _/bitstring>> = Block,
    <<_:5/binary, Part:200/binary, _/binary>> = Block,
    Bytes = [N rem 256 || N <- lists:seq(1, 1000)],
    Elements = [0, 255, Heap, <<>>, Block, Odd, Part, [], [[]], Bytes, [Heap | Block], [7, [8, [9 | Part] | Odd]], [Bytes | <<>>]],
    Lists = [[], [[[]]], Bytes, Heap, Block, Odd, Elements, lists:reverse(Elements)]
        ++ [[E | R] || E <- Elements, R <- [Heap, [255], Odd, []]]
        ++ [lists:duplicate(40, Elements), nested(Elements, 1000), lists:foldl(fun(E, A) -> [A, E] end, [], lists:append(lists:duplicate(50, Elements)))],
    [say(L) || L <- Lists],
    %% Around the number of elements from which on a list is looked at elsewhere, and of bytes.
    [say(L) || N <- [99999, 100000, 100001],
               L <- [[N rem 256 || _ <- lists:seq(1, N)], lists:duplicate(N, Heap), [Odd | lists:duplicate(N - 1, 1)]]],
    say([binary:copy(Block, 22000), 1]),
    %% What is no I/O list: near, far, and at its end.
    Bad = [256, -1, atom, 1.0, {1}, <<1:7>>, #{}, 1 bsl 70],
    [refused([Heap, B]) || B <- Bad],
    [refused([Heap | B]) || B <- [1 | Bad]],
    [refused([Bytes, [Block, [B] | Heap], Odd]) || B <- Bad],
    Far = lists:duplicate(100500, 1),
    [refused(Far ++ B) || B <- [[256], [<<1:7>>], atom, 1]],
    %% Bits of any number.
    Bits = [<<5:3>>, 1, <<2:9>>, Heap, [<<1:1>>, Odd | <<3:2>>], Part],
    [io:format("~p ~p~n", [bit_size(B), erlang:phash2(B)]) || L <- [Bits, [Bits, Bits], lists:duplicate(12000, Bits)], B <- [list_to_bitstring(L)]],
    %% In several processes at once, whose lists are garbage soon.
    Pids = [spawn_monitor(fun() -> exit(lists:sum([turn(I + J, Block) || J <- lists:seq(1, 60)])) end) || I <- lists:seq(1, 6)],
    io:format("~p~n", [[receive {'DOWN', R, process, P, Sum} -> Sum end || {P, R} <- Pids]]).

nested(E, 0) -> E;
nested(E, N) -> [nested(E, N - 1), N rem 256].

turn(I, Block) ->
    L = [[integer_to_list(J), <<J:24>>, binary:part(Block, J rem 50, 70), float_to_list(J / 7)] || J <- lists:seq(I, I + 120)],
    erlang:phash2(iolist_to_binary(L)) + iolist_size(L) + erlang:crc32(L).

say(L) ->
    B = iolist_to_binary(L),
    Same = case is_list(L) of
        true -> B =:= list_to_binary(L) andalso B =:= list_to_bitstring(L);
        false -> catch list_to_binary(L)
    end,
    Class = fun({'EXIT', {R, _}}) -> R; (X) -> X end,
    io:format("~p ~p ~p ~p~n", [byte_size(B), erlang:md5(B), iolist_size(L), Class(Same)]).

refused(L) ->
    [try F(L) of X -> io:format("~p~n", [erlang:phash2(X)]) catch C:R:Stack -> S = hd(Stack), io:format("~p ~p ~p:~p~n", [C, R, element(1, S), element(2, S)]) end
     || F <- [fun erlang:iolist_to_binary/1, fun erlang:list_to_binary/1, fun erlang:iolist_size/1, fun erlang:list_to_bitstring/1]].
