%% Checks ports as processes see them: signals, owners, links, monitors, names, busy ports, ways to
%% close, invalid arguments.
-module(port_semantics).
-export([main/0]).

main() ->
    process_flag(trap_exit, true),
    [begin io:format("~p: ~p~n", [T, catch t(T)]), clean() end || T <- tests()].

tests() ->
    [bytes, packets, lines, status, killed, env, bad_cd, executable, not_executable, stderr, eof, close, close_message,
     badsig, connect, link, monitor, name, data, busy, busy_messages, nosuspend, busy_killed, many, large_output, info,
     in_only, other_descriptors, descriptor, bad_value, normal_exit, close_writes_out, owner_killed, items,
     bad_arguments].

%% Nothing that a test leaves open is heard of in the next.
clean() ->
    {links, L} = process_info(self(), links),
    [begin unlink(P), catch port_close(P) end || P <- L, is_port(P)],
    flush().
flush() -> receive _ -> flush() after 0 -> ok end.
%% What arrives until nothing more does.
all() -> all(500).
all(T) -> receive M -> [plain(M) | all(T)] after T -> [] end.
%% What arrives until something matches, and that.
until(F) -> receive M -> case F(M) of true -> [plain(M)]; false -> [plain(M) | until(F)] end after 10000 -> [timeout] end.
until_exit() -> until(fun({'EXIT', _, _}) -> true; (_) -> false end).
bytes(P, N) -> bytes(P, N, <<>>).
bytes(_, N, A) when byte_size(A) >= N -> A;
bytes(P, N, A) -> receive {P, {data, B}} -> bytes(P, N, iolist_to_binary([A, B])) after 10000 -> {timeout, A} end.
plain({P, X}) when is_port(P) -> {port, X};
plain({'EXIT', P, R}) when is_port(P) -> {'EXIT', port, R};
plain({'DOWN', _, T, P, R}) when is_port(P) -> {'DOWN', ref, T, port, R};
plain(X) -> X.
reason({'EXIT', {R, _}}) -> R;
reason(X) when is_port(X) -> port_close(X), port;
reason(X) -> X.

t(bytes) -> P = open_port({spawn, "cat"}, []), P ! {self(), {command, "hello"}}, true = port_command(P, [" wor", <<"ld">>]), bytes(P, 11);
t(packets) -> P = open_port({spawn, "cat"}, [{packet, 4}, binary]), [port_command(P, binary:copy(<<"x">>, N)) || N <- [1, 0, 100000]], [receive {P, {data, B}} -> byte_size(B) end || _ <- [1, 2, 3]];
t(lines) -> open_port({spawn, "printf 'ab\\ncdefghij\\r\\n\\nrest'"}, [{line, 5}, exit_status]), until_exit();
t(status) -> open_port({spawn, "sh -c 'echo hi; exit 7'"}, [exit_status, eof, binary]), until(fun({_, eof}) -> true; (_) -> false end);
t(killed) -> open_port({spawn, "sh -c 'kill -TERM $$'"}, [exit_status]), until_exit();
t(env) -> open_port({spawn, "sh -c 'echo $FOO-$HOME'"}, [{env, [{"FOO", "foo"}, {"HOME", false}]}, binary]), until_exit();
t(bad_cd) -> open_port({spawn, "pwd"}, [{cd, "/nonesuch"}, exit_status]), until_exit();
t(executable) -> open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "echo \"$0\" \"$1\"", "x", <<"y z">>]}, {arg0, "name"}, binary]), until_exit();
t(not_executable) -> [reason(catch open_port(N, [])) || N <- [{spawn_executable, "/nonesuch"}, {spawn_executable, "/etc/passwd"}, {spawn, ""}, {spawn_driver, "x"}, {fd, -1, -1}]];
t(stderr) -> P = open_port({spawn, "sh -c 'echo out; echo err >&2'"}, [stderr_to_stdout, binary]), A = bytes(P, 8), {lists:sort(binary:split(A, <<"\n">>, [global])), until_exit()};
t(eof) -> P = open_port({spawn, "true"}, [eof]), A = until(fun({_, eof}) -> true; (_) -> false end), {A, erlang:port_info(P, connected) == {connected, self()}, port_close(P), until_exit()};
t(close) -> P = open_port({spawn, "cat"}, []), {port_close(P), until_exit(), reason(catch port_close(P)), erlang:port_info(P)};
t(close_message) -> P = open_port({spawn, "cat"}, []), P ! {self(), close}, all();
t(badsig) -> P = open_port({spawn, "cat"}, []), P ! foo, A = all(), P ! {whereis(init), close}, B = all(), {A, B, is_list(erlang:port_info(P))};
t(connect) ->
    P = open_port({spawn, "cat"}, []), Me = self(),
    Q = spawn(fun() -> receive go -> ok end, {connected, C} = erlang:port_info(P, connected), Me ! {q, C == self(), process_info(self(), links) == {links, [P]}}, port_command(P, "zz"), receive X -> Me ! {q, plain(X)} end end),
    true = port_connect(P, Q), Q ! go, {all(), reason(catch port_connect(P, foo))};
t(link) -> P = open_port({spawn, "cat"}, []), unlink(P), {links, L} = process_info(self(), links), link(P), exit(P, foo), {lists:member(P, L), all(), catch link(P), all()};
t(monitor) ->
    P = open_port({spawn, "cat"}, []), erlang:monitor(port, P), R2 = erlang:monitor(port, P), true = erlang:demonitor(R2),
    {monitored_by, [M]} = erlang:port_info(P, monitored_by), port_close(P), A = all(), erlang:monitor(port, P), {M == self(), A, all()};
t(name) ->
    P = open_port({spawn, "cat"}, []), register(foo, P),
    R = {whereis(foo) == P, erlang:port_info(foo, registered_name), hd(erlang:port_info(P)), port_command(foo, "x"), bytes(P, 1)},
    foo ! {self(), close}, {R, all(), whereis(foo), reason(catch (foo ! bar))};
t(data) -> P = open_port({spawn, "cat"}, []), {erlang:port_get_data(P), erlang:port_set_data(P, {a, <<"b">>}), erlang:port_get_data(P), port_close(P), reason(catch erlang:port_get_data(P))};
t(busy) -> P = open_port({spawn, "sh -c 'sleep 0.3; wc -c'"}, [binary]), B = binary:copy(<<"y">>, 100000), [port_command(P, B) || _ <- lists:seq(1, 50)], {erlang:port_info(P, output), port_close(P), all(10)};
t(busy_messages) -> P = open_port({spawn, "sh -c 'sleep 0.3; exec cat'"}, [binary]), B = binary:copy(<<"y">>, 100000), [P ! {self(), {command, B}} || _ <- lists:seq(1, 50)], {erlang:port_info(P, output), byte_size(bytes(P, 5000000))};
t(nosuspend) ->
    P = open_port({spawn, "sleep 1"}, []), B = binary:copy(<<"y">>, 1000000), port_command(P, B),
    {port_command(P, B, [nosuspend]), reason(catch port_command(P, B, [force])), erlang:send(P, {self(), {command, B}}, [nosuspend])};
t(busy_killed) ->
    P = open_port({spawn, "sleep 5"}, []), B = binary:copy(<<"y">>, 1000000), S = self(),
    K = spawn(fun() -> port_command(P, B), S ! first, port_command(P, B), S ! never end),
    receive first -> ok end, timer:sleep(100), exit(K, kill), timer:sleep(50), {is_process_alive(K), all(0)};
t(many) -> Ps = [open_port({spawn, "echo hello"}, [exit_status]) || _ <- lists:seq(1, 300)], {length([1 || P <- Ps, receive {P, {exit_status, 0}} -> true after 20000 -> false end]), [P || P <- Ps, receive {'EXIT', P, normal} -> erlang:port_info(P) =/= undefined end]};
t(large_output) -> P = open_port({spawn, "dd if=/dev/zero bs=1000 count=5000 2>/dev/null"}, [binary]), {byte_size(bytes(P, 5000000)), until_exit()};
t(info) -> P = open_port({spawn, "cat"}, []), [case K of os_pid -> {K, is_integer(V)}; id -> {K, is_integer(V)}; links -> {K, V == [self()]}; connected -> {K, V == self()}; _ -> {K, V} end || {K, V} <- erlang:port_info(P)];
t(in_only) -> open_port({spawn, "echo x"}, [in]), until_exit();
t(other_descriptors) -> P = open_port({spawn, "sh -c 'cat <&3 >&4'"}, [nouse_stdio]), port_command(P, "via 3 and 4"), bytes(P, 11);
t(descriptor) -> P = open_port({fd, 0, 2}, [out]), {port_command(P, "to standard error\n"), port_close(P), all()};
t(bad_value) -> logger:set_primary_config(level, none), P = open_port({spawn, "cat"}, []), P ! {self(), {command, [foo]}}, {all(), reason(catch port_command(P, [foo]))};
t(normal_exit) ->
    P = open_port({spawn, "cat"}, []), {_, R} = spawn_monitor(fun() -> link(P) end), receive {'DOWN', R, _, _, _} -> ok end,
    timer:sleep(50), A = is_list(erlang:port_info(P)), exit(P, normal), {A, all()};
t(close_writes_out) ->
    P = open_port({spawn, "sh -c 'sleep 0.2; cat > written'"}, [binary, out]), port_command(P, binary:copy(<<"y">>, 300000)), port_close(P),
    {until_exit(), lists:any(fun(_) -> timer:sleep(50), filelib:file_size("written") == 300000 end, lists:seq(1, 100))};
t(owner_killed) ->
    S = self(), {Pid, R} = spawn_monitor(fun() -> S ! {p, open_port({spawn, "cat"}, [])}, receive x -> ok end end),
    P = receive {p, Q} -> Q end, exit(Pid, kill), receive {'DOWN', R, _, _, _} -> ok end, timer:sleep(50), erlang:port_info(P);
t(items) -> P = open_port({spawn, "cat"}, []), [erlang:port_info(P, I) || I <- [memory, parallelism, locking, monitors, monitored_by, queue_size, name]];
t(bad_arguments) ->
    [reason(catch open_port(A, B)) || {A, B} <-
        [{foo, bar}, {{spawn, cat}, [{line, 0}]}, {{spawn, "cat"}, [{env, [{"A=B", "c"}]}]}, {{spawn, "cat"}, [{env, [a]}]},
         {{spawn, "cat"}, [{env, [{<<"A">>, "b"}]}]}, {{spawn, "cat"}, [{args, []}]}, {{spawn_executable, "/bin/cat"}, [{args, foo}]},
         {{spawn, "cat"}, [{cd, 1}]}, {{fd, 0, 1}, [exit_status]}, {{spawn, "cat"}, [{busy_limits_port, {0, 1}}]},
         {{spawn, "cat"}, [{packet, 3}]}, {{spawn, "cat"}, [{packet, 2}, {line, 5}]}, {{spawn, "cat"}, [stderr_to_stdout, nouse_stdio]},
         {"/nonesuch/x", []}, {{spawn, [0]}, []}]].
