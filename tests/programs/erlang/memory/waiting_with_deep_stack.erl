%% A process waits repeatedly under a growing stack. The work at the start of each wait must not
%% scan the whole stack.
-module(waiting_with_deep_stack).
-export([main/0, level/1]).

main() ->
    {P, R} = spawn_monitor(fun() -> exit({sum, ?MODULE:level(200000)}) end),
    receive {'DOWN', R, process, P, Why} -> io:format("~p~n", [Why]) end.

level(0) -> 0;
level(N) ->
    Me = self(),
    spawn(fun() -> Me ! {N, one} end),
    receive {N, one} -> ok end,
    1 + ?MODULE:level(N - 1).
