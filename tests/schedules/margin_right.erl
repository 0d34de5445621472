-module(margin_right).
-export([main/0]).

%% A stall of 95 ms makes the worker slow, which is allowed; one that is longer would be too long.
main() ->
    Me = self(),
    Before = erlang:monotonic_time(millisecond),
    spawn(fun() -> Me ! answer end),
    Status = receive answer -> 0 after 100 -> 3 end,
    Took = erlang:monotonic_time(millisecond) - Before,
    halt(case Took > 97 of true -> 4; false -> Status end).
