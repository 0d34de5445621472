%% Times one benchmark: `erl -noshell -pa DIR -run bench main MODULE NAME REPEATS`.
%% Prints the best time of the repetitions in microseconds; with BENCH_CPU set in the environment,
%% the time that the runtime's threads computed, where a busy machine makes the passing time
%% worthless. Each runs in a process of its own, so that none pays for the garbage of another, and
%% its result is compared with the one that MODULE:expected(NAME) gives.
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
        _ -> computed_us()
    end.

%% What the threads of this process have computed, as the scheduler of the system counts it. Not by
%% statistics(runtime): on the stock runtime that is short by up to a half where threads often wait.
computed_us() ->
    case file:list_dir("/proc/self/task") of
        {ok, Threads} -> lists:sum([of_thread("/proc/self/task/" ++ T ++ "/schedstat") || T <- Threads]) div 1000;
        {error, _} -> {T, _} = erlang:statistics(runtime), T * 1000
    end.

of_thread(File) ->
    case file:read_file(File) of
        {ok, Text} -> binary_to_integer(hd(binary:split(Text, <<" ">>)));
        %% It has ended meanwhile.
        {error, _} -> 0
    end.
