%% A process ends in the middle of a long write to a port, and the waiting writers continue.
-module(writer_killed_in_long_output).
-export([main/0]).

main() ->
    List = lists:duplicate(200000, binary:copy(<<"x">>, 300)),
    io:format("~p~n", [lists:usort([one(List) || _ <- lists:seq(1, 2)])]).

one(List) ->
    P = open_port({spawn, "cat > /dev/null"}, [binary, stream, out]),
    First = spawn(fun() -> port_command(P, List) end),
    timer:sleep(20),
    catch erlang:suspend_process(First),
    % What it has written so far goes out.
    timer:sleep(100),
    {Second, R} = spawn_monitor(fun() -> port_command(P, "abc") end),
    timer:sleep(50),
    exit(First, kill),
    Got = receive {'DOWN', R, process, Second, Why} -> Why after 5000 -> waits end,
    exit(Second, kill),
    port_close(P),
    Got.
