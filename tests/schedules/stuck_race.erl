-module(stuck_race).
-export([main/0]).

%% Two processes take two locks each.
main() ->
    [ets:new(T, [named_table, public]) || T <- [locks]],
    A = lock(), B = lock(),
    Me = self(),
    spawn_link(fun() -> with(A, fun() -> with(B, fun() -> ok end) end), Me ! done end),
    spawn_link(fun() -> with(B, fun() -> with(A, fun() -> ok end) end), Me ! done end),
    [receive done -> ok end || _ <- [1, 2]],
    halt(0).

lock() -> spawn_link(fun free/0).
free() -> receive {take, P} -> P ! {taken, self()}, held(P) end.
held(P) -> receive {give, P} -> free() end.

with(L, F) ->
    L ! {take, self()},
    receive {taken, L} -> ok end,
    F(),
    L ! {give, self()}.
