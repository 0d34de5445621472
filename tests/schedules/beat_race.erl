-module(beat_race).
-export([main/0]).

%% Two locks are taken in two orders, beside a process that goes on by its timer.
main() ->
    spawn(fun beat/0),
    Me = self(),
    A = spawn(fun lock/0),
    B = spawn(fun lock/0),
    [begin
         spawn(fun() -> both(X, Y), Me ! done end),
         receive after 1 -> ok end
     end || {X, Y} <- [{A, B}, {B, A}]],
    [receive done -> ok end || _ <- [1, 2]],
    halt(0).

beat() -> receive after 100 -> beat() end.

both(X, Y) -> take(X), take(Y), give(Y), give(X).
take(L) -> L ! {take, self()}, receive {L, yours} -> ok end.
give(L) -> L ! {give, self()}.

lock() -> receive {take, P} -> P ! {self(), yours}, receive {give, P} -> lock() end end.
