%% While multi-scheduling is blocked, all other schedulers have stopped, so that no process on them
%% continues to count.
-module(blocked_schedulers_have_stopped).
-export([main/0]).

main() ->
    C = counters:new(1, []),
    Ps = [spawn_link(fun() -> count(C) end) || _ <- lists:seq(1, 4)],
    [io:format("~p ~p~n", [Block, lists:usort([round(C, Block, Unblock) || _ <- lists:seq(1, 30)])])
     || {Block, Unblock} <- [{block, unblock}, {block_normal, unblock_normal}]],
    %% Twice, by two processes.
    S = self(),
    blocked = erlang:system_flag(multi_scheduling, block),
    P = spawn_link(fun() -> S ! {again, erlang:system_flag(multi_scheduling, block)}, receive stop -> ok end end),
    receive {again, V} -> io:format("~p~n", [V]) end,
    io:format("~p~n", [erlang:system_flag(multi_scheduling, unblock)]),
    M = monitor(process, P),
    P ! stop,
    receive {'DOWN', M, process, P, normal} -> ok end,
    io:format("~p~n", [erlang:system_info(multi_scheduling)]),
    %% One that is killed while it waits blocks nobody.
    [begin
        {K, R} = spawn_monitor(fun() -> erlang:system_flag(multi_scheduling, block), receive never -> ok end end),
        exit(K, kill),
        receive {'DOWN', R, process, K, killed} -> ok end
     end || _ <- lists:seq(1, 20)],
    io:format("~p~n", [erlang:system_info(multi_scheduling)]),
    [begin unlink(Q), exit(Q, kill) end || Q <- Ps].

%% How much was counted while others were blocked.
round(C, Block, Unblock) ->
    erlang:system_flag(multi_scheduling, Block),
    A = counters:get(C, 1),
    work(2000),
    B = counters:get(C, 1),
    erlang:system_flag(multi_scheduling, Unblock),
    receive after 1 -> ok end,
    B - A.

work(0) -> ok;
work(N) -> work(N - 1).

count(C) -> counters:add(C, 1, 1), count(C).
