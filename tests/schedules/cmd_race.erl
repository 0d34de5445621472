%% What is added, twice, is what a program says: one of the two updates may be lost.
-module(cmd_race).
-export([main/0]).

main() ->
    Port = open_port({spawn_executable, "./step.sh"}, [{args, ["x"]}, {line, 80}, exit_status]),
    port_command(Port, "how much?\n"),
    Step = receive {Port, {data, {eol, L}}} -> list_to_integer(L) end,
    Status = receive {Port, {exit_status, S}} -> S end,
    Words = string:tokens(os:cmd("./step.sh y < /dev/null"), "\n"),
    io:format("~p ~p ~p~n", [Step, Status, Words]),
    halt(lost(Step)).

%% 0 if both have been added; 1: one update was lost.
lost(Step) ->
    T = ets:new(t, [public]),
    ets:insert(T, {n, 0}),
    Main = self(),
    Add = fun() ->
        [{n, N}] = ets:lookup(T, n),
        ets:insert(T, {n, N + Step}),
        Main ! done
    end,
    [spawn(Add) || _ <- [1, 2]],
    [receive done -> ok end || _ <- [1, 2]],
    [{n, Sum}] = ets:lookup(T, n),
    io:format("~p of ~p~n", [Sum, 2 * Step]),
    case Sum =:= 2 * Step of
        true -> 0;
        false -> 1
    end.
