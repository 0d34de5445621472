-module(ready_race).
-export([main/0]).

%% Whoever starts the server reads its table as soon as it says that it is there.
main() ->
    Me = self(),
    spawn_link(fun() -> server(Me) end),
    receive ready -> ok end,
    halt(case ets:whereis(settings) of undefined -> 1; _ -> 0 end).

server(Parent) ->
    Parent ! ready,
    ets:new(settings, [named_table, public]),
    receive stop -> ok end.
