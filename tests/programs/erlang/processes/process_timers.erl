%% Checks timers: send_after, start_timer, cancel, read, order, receive with time-out.
-module(process_timers).
-export([main/0]).

main() ->
    [erlang:send_after(T, self(), {t, T}) || T <- [90, 30, 60, 0, 120]],
    io:format("~p~n", [[receive {t, T} -> T end || _ <- lists:seq(1, 5)]]),
    R = erlang:start_timer(10, self(), msg),
    receive {timeout, R, msg} -> io:format("start_timer~n") end,
    C = erlang:send_after(100000, self(), never),
    Left = erlang:read_timer(C),
    io:format("~p~n", [Left > 90000 andalso Left =< 100000]),
    L2 = erlang:cancel_timer(C),
    io:format("~p ~p ~p~n", [L2 > 90000, erlang:cancel_timer(C), erlang:read_timer(C)]),
    D = erlang:send_after(100000, self(), never),
    io:format("~p~n", [erlang:cancel_timer(D, [{async, true}, {info, true}])]),
    receive {cancel_timer, D, N} -> io:format("async ~p~n", [is_integer(N)]) end,
    T0 = erlang:monotonic_time(millisecond),
    receive nothing -> ok after 50 -> ok end,
    T1 = erlang:monotonic_time(millisecond),
    io:format("~p~n", [T1 - T0 >= 50 andalso T1 - T0 < 2000]),
    receive nothing -> ok after 0 -> io:format("zero~n") end,
    erlang:send_after(5, some_name_without_process, x),
    erlang:start_timer(erlang:monotonic_time(millisecond) + 20, self(), abs, [{abs, true}]),
    receive {timeout, _, abs} -> io:format("absolute~n") end,
    io:format("~p~n", [catch element(1, element(2, catch erlang:send_after(-1, self(), x)))]),
    {ok, TRef} = timer:send_interval(10, tick),
    [receive tick -> ok end || _ <- [1, 2, 3]],
    io:format("~p~n", [timer:cancel(TRef)]),
    {ok, _} = timer:apply_after(5, erlang, send, [self(), applied]),
    receive applied -> io:format("applied~n") end,
    {Us, V} = timer:tc(fun() -> lists:seq(1, 3) end),
    io:format("~p ~p~n", [Us >= 0, V]),
    Self = self(),
    %% a thousand at once come in order of their time
    Base = erlang:monotonic_time(millisecond) + 300,
    Refs = [erlang:send_after(Base + (I * 7919) rem 50, Self, {many, (I * 7919) rem 50}, [{abs, true}]) || I <- lists:seq(1, 1000)],
    Got = [receive {many, K} -> K end || _ <- Refs],
    io:format("~p ~p~n", [length(Got), Got =:= lists:sort(Got)]).
