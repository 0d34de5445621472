-module(gone_race).
-export([main/0]).

%% The result of a process is its exit reason, if the monitor is set in time.
main() ->
    P = spawn(fun() -> exit({result, 42}) end),
    R = monitor(process, P),
    halt(receive {'DOWN', R, process, P, {result, 42}} -> 0; _ -> 1 end).
