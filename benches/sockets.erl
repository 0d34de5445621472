%% Connections: what an idle one costs, and how many are accepted and answered per second. The
%% clients are processes of the same runtime, each with its own end of the connection, so an idle
%% connection costs two sockets and one process here.
%%
%%     purlin erl -noshell -run sockets main idle 10000      resident bytes of each connection (both ends)
%%     purlin erl -noshell -run sockets main accept 20       processes that connect and close for two seconds
%%     purlin erl -noshell -run sockets main echo 50         clients that send 100 bytes and wait for them, two seconds
-module(sockets).
-export([main/1]).

-define(MS, 2000).
-define(OPTIONS, [binary, {active, false}, {nodelay, true}, {backlog, 1024}, {reuseaddr, true}, {ip, {127, 0, 0, 1}}]).

main([What, N]) ->
    io:format("~b~n", [run(list_to_atom(What), list_to_integer(N))]),
    halt().

listen() ->
    {ok, L} = gen_tcp:listen(0, ?OPTIONS),
    {ok, Port} = inet:port(L),
    {L, Port}.

connect(Port) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {nodelay, true}, {reuseaddr, true}]),
    S.

%% Both ends belong to this process, so that nothing but sockets is counted.
run(idle, N) ->
    {L, Port} = listen(),
    Pair = fun() -> C = connect(Port), {ok, S} = gen_tcp:accept(L), {C, S} end,
    Warm = [Pair() || _ <- lists:seq(1, 100)],
    [begin gen_tcp:close(C), gen_tcp:close(S) end || {C, S} <- Warm],
    erlang:garbage_collect(),
    Before = resident(),
    Pairs = [Pair() || _ <- lists:seq(1, N)],
    %% Each is used once: what input and output leave behind counts too.
    [begin ok = gen_tcp:send(C, "ping"), {ok, <<"ping">>} = gen_tcp:recv(S, 4) end || {C, S} <- Pairs],
    erlang:garbage_collect(),
    After = resident(),
    length(Pairs) =:= N andalso (After - Before) div (2 * N);
run(accept, N) ->
    {L, Port} = listen(),
    _ = [spawn_link(fun() -> acceptor(L) end) || _ <- lists:seq(1, 8)],
    rate(N, fun() ->
        S = connect(Port),
        {error, closed} = gen_tcp:recv(S, 0),
        gen_tcp:close(S)
    end);
run(echo, N) ->
    {L, Port} = listen(),
    Data = binary:copy(<<"0123456789">>, 10),
    spawn_link(fun() -> echo_acceptor(L) end),
    rate(N, fun() -> connect(Port) end, fun(S) ->
        ok = gen_tcp:send(S, Data),
        {ok, Data} = gen_tcp:recv(S, 100)
    end).

acceptor(L) ->
    {ok, S} = gen_tcp:accept(L),
    gen_tcp:close(S),
    acceptor(L).

echo_acceptor(L) ->
    {ok, S} = gen_tcp:accept(L),
    Pid = spawn(fun() -> receive go -> echo(S) end end),
    ok = gen_tcp:controlling_process(S, Pid),
    Pid ! go,
    echo_acceptor(L).

echo(S) ->
    ok = inet:setopts(S, [{active, once}]),
    receive
        {tcp, S, Data} -> ok = gen_tcp:send(S, Data), echo(S);
        {tcp_closed, S} -> ok
    end.

rate(N, F) -> rate(N, fun() -> none end, fun(_) -> F() end).
rate(N, Start, F) ->
    Me = self(),
    Pids = [spawn_link(fun() -> X = Start(), receive go -> ok end, Me ! {self(), repeat(X, F, 0)} end) || _ <- lists:seq(1, N)],
    timer:sleep(200),
    T0 = erlang:monotonic_time(microsecond),
    [P ! go || P <- Pids],
    erlang:send_after(?MS, self(), stop),
    receive stop -> ok end,
    [P ! stop || P <- Pids],
    Counts = [receive {P, C} -> C end || P <- Pids],
    round(lists:sum(Counts) * 1.0e6 / (erlang:monotonic_time(microsecond) - T0)).

repeat(X, F, N) ->
    receive stop -> N
    after 0 -> F(X), repeat(X, F, N + 1)
    end.

%% Bytes.
resident() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Kb]} = re:run(Text, "VmRSS:\\s+([0-9]+)", [{capture, all_but_first, list}]),
    1024 * list_to_integer(Kb).
