-module(send_after_race).
-export([main/0]).

%% The waiter counts from the message before the timer, and the timer may start later than that.
%% Nothing but the call of send_after/4 stands between the two.
main() ->
    Me = self(),
    spawn_link(fun() -> Me ! begun, erlang:send_after(20, Me, over, []) end),
    receive begun -> ok end,
    receive over -> halt(0) after 40 -> halt(1) end.
