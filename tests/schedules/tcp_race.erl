%% What is added, twice, is what a server says: one of the two updates may be lost.
%%
%% The number of operations of the first process depends on how fast the server answers. So the race
%% is in a process of its own, and the wait for the answer has no timer, to which the clock could
%% jump.
-module(tcp_race).
-export([main/0]).

main() ->
    Port = list_to_integer(os:getenv("STEP_PORT")),
    {ok, S} = gen_tcp:connect("127.0.0.1", Port, [{packet, line}, {active, false}]),
    {ok, {{127, 0, 0, 1}, Port}} = inet:peername(S),
    {ok, {_, Own}} = inet:sockname(S),
    ok = gen_tcp:send(S, "step\n"),
    {ok, L} = gen_tcp:recv(S, 0),
    ok = inet:setopts(S, [{active, once}]),
    More = receive {tcp, S, M} -> M end,
    Step = list_to_integer(string:trim(L)),
    io:format("~p ~p ~p~n", [Own, Step, More]),
    {_, Race} = spawn_monitor(fun() -> exit({status, lost(Step)}) end),
    Status = receive {'DOWN', Race, process, _, {status, N}} -> N end,
    ok = gen_tcp:send(S, integer_to_list(Status)),
    gen_tcp:close(S),
    halt(Status).

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
