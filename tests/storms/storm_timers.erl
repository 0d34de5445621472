%% Timers: each fires exactly once or was cancelled, none early, none late; what cancel_timer and
%% read_timer say is so.
-module(storm_timers).
-export([round/0]).

%% Milliseconds that a timer may be late: what a busy machine takes, and much more.
-define(LATE, (storm:late(15000))).

round() ->
    storm:run([{own, 4, fun own/0}, {others, 2, fun others/0}, {receives, 2, fun receives/0}, {ends, 1, fun ends/0}]).

native_ms() -> erlang:monotonic_time().
ms(T) -> erlang:convert_time_unit(T, native, microsecond) / 1000.

%% A process has many timers to itself; it cancels some, and reads some.
own() ->
    N = 20 + storm:random(60),
    Timers = maps:from_list([start(I, self()) || I <- lists:seq(1, N)]),
    Left = some(Timers, N * 2),
    rest(Left).

%% I => {Reference, kind of message, when it was started, after how long it is due}
start(I, To) ->
    T = storm:choice([0, 0, 1, 1, 2, 3, 5, storm:random(30), storm:random(30), 60000]),
    T0 = native_ms(),
    {R, Wrapped} =
        case storm:random(4) of
            0 -> {erlang:send_after(T, To, {timer, I}), false};
            1 -> {erlang:start_timer(T, To, {timer, I}), true};
            2 -> {erlang:send_after(at(T), To, {timer, I}, [{abs, true}]), false};
            3 -> {erlang:start_timer(at(T), To, {timer, I}, [{abs, true}]), true}
        end,
    {I, {R, Wrapped, T0, T}}.

%% An absolute time is told in whole milliseconds, and what is due in that one is due.
at(T) -> erlang:monotonic_time(millisecond) + T + 1.

some(Timers, 0) -> Timers;
some(Timers, N) ->
    case maps:keys(Timers) of
        [] -> Timers;
        Keys ->
            I = storm:choice(Keys),
            some(one(I, Timers), N - 1)
    end.

one(I, Timers) ->
    #{I := {R, _, _, T} = Timer} = Timers,
    case storm:random(7) of
        0 -> cancelled(I, Timer, erlang:cancel_timer(R), Timers);
        1 -> cancelled(I, Timer, erlang:cancel_timer(R, [{async, false}, {info, true}]), Timers);
        2 ->
            ok = erlang:cancel_timer(R, [{async, true}]),
            receive {cancel_timer, R, Result} -> cancelled(I, Timer, Result, Timers)
            after ?LATE -> storm:fault("no answer to an asynchronous cancel_timer", []), maps:remove(I, Timers)
            end;
        3 ->
            %% Nobody says whether it was in time: it has fired by now, or never will.
            ok = erlang:cancel_timer(R, [{info, false}]),
            _ = came(I, Timer, 0),
            gone(I, Timer),
            maps:remove(I, Timers);
        4 ->
            case erlang:read_timer(R) of
                false -> fired(I, Timer, read_timer, Timers);
                Ms when is_integer(Ms), Ms >= 0, Ms =< T + 2 -> Timers;
                Other -> storm:fault("read_timer says ~p of a timer of ~p ms", [Other, T]), Timers
            end;
        5 ->
            ok = erlang:read_timer(R, [{async, true}]),
            receive
                {read_timer, R, false} -> fired(I, Timer, 'asynchronous read_timer', Timers);
                {read_timer, R, Ms} when is_integer(Ms), Ms >= 0, Ms =< T + 2 -> Timers
            after ?LATE -> storm:fault("no answer to an asynchronous read_timer", []), Timers
            end;
        6 ->
            case came(I, Timer, 0) of
                true -> maps:remove(I, Timers);
                false -> storm:wait(2), Timers
            end
    end.

cancelled(I, Timer, false, Timers) ->
    fired(I, Timer, cancel_timer, Timers);
cancelled(I, {R, _, _, T} = Timer, Ms, Timers) when is_integer(Ms), Ms >= 0, Ms =< T + 2 ->
    storm:check(erlang:cancel_timer(R) =:= false, "a timer was cancelled twice", []),
    gone(I, Timer),
    maps:remove(I, Timers);
cancelled(I, {_, _, _, T}, Other, Timers) ->
    storm:fault("cancel_timer says ~p of a timer of ~p ms", [Other, T]),
    maps:remove(I, Timers).

%% It is said to have fired.
fired(I, {_, _, T0, T} = Timer, Who, Timers) ->
    case came(I, Timer, 0) of
        true -> ok;
        false ->
            Later = came(I, Timer, 2000),
            storm:fault("~p says false, and the message is not there (~s); timer of ~p ms, ~p ms ago", [Who, case Later of true -> "it comes later"; false -> "it never comes" end, T, ms(native_ms() - T0)])
    end,
    maps:remove(I, Timers).

%% Whether its message comes; not too early.
came(I, {R, Wrapped, T0, T}, Wait) ->
    receive
        {timer, I} when not Wrapped -> in_time(T0, T), true;
        {timeout, R, {timer, I}} when Wrapped -> in_time(T0, T), true
    after Wait -> false
    end.

in_time(T0, T) ->
    Passed = ms(native_ms() - T0),
    storm:check(Passed >= T, "a timer of ~p ms fired after ~p ms", [T, Passed]),
    storm:check(Passed =< T + ?LATE, "a timer of ~p ms fired after ~p ms", [T, Passed]).

gone(I, {R, _, _, T}) ->
    receive
        {timer, I} -> storm:fault("a cancelled timer of ~p ms fired", [T]);
        {timeout, R, _} -> storm:fault("a cancelled timer of ~p ms fired", [T])
    after 0 -> ok
    end.

%% All that are left fire, but the long ones, which are cancelled; then nothing comes any more.
rest(Timers) ->
    maps:foreach(
        fun(I, {R, _, _, 60000} = Timer) ->
                case erlang:cancel_timer(R) of
                    Ms when is_integer(Ms) -> gone(I, Timer);
                    false -> storm:fault("a timer of a minute is not there", [])
                end;
           (I, {_, _, _, T} = Timer) ->
                came(I, Timer, T + ?LATE) orelse storm:fault("a timer of ~p ms has not fired", [T])
        end, Timers),
    receive after 40 -> ok end,
    case storm:flush() of
        [] -> ok;
        More -> storm:fault("timers fired once more, or though they were cancelled: ~0p", [More])
    end.

%% Timers to another process, to a name, and to processes that end.
others() ->
    Me = self(),
    Name = list_to_atom("storm_timer_" ++ integer_to_list(storm:random(1000000))),
    To = spawn_link(fun() -> catch register(Name, self()), Me ! {ready, self(), whereis(Name) =:= self()}, collect(Me, []) end),
    Named = receive {ready, To, X} -> X end,
    Started = [begin
                   storm:chance(4) andalso storm:wait(1),
                   start(I, case Named andalso storm:chance(3) of true -> Name; false -> To end)
               end || I <- lists:seq(1, 30 + storm:random(40))],
    %% In turn, some by another process than the one that has started them.
    Kept = lists:filter(
        fun({_, {R, _, _, T}}) ->
            case T =:= 60000 orelse storm:chance(3) of
                false -> true;
                true ->
                    case storm:chance(2) of
                        true -> erlang:cancel_timer(R) =:= false;
                        false -> [false] =:= storm:all(fun erlang:cancel_timer/1, [R])
                    end
            end
        end, storm:shuffle(Started)),
    Wanted = lists:sort([I || {I, _} <- Kept]),
    To ! {wanted, length(Wanted)},
    receive
        {got, To, Got} ->
            Sorted = lists:sort([I || {I, _} <- Got]),
            storm:check(Sorted =:= Wanted, "another process got timers ~0p, not ~0p", [Sorted -- Wanted, Wanted -- Sorted]),
            [begin
                 {_, {_, _, T0, T}} = lists:keyfind(I, 1, Started),
                 storm:check(ms(At - T0) >= T, "a timer of ~p ms to another process fired after ~p ms", [T, ms(At - T0)])
             end || {I, At} <- Got]
    end.

collect(Me, Got) ->
    receive
        {timer, I} -> collect(Me, [{I, native_ms()} | Got]);
        {timeout, _, {timer, I}} -> collect(Me, [{I, native_ms()} | Got]);
        {wanted, N} -> collect(Me, Got, N)
    end.
collect(Me, Got, N) ->
    receive
        {timer, I} -> collect(Me, [{I, native_ms()} | Got], N);
        {timeout, _, {timer, I}} -> collect(Me, [{I, native_ms()} | Got], N)
    after case length(Got) < N of true -> ?LATE; false -> 50 end ->
        Me ! {got, self(), Got},
        unlink(Me)
    end.

%% `after`: never early, never in vain.
receives() ->
    [begin
         T = storm:random(8),
         T0 = native_ms(),
         Ref = make_ref(),
         Sent = storm:chance(3),
         Sent andalso erlang:send_after(storm:random(8), self(), Ref),
         receive
             Ref -> ok
         after T ->
             Passed = ms(native_ms() - T0),
             storm:check(Passed >= T, "after ~p came after ~p ms", [T, Passed]),
             storm:check(Passed =< T + ?LATE, "after ~p came after ~p ms", [T, Passed]),
             %% It comes still.
             Sent andalso receive Ref -> ok after ?LATE -> storm:fault("a timer is lost behind a receive that timed out", []) end
         end
     end || _ <- lists:seq(1, 60)].

%% Who has started a timer to somebody else may end: it fires. Timers to one that has ended are
%% gone.
ends() ->
    Me = self(),
    [begin
         T = storm:random(10),
         {_, M} = spawn_monitor(fun() -> erlang:send_after(T, Me, {left, I}) end),
         receive {'DOWN', M, process, _, _} -> ok end,
         {P, M1} = spawn_monitor(fun() -> receive after storm:random(3) -> ok end end),
         R = erlang:send_after(60000, P, late),
         receive {'DOWN', M1, process, P, _} -> ok end,
         storm:check(erlang:read_timer(R) =:= false, "a timer to a process that has ended is there", []),
         receive {left, I} -> ok after ?LATE -> storm:fault("a timer ended with the process that had started it", []) end
     end || I <- lists:seq(1, 20)].
