-module(gone_right).
-export([main/0]).

%% As gone_race, with a monitor from the beginning.
main() ->
    {P, R} = spawn_monitor(fun() -> exit({result, 42}) end),
    halt(receive {'DOWN', R, process, P, {result, 42}} -> 0; _ -> 1 end).
