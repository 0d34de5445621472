%% Checks an order of timers and messages that is not guaranteed but that programs rely on: a
%% message to oneself comes before a timer that was started just before, and a time-out before the
%% message of a timer that is due at the same moment.
-module(timers_in_order_with_messages).
-export([main/0]).

main() ->
    Zero = fun() -> erlang:send_after(0, self(), t) end,
    Past = fun() -> erlang:send_after(now_ms() - 5, self(), t, [{abs, true}]) end,
    Now = fun() -> erlang:send_after(now_ms(), self(), t, [{abs, true}]) end,
    Starts = [{zero, Zero}, {past, Past}, {now, Now}, {start_timer, fun() -> erlang:start_timer(0, self(), t) end},
              {named, fun() -> erlang:send_after(0, named, t) end}],
    register(named, self()),
    [all({own_message, K}, x, 300, fun() -> S(), self() ! x, first() end) || {K, S} <- Starts],
    [all({receive_after_0, K}, x, 300, fun() -> S(), receive t -> t; {timeout, _, t} -> t after 0 -> rest(1), x end end)
     || {K, S} <- Starts],
    [all({yields, K}, t, 300, fun() -> S(), erlang:yield(), self() ! x, first() end) || {K, S} <- Starts, K =:= past orelse K =:= now],
    %% Those whose time is over fire in the order in which they were started, before one of 0 ms.
    all(past_after_past, t, 100, fun() -> Past(), erlang:send_after(now_ms() - 9, self(), x, [{abs, true}]), first() end),
    all(past_after_zero, x, 100, fun() -> Zero(), erlang:send_after(now_ms() - 9, self(), x, [{abs, true}]), first() end),
    all(zero_after_now, t, 100, fun() -> Now(), erlang:send_after(0, self(), x), first() end),
    all(zero_after_zero, t, 100, fun() -> Zero(), erlang:send_after(0, self(), x), first() end),
    %% They are still there.
    [all({read, K}, {0, 0}, 100, fun() -> R = S(), {erlang:read_timer(R), erlang:cancel_timer(R)} end) || {K, S} <- Starts],
    all(read_later, false, 100, fun() -> R = Past(), erlang:yield(), V = erlang:read_timer(R), rest(1), V end),
    %% What a timer sends is there when a time-out of the same time is over; the receive itself ends
    %% by the time-out.
    [all({asleep, T}, t, 20, fun() -> erlang:send_after(T, self(), t), receive after T -> ok end, receive t -> t after 0 -> rest(1), x end end)
     || T <- [1, 2, 5]],
    [most({times_out, T}, x, 30, fun() -> erlang:send_after(T, self(), t), receive t -> t after T -> rest(1), x end end) || T <- [1, 2, 5]],
    %% A message that came before is received, though the time is over when the process runs.
    all(sent_before, t, 30, fun() -> self() ! t, erlang:send_after(1, self(), u), receive t -> receive u -> t end after 1 -> rest(2), x end end).

now_ms() -> erlang:monotonic_time(millisecond).

first() -> receive A -> receive _ when A =:= x -> x; x -> t end end.

rest(0) -> ok;
rest(N) -> receive _ -> rest(N - 1) end.

all(What, Want, N, F) ->
    io:format("~p ~p~n", [What, [V || _ <- lists:seq(1, N), V <- [F()], V =/= Want]]).

most(What, Want, N, F) ->
    Got = [F() || _ <- lists:seq(1, N)],
    io:format("~p ~p~n", [What, length([V || V <- Got, V =:= Want]) > N div 2]).
