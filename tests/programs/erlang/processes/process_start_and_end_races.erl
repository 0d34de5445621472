%% Signals reach processes while they start and end. A process that is visible can be reached; a
%% removed link has no effect; a process that a collection by others has killed ends at once; a
%% suspended process that has ended is not suspended. @fence
-module(process_start_and_end_races).
-export([main/0, one/1]).

main() ->
    [one(F) || F <- [told, unlinked, limits, suspended]].

%% Each by itself, for trying one.
one(told) -> told();
one(unlinked) -> unlinked();
one(limits) -> limits();
one(suspended) -> suspended().

%% A tracer that hears of a new process reaches it: it is not taken for one that has ended.
told() ->
    Me = self(),
    T = spawn(fun() -> tracer(0) end),
    P = spawn(fun() -> receive go -> ok end, [makes() || _ <- lists:seq(1, 2000)], Me ! made end),
    erlang:trace(P, true, [procs, set_on_spawn, {tracer, T}]),
    P ! go,
    receive made -> ok end,
    T ! {stop, Me},
    receive {T, N} -> io:format("told of and not there: ~p~n", [N]) end.

makes() ->
    Q = spawn_link(fun() -> receive {told, P} -> P ! {here, self()} end end),
    receive {here, Q} -> unlink(Q) after 60000 -> exit(lost) end.

tracer(N) ->
    receive
        {trace, P, spawn, Q, _} ->
            R = monitor(process, Q),
            Q ! {told, P},
            Gone = receive {'DOWN', R, _, _, noproc} -> P ! {here, Q}, 1; {'DOWN', R, _, _, _} -> 0 end,
            tracer(N + Gone);
        {stop, To} -> To ! {self(), N}
    after 0 ->
        %% It looks all the time, so that it comes soon.
        tracer(N)
    end.

%% One end has taken the link away and ends before it hears of anything: the link that the other has
%% made meanwhile is with a process that isn't there.
unlinked() ->
    io:format("a new link breaks with ~p~n", [lists:usort([again() || _ <- lists:seq(1, 1000)])]).

again() ->
    Me = self(),
    B = spawn(fun() ->
        process_flag(trap_exit, true),
        receive {linked, A} -> Me ! {go, A} end,
        until_unlinked(A),
        link(A),
        receive {'EXIT', A, Why} -> Me ! {self(), Why} end
    end),
    spawn(fun() ->
        link(B),
        B ! {linked, self()},
        receive go -> ok end,
        unlink(B),
        spins(2500),
        exit(why)
    end),
    receive {go, A} -> A ! go end,
    receive {B, Why} -> Why end.

until_unlinked(A) ->
    {links, L} = process_info(self(), links),
    lists:member(A, L) andalso until_unlinked(A).

spins(0) -> ok;
spins(N) -> spins(N - 1).

%% A process that is larger than it may be.
limits() ->
    O = [{max_heap_size, #{size => 20000, kill => true, error_logger => false}}, {message_queue_data, on_heap}],
    Me = self(),
    Many = fun(P) -> [P ! {junk, lists:seq(1, 40)} || _ <- lists:seq(1, 3000)] end,
    %% One that is suspended.
    P = spawn_opt(fun() -> receive never -> ok end end, O),
    R = monitor(process, P),
    erlang:suspend_process(P),
    Many(P),
    io:format("collected: ~p~n", [erlang:garbage_collect(P)]),
    receive {'DOWN', R, _, _, Why} -> io:format("ends: ~p~n", [Why]) after 20000 -> io:format("doesn't end~n") end,
    %% What it might have received.
    Q = spawn_opt(fun() -> receive go -> Me ! received end end, O),
    R2 = monitor(process, Q),
    erlang:suspend_process(Q),
    Many(Q),
    Q ! go,
    async = erlang:garbage_collect(Q, [{async, here}]),
    erlang:resume_process(Q),
    receive {'DOWN', R2, _, _, Why2} -> io:format("ends: ~p, received: ~p~n", [Why2, receive received -> true after 0 -> false end]) end,
    receive {garbage_collect, here, _} -> ok end,
    %% One that waits, and that nobody asks for anything.
    %% It has garbage that may be given back, or no room for a message.
    [begin
        W = spawn_opt(fun() ->
            L = lists:seq(1, N),
            Me ! {made, length(L)},
            receive begin_ -> ok end,
            spins(Spins),
            receive go -> Me ! received end
        end, O),
        receive {made, N} -> ok end,
        R3 = monitor(process, W),
        W ! begin_,
        Many(W),
        timer:sleep(2000),
        W ! go,
        io:format("waits: ~p~n", [receive received -> received; {'DOWN', R3, _, _, Why3} -> Why3 end]),
        demonitor(R3, [flush])
    end || {N, Spins} <- [{3000, 0}, {0, 300000}, {100, 300000}]].

suspended() ->
    P = spawn(fun() -> receive never -> ok end end),
    true = erlang:suspend_process(P),
    R = monitor(process, P),
    exit(P, kill),
    receive {'DOWN', R, _, _, _} -> ok end,
    show(resumed, fun() -> erlang:resume_process(P) end),
    show(again, fun() -> erlang:resume_process(P) end),
    [show(O, fun() -> erlang:suspend_process(P, O) end)
     || O <- [[], [asynchronous], [unless_suspending], [unless_suspending, asynchronous], [{asynchronous, a}], [{asynchronous, b}, unless_suspending]]],
    show(mine, fun() -> process_info(self(), suspending) end),
    show(told, fun told_of/0),
    show(resumed, fun() -> erlang:resume_process(P) end),
    show(self, fun() -> erlang:suspend_process(self(), [asynchronous]) end).

told_of() -> receive M -> [M | told_of()] after 100 -> [] end.

show(What, F) -> io:format("~p: ~p~n", [What, try F() catch C:E -> {C, E} end]).
