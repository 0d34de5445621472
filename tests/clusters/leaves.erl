%% Does what a world does not know. Each is told by the search, and refused where that is possible.
%% Run: purlin schedules --nodes 1 -- run leaves.erl
-module(leaves).
-export([main/1]).
-mode(compile).

main(_) ->
    Results = [
        {program, os:cmd("echo outside")},
        {elsewhere, error_of(gen_tcp:connect({192, 0, 2, 1}, 80, [], 1000))},
        {local, error_of(gen_tcp:listen(0, [local, {ifaddr, {local, "x"}}]))},
        {file, file:write_file(filename:join(os:getenv("LEAVES", "/tmp"), "leaves"), "x")}
    ],
    io:format("~p~n", [Results]).

error_of({error, Why}) -> Why;
error_of({ok, _}) -> ok.
