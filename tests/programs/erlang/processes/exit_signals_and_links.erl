%% Checks exit signals through links: reasons, trapping, kill, unlink, chains.
%% @stress @shared @fence
-module(exit_signals_and_links).
-export([main/0]).

main() ->
    process_flag(trap_exit, true),
    P1 = spawn_link(fun() -> exit(one) end),
    receive {'EXIT', P1, W1} -> io:format("~p~n", [W1]) end,
    P2 = spawn_link(fun() -> ok end),
    receive {'EXIT', P2, W2} -> io:format("~p~n", [W2]) end,
    P3 = spawn_link(fun sleep/0),
    exit(P3, kill),
    receive {'EXIT', P3, W3} -> io:format("~p~n", [W3]) end,
    Self = self(),
    P4 = spawn_link(fun() -> process_flag(trap_exit, true), Self ! ready, receive {'EXIT', _, R} -> exit({trapped, R}) end end),
    receive ready -> ok end,
    exit(P4, normal),
    receive {'EXIT', P4, W4} -> io:format("~p~n", [W4]) end,
    %% a chain of a hundred falls as one
    First = spawn(fun() -> chain(100, Self) end),
    Last = receive {last, L} -> L end,
    R5 = monitor(process, Last),
    exit(First, boom),
    receive {'DOWN', R5, process, Last, W5} -> io:format("chain ~p~n", [W5]) end,
    P6 = spawn_link(fun() -> receive go -> exit(unseen) end end),
    unlink(P6),
    R6 = monitor(process, P6),
    P6 ! go,
    receive {'DOWN', R6, _, _, W6} -> io:format("~p~n", [W6]) end,
    receive X -> io:format("unexpected ~p~n", [X]) after 20 -> io:format("quiet~n") end,
    %% exit(P, normal) does nothing to one that does not trap
    P7 = spawn(fun() -> receive {Who, hello} -> Who ! alive end, sleep() end),
    exit(P7, normal),
    P7 ! {Self, hello},
    receive alive -> io:format("alive~n") end,
    link(P7),
    exit(P7, {shutdown, "text"}),
    receive {'EXIT', P7, W7} -> io:format("~p~n", [W7]) end,
    %% to the dead: a trapping process gets noproc
    link(P7),
    receive {'EXIT', P7, W8} -> io:format("~p~n", [W8]) end,
    io:format("~p~n", [element(1, catch link(not_a_pid))]),
    io:format("~p~n", [process_info(self(), links)]),
    exit(self(), to_myself),
    receive {'EXIT', Me, W9} when Me =:= Self -> io:format("~p~n", [W9]) end,
    process_flag(trap_exit, false).

sleep() -> receive after infinity -> ok end.

chain(0, Main) -> Main ! {last, self()}, sleep();
chain(N, Main) -> spawn_link(fun() -> chain(N - 1, Main) end), sleep().
