-module(start_timer_race).
-export([main/0]).

%% As send_after_race, by start_timer/4.
main() ->
    Me = self(),
    spawn_link(fun() -> Me ! begun, erlang:start_timer(20, Me, over, []) end),
    receive begun -> ok end,
    receive {timeout, _, over} -> halt(0) after 40 -> halt(1) end.
