%% Checks that counters of the system never decrease, and that no thread works for longer than the
%% time that passes.
-module(system_counters).
-export([main/0]).

main() ->
    erlang:system_flag(scheduler_wall_time, true),
    Ps = [spawn_link(fun() -> works(1000, 3) end) || _ <- lists:seq(1, 20)] ++
        [spawn_link(fun() -> erlang:md5(binary:copy(<<1>>, 100000)), works(100, 5) end) || _ <- lists:seq(1, 4)],
    io:format("~p~n", [backwards(fun counts/0, counts(), 1000, [])]),
    io:format("~p~n", [backwards(fun active/0, active(), 1000, [])]),
    io:format("~p~n", [lists:usort([A =< T || {_, A, T} <- erlang:statistics(scheduler_wall_time_all)])]),
    io:format("~p~n", [own(element(2, process_info(self(), reductions)), 5000, 0)]),
    [begin unlink(P), exit(P, kill) end || P <- Ps].

works(N, Ms) ->
    _ = lists:sum(lists:seq(1, N)),
    timer:sleep(rand:uniform(Ms)),
    works(N, Ms).

counts() ->
    [{K, element(1, statistics(K))} || K <- [runtime, wall_clock, reductions, exact_reductions, context_switches]].

%% Time without work may not go back either, or there was more work than time.
active() ->
    All = lists:sort(erlang:statistics(scheduler_wall_time_all)),
    [{{active, I}, A} || {I, A, _} <- All] ++ [{{rest, I}, T - A} || {I, A, T} <- All].

backwards(_, _, 0, Found) -> lists:usort(Found);
backwards(Ask, Before, N, Found) ->
    Now = Ask(),
    backwards(Ask, Now, N - 1, [K || {{K, V}, {K, W}} <- lists:zip(Before, Now), W < V] ++ Found).

own(_, 0, Found) -> Found;
own(Before, N, Found) ->
    [erlang:bump_reductions(50) || N rem 7 =:= 0],
    [erlang:yield() || N rem 7 =:= 1],
    {_, Now} = process_info(self(), reductions),
    own(Now, N - 1, case Now < Before of true -> Found + 1; false -> Found end).
