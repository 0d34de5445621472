%% Times one benchmark: `erl -noshell -pa DIR -run bench main MODULE NAME REPEATS`.
%% Prints the best time of the repetitions in microseconds; with BENCH_CPU set in the environment, the time that the
%% runtime's threads computed, where a busy machine makes the passing time worthless. Each runs in a process of its own, so that none pays for
%% the garbage of another, and its result is compared with the one that MODULE:expected(NAME) gives.
-module(bench).
-export([main/1]).

main([Module, Name, Repeats]) ->
    M = list_to_atom(Module),
    F = list_to_atom(Name),
    io:format("~b~n", [lists:min([once(M, F) || _ <- lists:seq(1, list_to_integer(Repeats))])]),
    halt(0).

once(M, F) ->
    erlang:garbage_collect(),
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        T0 = now_us(),
        Result = M:F(),
        T1 = now_us(),
        Self ! {self(), T1 - T0, Result}
    end),
    receive
        {Pid, Time, Result} ->
            erlang:demonitor(Ref, [flush]),
            Result =:= M:expected(F) orelse error({wrong_result, F, Result}),
            Time;
        {'DOWN', Ref, process, Pid, Reason} ->
            error({died, F, Reason})
    end.

now_us() ->
    case os:getenv("BENCH_CPU") of
        false -> erlang:monotonic_time(microsecond);
        _ -> {T, _} = erlang:statistics(runtime), T * 1000
    end.
