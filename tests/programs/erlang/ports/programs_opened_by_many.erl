%% Many processes open programs at the same time. Checks the results and errors of `open_port`, the
%% order of messages, and the numbers of programs. @stress @fence @seconds 120
-module(programs_opened_by_many).
-export([main/0]).

main() ->
    {_, M} = spawn_monitor(fun all/0),
    receive {'DOWN', M, _, _, R} -> io:format("~w~n", [R]) end,
    halt(0).

all() ->
    Before = length(erlang:ports()),
    io:format("errors ~w~n", [[failed(T, O) || {T, O} <- wrong()]]),
    io:format("number ~w~n", [number()]),
    io:format("order ~w~n", [order()]),
    io:format("driver ~w~n", [driver()]),
    io:format("statuses ~w~n", [statuses(60)]),
    io:format("linked ~w~n", [linked()]),
    io:format("left ~w~n", [left(Before, 200)]).

wrong() ->
    [{{spawn_executable, "/no/such/program"}, []},
     {{spawn_executable, "/etc/passwd"}, []},
     {{spawn_executable, "/"}, []},
     {{spawn_executable, "/bin/sh/below"}, []},
     {{spawn_executable, "/bin/sh"}, [{args, not_a_list}]},
     {{spawn, ""}, []},
     {{spawn, "true"}, [nonsense]},
     {{spawn, "true"}, [{args, ["a"]}]},
     {{spawn_driver, "no_such_driver"}, []},
     {{spawn, 17}, []}].

failed(Target, Options) ->
    try open_port(Target, Options) of P when is_port(P) -> catch port_close(P), port
    catch error:R -> R end.

number() ->
    P = open_port({spawn, "sh -c 'echo $$; read x'"}, [{line, 100}]),
    {os_pid, N} = erlang:port_info(P, os_pid),
    {connected, Me} = erlang:port_info(P, connected),
    R = receive {P, {data, {eol, L}}} -> list_to_integer(L) =:= N end,
    port_close(P),
    {R, Me =:= self(), erlang:port_info(P, os_pid)}.

order() ->
    self() ! before,
    P = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "echo said"]}, {line, 100}, exit_status]),
    self() ! {behind, P},
    First = receive X -> X end,
    Rest = lists:sort([receive {P, Y} -> Y; {behind, P} -> behind end || _ <- [1, 2, 3]]),
    {First, Rest}.

%% No program: it needs no other thread.
driver() ->
    P = open_port({spawn, "ram_file_drv"}, []),
    R = {erlang:port_info(P, name), erlang:port_info(P, os_pid)},
    port_close(P),
    R.

statuses(N) ->
    Me = self(),
    Ps = [spawn_link(fun() ->
        P = open_port({spawn, "sh -c 'exit " ++ integer_to_list(I) ++ "'"}, [exit_status]),
        receive {P, {exit_status, S}} -> Me ! {self(), S} end
    end) || I <- lists:seq(1, N)],
    [receive {P, S} -> S end || P <- Ps] =:= lists:seq(1, N).

linked() ->
    {P, M} = spawn_monitor(fun() ->
        Port = open_port({spawn, "cat"}, []),
        {links, L} = process_info(self(), links),
        true = lists:member(Port, L),
        exit(Port, some_reason),
        receive never -> ok end
    end),
    receive {'DOWN', M, _, P, R} -> R end.

left(Before, 0) -> length(erlang:ports()) - Before;
left(Before, N) ->
    case length(erlang:ports()) of
        Before -> 0;
        _ -> receive after 20 -> left(Before, N - 1) end
    end.
