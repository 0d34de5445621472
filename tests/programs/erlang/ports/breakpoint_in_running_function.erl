%% A breakpoint is set in a function that another process calls all the time. From then on every
%% call is traced, also of a process that was in the function's machine code on another scheduler.
-module(breakpoint_in_running_function).
-export([main/0, start/1]).

main() ->
    At = atomics:new(1, []),
    Pid = spawn_link(?MODULE, start, [At]),
    1 = erlang:trace(Pid, true, [call]),
    rounds(40, Pid, At),
    io:format("none was missed~n").

start(At) ->
    loop(1, At).

%% The number of a call is seen by others before it is made.
loop(N, At) ->
    atomics:put(At, 1, N + 1),
    loop(N + 1, At).

rounds(0, Pid, _) ->
    unlink(Pid),
    exit(Pid, kill);
rounds(K, Pid, At) ->
    %% Long enough to get machine code again.
    timer:sleep(K rem 7),
    1 = erlang:trace_pattern({?MODULE, loop, 2}, true, [local]),
    Seen = atomics:get(At, 1),
    receive
        {trace, Pid, call, {?MODULE, loop, [First, _]}} ->
            1 = erlang:trace_pattern({?MODULE, loop, 2}, false, [local]),
            First =< Seen + 1 orelse io:format("calls ~p to ~p were not told~n", [Seen, First])
    end,
    flush(Pid),
    rounds(K - 1, Pid, At).

flush(Pid) ->
    R = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, R} -> ok end,
    drop().

drop() ->
    receive {trace, _, _, _} -> drop() after 0 -> ok end.
