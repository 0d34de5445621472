%% Runs programs through ports and os:cmd: data, status, packets, lines, errors, environment.
-module(port_programs).
-export([main/0]).

main() ->
    zeros(),
    io:format("~p~n", [os:cmd("echo hello; echo err 1>&2; printf 'no newline'")]),
    io:format("~p~n", [os:cmd("exit 3")]),
    io:format("~p~n", [os:cmd("cat nofile 2>/dev/null || echo failed")]),
    P1 = open_port({spawn, "sh -c 'echo out; exit 7'"}, [exit_status, binary, stream]),
    io:format("~p~n", [collect(P1, <<>>)]),
    P2 = open_port({spawn_executable, "/bin/cat"}, [{packet, 2}, binary]),
    io:format("~p~n", [erlang:port_info(P2, connected) =:= {connected, self()}]),
    port_command(P2, <<"packet one">>), P2 ! {self(), {command, ["two", <<"!">>]}},
    receive {P2, {data, A}} -> io:format("~p~n", [A]) end,
    receive {P2, {data, B}} -> io:format("~p~n", [B]) end,
    P2 ! {self(), close},
    receive {P2, closed} -> io:format("closed~n") end,
    P3 = open_port({spawn, "printf 'line1\\nline2 is long\\nrest'"}, [{line, 8}, exit_status]),
    io:format("~p~n", [lines(P3)]),
    P4 = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "echo $X $1; pwd | grep -c /tmp$", "sh", "arg one"]}, {env, [{"X", "value"}]}, {cd, "/tmp"}, exit_status, binary]),
    io:format("~p~n", [collect(P4, <<>>)]),
    io:format("~p~n", [try open_port({spawn_executable, "/no/such/file"}, []) catch error:R -> R end]),
    io:format("~p~n", [try open_port({spawn, "no-such-program-anywhere"}, []) catch error:R2 -> R2 end]),
    process_flag(trap_exit, true),
    P5 = open_port({spawn, "cat"}, [binary]),
    io:format("~p~n", [[lists:keymember(K, 1, erlang:port_info(P5)) || K <- [name, links, id, connected, input, output, os_pid]]]),
    port_close(P5),
    receive {'EXIT', P5, W} -> io:format("~p~n", [W]) after 1000 -> io:format("none~n") end,
    io:format("~p~n", [catch element(1, element(2, catch port_command(P5, "x")))]),
    P6 = open_port({spawn, "cat"}, [binary, eof]),
    port_command(P6, binary:copy(<<"0123456789">>, 20000)),
    io:format("~p~n", [gather(P6, 200000)]),
    port_close(P6),
    io:format("~p~n", [[os:getenv("NOT_SET"), os:putenv("SET", "x"), os:getenv("SET"), os:unsetenv("SET"), os:getenv("SET", "dflt")]]),
    io:format("~p~n", [os:type()]),
    io:format("~p~n", [is_list(os:getpid())]),
    io:format("~p~n", [os:find_executable("sh") =/= false]),
    P7 = open_port({spawn, "sh -c 'read x; echo got $x'"}, [stream, exit_status, binary, use_stdio, stderr_to_stdout]),
    port_command(P7, "hello\n"),
    io:format("~p~n", [collect(P7, <<>>)]).

collect(P, Acc) ->
    receive {P, {data, D}} -> collect(P, <<Acc/binary, D/binary>>); {P, {exit_status, S}} -> {Acc, S} after 5000 -> {Acc, timeout} end.
gather(_, N) when N =< 0 -> done;
gather(P, N) -> receive {P, {data, D}} -> gather(P, N - byte_size(D)) after 5000 -> {missing, N} end.
lines(P) -> receive {P, {data, D}} -> [D | lines(P)]; {P, {exit_status, S}} -> [S] after 5000 -> [timeout] end.

%% Names, commands and arguments with a zero character, or a zero byte, in them.
zeros() ->
    Echo = {spawn_executable, "/bin/echo"},
    [io:format("~p ~p~n    ~p~n", [N, O, zero(N, O)])
     || {N, O} <- [
            {"/etc/hostname\0 ", []}, {"\n9\0 ", []}, {'/etc/hostname\0 ', []}, {<<"/etc/hostname">>, []}, {"\0a", []}, {'\0a', []},
            {"", []}, {{spawn, "echo a\0b"}, []}, {{spawn, <<"echo a\0b">>}, []}, {{spawn, 'echo a\0b'}, []},
            {{spawn, <<"\0b">>}, []}, {{spawn, <<>>}, []}, {{spawn, ""}, []}, {{spawn_executable, "/bin/echo\0"}, []},
            {{spawn_executable, <<"/bin/echo\0b">>}, []}, {{spawn_executable, <<"\0b">>}, []}, {{spawn_executable, <<>>}, []},
            {Echo, [{args, ["a\0b"]}]}, {Echo, [{args, [<<"a\0b">>, "c"]}]}, {Echo, [{args, [<<"\0b">>, "c"]}]},
            {Echo, [{arg0, <<"a\0b">>}, {args, ["c"]}]}, {{spawn_executable, "/bin/pwd"}, [{cd, <<"/tmp\0b">>}]},
            {{spawn_executable, "/bin/pwd"}, [{cd, "/tmp\0b"}]}, {Echo, [{env, [{"A\0B", "c"}]}]}, {Echo, [{env, [{"A", "c\0d"}]}]},
            {{spawn_driver, "ram_file_drv\0b"}, []}, {{spawn_driver, <<"\0b">>}, []}]].

zero(N, O) ->
    try open_port(N, [eof | O]) of
        P -> {erlang:port_info(P, name), all(P, [])}
    catch
        C:R -> {C, R}
    end.

all(P, L) ->
    receive
        {P, {data, D}} -> all(P, [D | L]);
        {P, eof} -> catch port_close(P), lists:append(lists:reverse(L))
    after 10000 -> nothing
    end.
