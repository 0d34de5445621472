%% Sets text options of module `socket` as lists, and since OTP 27 as binaries. Native values can be
%% lists of bytes, too.
-module(socket_values_as_text).
-export([main/0]).

main() ->
    {ok, S} = socket:open(inet, stream),
    [io:format("~0p ~0p ~p~n", [V, socket:setopt(S, {tcp, congestion}, V), algorithm(S)])
     || V <- ["reno", <<"reno", 0>>, <<"reno", 0, "more">>, [$r, 300], ["reno"], ["re" | <<"no">>], reno, <<1:3>>, <<"nope", 0>>,
              lists:duplicate(256, $a), lists:duplicate(257, $a)]],
    {ok, U} = socket:open(inet, dgram, udp),
    [io:format("~0p ~0p ~0p~n", [V, socket:setopt(U, {socket, bindtodevice}, V), socket:getopt(U, {socket, bindtodevice})])
     || V <- ["lo", "", <<"lo", 0>>, <<"lo", 0, "abcdefghijklmnopqrst">>, ["lo"], 17, lists:duplicate(16, $a)]],
    [io:format("~0p ~0p ~0p~n", [V, socket:setopt_native(S, {socket, rcvlowat}, V), socket:getopt(S, {socket, rcvlowat})])
     || V <- [3, <<5:32/native>>, bytes(7), bytes(8) ++ [0], [[9], tl(bytes(9))], [<<10:32/native>>], [300, 0, 0, 0], "", [8, 0, 0],
              [true], {1, 2}, [1 | 2], true]],
    io:format("~p ~p~n", [socket:setopt_native(S, {tcp, congestion}, "reno"), algorithm(S)]).

bytes(N) -> binary_to_list(<<N:32/native>>).

algorithm(S) ->
    {ok, Name} = socket:getopt(S, {tcp, congestion}),
    lists:takewhile(fun(C) -> C > 0 end, Name).
