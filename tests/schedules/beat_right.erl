-module(beat_right).
-export([main/0]).

%% Nothing but a timer moves for three hours, again and again, and then it ends: the base has shown
%% that.
main() ->
    Me = self(),
    spawn(fun() -> beat(10800), Me ! done end),
    receive done -> halt(0) end.

beat(0) -> ok;
beat(N) -> receive after 1000 -> beat(N - 1) end.
