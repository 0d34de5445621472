%% Checks `binary:referenced_byte_size/1` of binaries and parts. Since OTP 27 a part of at most 64
%% bytes refers to nothing. @stress @shared @fence
-module(referenced_byte_sizes).
-export([main/0]).

main() ->
    Whole = binary:copy(<<"0123456789">>, 1000),
    [io:format("~p of ~p: ~p~n", [N, At, binary:referenced_byte_size(binary:part(Whole, At, N))]) || N <- [0, 1, 10, 63, 64, 65, 100, 9000], At <- [0, 7]],
    [io:format("~p bits: ~p~n", [N, begin <<_:3, P:N/bits, _/bits>> = Whole, binary:referenced_byte_size(P) end]) || N <- [1, 8, 511, 512, 513, 520]],
    Small = list_to_binary(lists:seq(1, 40)),
    [io:format("~p of a small one: ~p~n", [N, binary:referenced_byte_size(binary:part(Small, 2, N))]) || N <- [0, 1, 30]],
    [io:format("~p: ~p~n", [W, catch binary:referenced_byte_size(B)])
     || {W, B} <- [{small, Small}, {copied, binary:copy(binary:part(Whole, 5, 10))}, {copied_more, binary:copy(binary:part(Whole, 5, 100))}, {empty, <<>>}, {bits, <<1:3>>},
                   {whole, Whole}, {list, [1]}, {split, hd(binary:split(Whole, <<"9">>))}, {rest, lists:last(binary:split(Whole, <<"9">>))}]].
