-module(listed_race).
-export([main/0]).

%% All persistent terms are listed by a process that takes it for granted that nobody adds one just
%% after its message.
main() ->
    Me = self(),
    spawn_link(fun() -> Me ! begun, Me ! {listed, lists:keymember(added, 1, persistent_term:get())} end),
    receive begun -> ok end,
    receive after 10 -> ok end,
    persistent_term:put(added, true),
    receive {listed, false} -> halt(0); {listed, true} -> halt(1) end.
