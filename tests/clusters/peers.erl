%% A node starts two others by `peer', over pipes. They meet, and one calls the other.
%% Run: purlin schedules --nodes 1 -- run peers.erl
-module(peers).
-export([main/1]).
-mode(compile).

main(_) ->
    {ok, _} = net_kernel:start([first, shortnames]),
    [{P, A}, {Q, B}] = [start(N) || N <- [second, third]],
    true = peer:call(P, net_kernel, connect_node, [B]),
    io:format("~p sees ~p~n", [A, peer:call(P, erlang, nodes, [])]),
    io:format("~p~n", [peer:call(Q, erpc, call, [A, erlang, node, []])]),
    {ok, Socket} = gen_udp:open(0, [binary, {active, false}]),
    {ok, Port} = inet:port(Socket),
    Sends = fun(Host) -> {ok, S} = gen_udp:open(0), gen_udp:send(S, Host, Port, <<"datagram">>) end,
    ok = Sends("world"),
    {ok, {_, _, Data}} = gen_udp:recv(Socket, 0, 1000),
    io:format("~p~n", [Data]),
    peer:stop(P),
    peer:stop(Q),
    io:put_chars("stopped\n").

start(Name) ->
    {ok, Pid, Node} = peer:start_link(#{name => Name, connection => standard_io}),
    {Pid, Node}.
