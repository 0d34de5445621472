%% A process takes schedulers offline or blocks them, and continues on a remaining one, wherever it
%% was.
-module(offline_at_once).
-export([main/0]).

main() ->
    [io:format("~p ~p~n", [W, lists:usort([run(W) || _ <- lists:seq(1, 200)])]) || W <- [online, block_normal, block]],
    io:format("~p~n", [[{X, erlang:system_flag(multi_scheduling, X), blockers()} || X <- [block, block, unblock, block_normal, unblock, unblock_normal]]]).

blockers() ->
    {length(erlang:system_info(multi_scheduling_blockers)), length(erlang:system_info(normal_multi_scheduling_blockers))}.

%% It is moved to the second scheduler now and then, since another computes beside it.
run(W) ->
    P = spawn_link(fun() -> busy(20000), receive stop -> ok end end),
    busy(4000),
    take(W),
    Id = erlang:system_info(scheduler_id),
    busy(100),
    Same = Id =:= erlang:system_info(scheduler_id),
    give(W),
    M = monitor(process, P),
    P ! stop,
    receive {'DOWN', M, _, _, normal} -> ok end,
    {Id, Same}.

take(online) -> erlang:system_flag(schedulers_online, 1);
take(How) -> How = block_of(How, erlang:system_flag(multi_scheduling, How)).

give(online) -> erlang:system_flag(schedulers_online, erlang:system_info(schedulers));
give(block) -> enabled = erlang:system_flag(multi_scheduling, unblock);
give(block_normal) -> enabled = erlang:system_flag(multi_scheduling, unblock_normal).

block_of(block, blocked) -> block;
block_of(block_normal, blocked_normal) -> block_normal.

busy(0) -> ok;
busy(N) -> busy(N - 1).
