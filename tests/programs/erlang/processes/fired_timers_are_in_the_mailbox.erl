%% A timer that `cancel_timer` does not find has put its message into the mailbox. One that it finds
%% sends nothing. Several processes cancel many timers at the moment when they are due.
-module(fired_timers_are_in_the_mailbox).
-export([main/0]).

main() ->
    [io:format("~p ~p~n", [Kind, storm(Kind)]) || Kind <- [start_timer, send_after, absolute, named, async, another]].

%% Messages that were missing, and those that came though their timer was cancelled.
storm(Kind) ->
    Ps = [spawn_monitor(fun() -> exit({done, rounds(Kind, N, 30, {0, 0})}) end) || N <- [1, 2, 3, 4]],
    lists:foldl(fun({P, R}, {A, B}) -> receive {'DOWN', R, process, P, {done, {C, D}}} -> {A + C, B + D} end end, {0, 0}, Ps).

rounds(_, _, 0, Sum) -> Sum;
rounds(Kind, N, Left, {Missing, Stray}) ->
    %% The timers of all processes are due at the same moment.
    At = erlang:monotonic_time(millisecond) div 4 * 4 + 6,
    Timers = [start(Kind, At, I) || I <- lists:seq(1, 40)],
    spin(erlang:convert_time_unit(At, millisecond, native) + (Left - 15) * 20000),
    Found = [{I, cancel(Kind, R)} || {I, R} <- order(N, Timers)],
    M = length([I || {I, false} <- Found, not take(I)]),
    receive after 3 -> ok end,
    S = length([I || {I, _} <- Found, take(I)]),
    [] = flush(),
    stop(Kind),
    rounds(Kind, N, Left - 1, {Missing + M, Stray + S}).

start(start_timer, At, I) -> {I, erlang:start_timer(left(At), self(), I)};
start(absolute, At, I) -> {I, erlang:start_timer(At, self(), I, [{abs, true}])};
start(async, At, I) -> {I, erlang:start_timer(left(At), self(), I)};
start(send_after, At, I) -> {I, erlang:send_after(left(At), self(), {timeout, none, I})};
start(named, At, I) ->
    case process_info(self(), registered_name) of
        {registered_name, _} -> ok;
        [] -> register(list_to_atom(pid_to_list(self())), self())
    end,
    {registered_name, Name} = process_info(self(), registered_name),
    {I, erlang:start_timer(left(At), Name, I)};
%% Another process has started it.
start(another, At, I) ->
    S = self(),
    P = spawn(fun() -> S ! {self(), erlang:start_timer(left(At), S, I)} end),
    receive {P, R} -> {I, R} end.

left(At) -> max(0, At - erlang:monotonic_time(millisecond) - 1).

cancel(async, R) ->
    ok = erlang:cancel_timer(R, [{async, true}, {info, true}]),
    receive {cancel_timer, R, Left} -> Left end;
cancel(_, R) -> erlang:cancel_timer(R).

stop(named) -> unregister(list_to_atom(pid_to_list(self())));
stop(_) -> ok.

order(N, L) when N rem 2 =:= 0 -> lists:reverse(L);
order(_, L) -> L.

take(I) -> receive {timeout, _, I} -> true after 0 -> false end.

flush() -> receive M -> [M | flush()] after 0 -> [] end.

spin(T) ->
    case erlang:monotonic_time() >= T of
        true -> ok;
        false -> spin(T)
    end.
