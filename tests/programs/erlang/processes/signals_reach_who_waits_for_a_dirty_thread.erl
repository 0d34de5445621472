%% Processes that wait for a dirty thread, while all are busy, handle signals at once, and get their
%% turn in the end. @stress @fence @seconds 120
-module(signals_reach_who_waits_for_a_dirty_thread).
-export([main/0]).

-define(HELD, 8000).

main() ->
    N = erlang:system_info(dirty_cpu_schedulers),
    B = binary:copy(<<"abcdefgh">>, 300000),
    Began = erlang:monotonic_time(millisecond),
    [spawn(fun() -> erts_debug:dirty_cpu(wait, ?HELD) end) || _ <- lists:seq(1, N)],
    receive after 300 -> ok end,
    [io:format("~w~n", [{Name, try_it(B, F)}]) || {Name, F} <- asked()],
    Left = many(B),
    Took = erlang:monotonic_time(millisecond) - Began,
    io:format("~w~n", [case Took < ?HELD - 1000 of true -> before_a_thread_was_free; false -> Took end]),
    [receive {P, had_its_turn, []} -> ok end || P <- Left],
    io:format("all had their turns~n"),
    halt(0).

%% A process at work on something that takes a dirty thread here. It says so when it has had its
%% turn.
waits(B) ->
    Me = self(),
    P = spawn(fun() ->
        put(key, value),
        Me ! {self(), waits},
        Me ! {self(), had_its_turn, binary:matches(B, <<"zz">>)},
        receive stop -> ok end
    end),
    receive {P, waits} -> P end.

try_it(B, F) ->
    P = waits(B),
    M = monitor(process, P),
    receive after 10 -> ok end,
    R = F(P),
    exit(P, kill),
    receive {'DOWN', M, _, _, Why} -> {R, Why, is_process_alive(P)} end.

asked() ->
    [{collect, fun(P) -> erlang:garbage_collect(P) end},
     {check, fun(P) -> erlang:check_process_code(P, ?MODULE) end},
     {look, fun(P) -> P ! m, process_info(P, [message_queue_len, messages, dictionary, trap_exit, links]) end},
     {links, fun(P) ->
         link(P),
         {links, L} = process_info(P, links),
         unlink(P),
         {L =:= [self()], process_info(P, links)}
     end},
     {monitors, fun(P) ->
         M = monitor(process, P),
         {monitored_by, L} = process_info(P, monitored_by),
         demonitor(M),
         {monitored_by, K} = process_info(P, monitored_by),
         {length(L), length(K)}
     end},
     {suspend, fun(P) ->
         true = erlang:suspend_process(P),
         S = process_info(P, status),
         true = erlang:resume_process(P),
         {status, T} = process_info(P, status),
         {S, lists:member(T, [running, runnable, waiting])}
     end},
     {suspended_for_good, fun(P) -> erlang:suspend_process(P), process_info(P, status) end},
     {ended, fun(P) ->
         M = monitor(process, P),
         exit(P, some_reason),
         receive {'DOWN', M, _, _, R} -> R end
     end},
     {linked, fun(P) ->
         M = monitor(process, P),
         {Q, N} = spawn_monitor(fun() -> link(P), exit(of_the_other) end),
         receive {'DOWN', N, _, Q, _} -> ok end,
         receive {'DOWN', M, _, _, R} -> R end
     end}].

%% Many that wait, of which every second one is killed, and the others are looked at all the time.
many(B) ->
    Ps = [{waits(B), I rem 2} || I <- lists:seq(1, 40)],
    Ms = [monitor(process, P) || {P, 0} <- Ps],
    [exit(P, kill) || {P, 0} <- Ps],
    [receive {'DOWN', M, _, _, killed} -> ok end || M <- Ms],
    Left = [P || {P, 1} <- Ps],
    [{dictionary, [{key, value}]} = process_info(P, dictionary) || _ <- lists:seq(1, 5), P <- Left],
    [true = erlang:suspend_process(P) || P <- Left],
    [true = erlang:resume_process(P) || P <- Left],
    io:format("~w left of ~w~n", [length(Left), length(Ps)]),
    Left.
