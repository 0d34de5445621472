%% Checks selective receive: priorities by pattern, long queues, receive markers.
%% @stress @shared @fence
-module(selective_receive).
-export([main/0]).

main() ->
    [self() ! X || X <- [a, b, {n, 1}, c, {n, 2}, d]],
    receive {n, 2} -> io:format("2~n") end,
    receive {n, N} when N < 2 -> io:format("~p~n", [N]) end,
    io:format("~p~n", [flush()]),
    [self() ! {noise, I} || I <- lists:seq(1, 2000)],
    Echo = spawn(fun echo/0),
    io:format("~p~n", [lists:sum([call(Echo, I) || I <- lists:seq(1, 200)])]),
    {message_queue_len, Len} = process_info(self(), message_queue_len),
    io:format("~p~n", [Len]),
    io:format("~p~n", [length(flush())]),
    self() ! last,
    {messages, M} = process_info(self(), messages),
    io:format("~p~n", [M]),
    receive X9 -> X9 after 0 -> none end,
    Me = self(),
    spawn(fun() -> timer:sleep(20), Me ! late end),
    receive late -> io:format("late~n") after 5000 -> io:format("timed out~n") end,
    process_flag(message_queue_data, off_heap),
    [Me ! {x, lists:seq(1, K)} || K <- lists:seq(1, 100)],
    erlang:garbage_collect(),
    io:format("~p~n", [lists:sum([length(receive {x, L} when length(L) =:= K -> L end) || K <- lists:seq(100, 1, -1)])]),
    process_flag(message_queue_data, on_heap),
    Forever = spawn(fun() -> timer:sleep(infinity) end),
    [begin timer:sleep(5), Forever ! wake_up end || _ <- [1, 2, 3]],
    timer:sleep(20),
    io:format("~p~n", [process_info(Forever, message_queue_len)]),
    io:format("~p~n", [flush()]).

echo() -> receive {From, R, X} -> From ! {R, X}, echo() end.

call(P, X) ->
    R = make_ref(),
    P ! {self(), R, X},
    receive {R, Y} -> Y end.

flush() -> receive X -> [X | flush()] after 0 -> [] end.
