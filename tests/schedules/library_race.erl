%% The process that the program makes when it has waited too long runs code of a library alone, and
%% is not made in the base.
-module(library_race).
-export([main/0]).

main() ->
    Me = self(),
    spawn(fun() -> timer:sleep(20), Me ! ok end),
    receive
        ok -> ok
    after 60 ->
        spawn(proc_lib, init_p, [Me, [], erlang, monitor, [process, Me]]),
        timer:sleep(5),
        halt(1)
    end.
