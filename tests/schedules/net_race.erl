%% What is added, twice, comes by sockets of its own: one of the two updates may be lost.
-module(net_race).
-export([main/0]).

main() ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listen),
    Main = self(),
    spawn_link(fun() ->
        {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary]),
        ok = gen_tcp:send(S, <<"3">>),
        receive {tcp_closed, S} -> Main ! closed end
    end),
    {ok, S} = gen_tcp:accept(Listen, 5000),
    {ok, Three} = gen_tcp:recv(S, 1, 5000),
    gen_tcp:close(S),
    receive closed -> ok end,
    {ok, U} = gen_udp:open(0, [binary, {active, true}, {ip, {127, 0, 0, 1}}]),
    {ok, Own} = inet:port(U),
    ok = gen_udp:send(U, {127, 0, 0, 1}, Own, <<"4">>),
    Four = receive {udp, U, {127, 0, 0, 1}, Own, D} -> D end,
    {ok, N} = socket:open(inet, dgram, udp),
    ok = socket:bind(N, #{family => inet, addr => {127, 0, 0, 1}, port => 0}),
    {ok, Address} = socket:sockname(N),
    Reader = spawn_link(fun() -> Main ! socket:recvfrom(N) end),
    ok = socket:sendto(N, <<"5">>, Address),
    Five = receive {ok, {#{port := P}, F}} when is_pid(Reader), P =:= map_get(port, Address) -> F end,
    io:format("~p ~p ~p~n", [Port, Own, map_get(port, Address)]),
    halt(lost(lists:sum([binary_to_integer(B) || B <- [Three, Four, Five]]))).

%% 0 if both have been added; 1: one update was lost.
lost(Step) ->
    T = ets:new(t, [public]),
    ets:insert(T, {n, 0}),
    Main = self(),
    Add = fun() ->
        [{n, N}] = ets:lookup(T, n),
        ets:insert(T, {n, N + Step}),
        Main ! done
    end,
    [spawn(Add) || _ <- [1, 2]],
    [receive done -> ok end || _ <- [1, 2]],
    [{n, Sum}] = ets:lookup(T, n),
    io:format("~p of ~p~n", [Sum, 2 * Step]),
    case Sum =:= 2 * Step of
        true -> 0;
        false -> 1
    end.
