-module(name_race).
-export([main/0]).

%% That a process was told to stop does not mean that it has.
main() ->
    P = spawn(fun() -> register(srv, self()), receive stop -> ok end end),
    wait(),
    C = self(),
    spawn(fun() -> P ! stop, C ! stopped end),
    receive stopped -> ok end,
    try register(srv, spawn(fun() -> receive stop -> ok end end)) of
        true -> halt(0)
    catch error:badarg -> halt(1)
    end.

wait() ->
    case whereis(srv) of
        undefined -> timer:sleep(1), wait();
        _ -> ok
    end.
