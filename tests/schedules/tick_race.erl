-module(tick_race).
-export([main/0]).

%% A count is read a little after the time of a timer, on the assumption that its message has
%% arrived.
main() ->
    Me = self(),
    Pid = spawn_link(fun() ->
        register(counter, self()),
        erlang:send_after(1, self(), go),
        receive go -> ok end,
        Me ! ready,
        erlang:send_after(10, self(), tick),
        counter(0)
    end),
    receive ready -> ok end,
    receive after 30 -> ok end,
    Pid ! {get, Me},
    N = receive {count, C} -> C end,
    process_flag(trap_exit, true),
    Pid ! stop,
    receive {'EXIT', Pid, normal} -> halt(1 - N) end.

counter(N) ->
    receive
        tick -> counter(N + 1);
        {get, To} -> To ! {count, N}, counter(N);
        stop -> ok
    end.
