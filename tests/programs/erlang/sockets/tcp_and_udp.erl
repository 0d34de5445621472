%% Checks TCP and UDP on the loopback interface, packet modes, active and passive sockets.
-module(tcp_and_udp).
-export([main/0]).

main() ->
    {ok, L} = gen_tcp:listen(0, [binary, {packet, 2}, {active, false}, {ip, {127, 0, 0, 1}}, {reuseaddr, true}]),
    {ok, Port} = inet:port(L),
    spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), echo(S) end),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {packet, 2}, {active, false}]),
    [ok = gen_tcp:send(C, X) || X <- [<<"one">>, ["two", <<"2">>], binary:copy(<<"x">>, 5000)]],
    io:format("~p~n", [[byte_size(element(2, gen_tcp:recv(C, 0, 2000))) || _ <- [1, 2, 3]]]),
    inet:setopts(C, [{active, once}]),
    ok = gen_tcp:send(C, <<"active">>),
    receive {tcp, C, D} -> io:format("~p~n", [D]) after 2000 -> io:format("none~n") end,
    io:format("~p~n", [gen_tcp:recv(C, 0, 50)]),
    ok = gen_tcp:send(C, <<"close">>),
    io:format("~p~n", [gen_tcp:recv(C, 0, 2000)]),
    io:format("~p~n", [gen_tcp:connect({127, 0, 0, 1}, 1, [], 2000)]),
    gen_tcp:close(L),
    {ok, L2} = gen_tcp:listen(0, [list, {packet, line}, {active, true}]),
    {ok, Port2} = inet:port(L2),
    Me = self(),
    spawn(fun() -> {ok, S} = gen_tcp:accept(L2), gen_tcp:controlling_process(S, Me), Me ! {server, S} end),
    {ok, C2} = gen_tcp:connect("localhost", Port2, [{active, false}]),
    ok = gen_tcp:send(C2, "first\nsecond\nhal"), ok = gen_tcp:send(C2, "f\n"),
    receive {server, S2} -> ok end,
    [receive {tcp, S2, Line} -> io:format("~p~n", [Line]) after 2000 -> io:format("none~n") end || _ <- [1, 2, 3]],
    gen_tcp:close(C2),
    receive {tcp_closed, S2} -> io:format("closed~n") after 2000 -> io:format("none~n") end,
    {ok, U1} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}]),
    {ok, U2} = gen_udp:open(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, UP} = inet:port(U2),
    ok = gen_udp:send(U1, {127, 0, 0, 1}, UP, <<"datagram">>),
    {ok, {{127, 0, 0, 1}, From, Data}} = gen_udp:recv(U2, 0, 2000),
    io:format("~p~n", [Data]),
    ok = gen_udp:send(U2, {127, 0, 0, 1}, From, <<"back">>),
    receive {udp, U1, _, _, B} -> io:format("~p~n", [B]) after 2000 -> io:format("none~n") end,
    io:format("~p~n", [inet:getaddr("localhost", inet)]),
    io:format("~p~n", [inet:parse_address("::1")]),
    io:format("~p~n", [inet:sockname(U2) =:= {ok, {{127, 0, 0, 1}, UP}}]).

echo(S) ->
    case gen_tcp:recv(S, 0) of
        {ok, <<"close">>} -> gen_tcp:close(S);
        {ok, D} -> ok = gen_tcp:send(S, D), echo(S)
    end.
