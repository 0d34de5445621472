-module(slow_right).
-export([main/0]).

%% Each run computes for some time.
main() ->
    Me = self(),
    Pids = [spawn(fun() -> count(4000000), Me ! {self(), I} end) || I <- [1, 2]],
    [receive {P, _} -> ok after 1000 -> ok end || P <- Pids],
    halt(0).

count(0) -> ok;
count(N) -> count(N - 1).
