-module(name_right).
-export([main/0]).

%% A process that was seen to end has its name no more.
main() ->
    P = spawn(fun() -> register(srv, self()), receive stop -> ok end end),
    wait(),
    R = monitor(process, P),
    spawn(fun() -> P ! stop end),
    receive {'DOWN', R, process, P, _} -> ok end,
    try register(srv, spawn(fun() -> receive stop -> ok end end)) of
        true -> halt(0)
    catch error:badarg -> halt(1)
    end.

wait() ->
    case whereis(srv) of
        undefined -> timer:sleep(1), wait();
        _ -> ok
    end.
