-module(alias_race).
-export([main/0]).

%% A process that makes an alias and ends is assumed to be gone some time after its message. Nothing
%% but the call of alias/0 stands between the two.
main() ->
    Me = self(),
    Pid = spawn(fun() -> Me ! begun, erlang:alias() end),
    receive begun -> ok end,
    receive after 10 -> ok end,
    halt(case is_process_alive(Pid) of false -> 0; true -> 1 end).
