%% Checks the current function of a process that was spawned with a fun or a function and has not
%% run yet.
-module(processes_not_yet_started).
-export([main/0, waits/1]).

main() ->
    %% Processes of lower priority are not run before this one waits, and look at their signals
    %% first.
    erlang:system_flag(schedulers_online, 1),
    process_flag(priority, high),
    Items = [current_function, current_location, current_stacktrace],
    Told = [{What, process_info(Start(), Items)}
            || {What, Start} <- [{a_fun, fun() -> spawn(fun() -> waits(1) end) end},
                                 {apply, fun() -> spawn(erlang, apply, [fun() -> waits(1) end, []]) end},
                                 {traced, fun traced/0}]],
    io:format("~p~n", [Told]).

traced() ->
    erlang:trace(new, true, [call]),
    erlang:trace_pattern({erlang, apply, 2}, true, [global]),
    P = spawn(fun() -> waits(1) end),
    erlang:trace(new, false, [call]),
    P.

waits(_) ->
    receive never -> ok end.
