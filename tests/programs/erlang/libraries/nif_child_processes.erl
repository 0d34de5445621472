%% A library's own child processes run beside programs of ports. Each side waits for its own
%% children, and only the library sees SIGCHLD of its child. @nif children @stress @fence
-module(nif_child_processes).
-export([main/0, run/1, start/1, wait_for/1]).
-on_load(load/0).

load() -> erlang:load_nif("../ebin/children", []).

run(_) -> erlang:nif_error(undef).
start(_) -> erlang:nif_error(undef).
wait_for(_) -> erlang:nif_error(undef).

main() ->
    %% Stock waits for all children itself unless it is told to tell of their ends.
    unregister(erl_signal_server),
    register(erl_signal_server, self()),
    ok = os:set_signal(sigchld, handle),
    %% One port that is there all the time, and many that come and go.
    Stays = open_port({spawn, "cat"}, [binary]),
    Me = self(),
    Ports = [spawn_link(fun() -> Me ! {self(), [exit_status(N rem 7) || N <- lists:seq(1, 20)]} end) || _ <- [1, 2]],
    io:format("~w~n", [[run("exit " ++ integer_to_list(N)) || N <- lists:seq(0, 9)]]),
    io:format("~w~n", [[wait_for(start(N)) || N <- lists:seq(10, 29)]]),
    Children = [start(N) || N <- lists:seq(30, 39)],
    receive after 100 -> ok end,
    io:format("~w~n", [[wait_for(C) || C <- lists:reverse(Children)]]),
    [receive {P, L} -> io:format("~w~n", [L]) end || P <- Ports],
    io:format("~w~n", [lists:usort(tells())]),
    signals(),
    port_close(Stays),
    init:stop().

exit_status(N) ->
    P = open_port({spawn, "sh -c 'exit " ++ integer_to_list(N) ++ "'"}, [exit_status]),
    receive {P, {exit_status, S}} -> S after 20000 -> none end.

signals() ->
    3 = exit_status(3),
    io:format("~w~n", [told()]),
    C = start(4),
    io:format("~w~n", [tells()]),
    4 = wait_for(C),
    5 = exit_status(5),
    os:cmd("kill -CHLD " ++ os:getpid()),
    io:format("~w~n", [tells()]),
    ok = os:set_signal(sigchld, ignore),
    start(6),
    io:format("~w~n", [told()]).

%% What comes, however late the first is on a slow machine.
tells() -> receive {notify, S} -> [S | told()] after 20000 -> [] end.

told() -> receive {notify, S} -> [S | told()] after 300 -> [] end.
