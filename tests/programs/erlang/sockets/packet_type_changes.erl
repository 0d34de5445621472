%% The packet type of an active socket changes in the middle of a packet. The rest has the length
%% that its header gives, or is too short for a packet of the new type. Since OTP 27 what is there
%% is looked at again.
-module(packet_type_changes).
-export([main/0]).

main() ->
    [io:format("~p~n", [switched(From, Head, To, Rest)])
     || {From, Head, To, Rest} <- [{1, <<1>>, fcgi, <<7>>}, {1, <<3>>, fcgi, <<1, 2, 3>>}, {1, <<1>>, cdr, <<7>>},
                                   {2, <<0, 2>>, fcgi, <<1, 2>>}, {1, <<1>>, raw, <<7>>}, {2, <<0, 3>>, 1, <<1, 2, 3>>},
                                   {4, <<0, 0, 0, 2>>, raw, <<1, 2>>}, {1, <<3>>, 2, <<0, 2, 1, 2>>},
                                   {1, <<5, 1, 2>>, line, <<"\n">>}, {1, <<255>>, line, <<"x\ny\n">>}]].

switched(From, Head, To, Rest) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {nodelay, true}]),
    {ok, S} = gen_tcp:accept(L),
    ok = inet:setopts(S, [{packet, From}, {active, true}]),
    ok = gen_tcp:send(C, Head),
    timer:sleep(100),
    ok = inet:setopts(S, [{packet, To}]),
    ok = gen_tcp:send(C, Rest),
    Got = received(S),
    [gen_tcp:close(X) || X <- [C, S, L]],
    Got.

received(S) -> receive {tcp, S, Data} -> [Data | received(S)] after 1000 -> [] end.
