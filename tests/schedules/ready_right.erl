-module(ready_right).
-export([main/0]).

%% Whoever starts the server reads its table as soon as it says that it is there.
main() ->
    Me = self(),
    spawn_link(fun() -> server(Me) end),
    receive ready -> ok end,
    halt(case ets:whereis(settings) of undefined -> 1; _ -> 0 end).

server(Parent) ->
    ets:new(settings, [named_table, public]),
    Parent ! ready,
    receive stop -> ok end.
