%% Writes to ports that were opened for input only and have no descriptor to write to.
-module(output_to_input_ports).
-export([main/0]).

main() ->
    process_flag(trap_exit, true),
    [show(Name, More ++ Options) || {Name, More} <- [{{spawn, "sleep 5"}, []}, {{spawn_executable, "/bin/sleep"}, [{args, ["5"]}]}],
                            Options <- [[in], [in, exit_status], [in, binary, {packet, 2}], [in, eof, stderr_to_stdout]]].

show(Name, Options) ->
    P = open_port(Name, Options),
    Ref = erlang:monitor(port, P),
    Told = port_command(P, "x"),
    receive {'DOWN', Ref, port, P, Reason} -> io:format("~p ~p: ~p ~p", [Name, Options, Told, Reason]) end,
    receive {'EXIT', P, R} -> io:format(" ~p~n", [R]) end.
