-module(spawn_request_race).
-export([main/0]).

%% As alias_race, by spawn_request/4.
main() ->
    Me = self(),
    Pid = spawn(fun() -> Me ! begun, erlang:spawn_request(erlang, self, [], [{reply, no}]) end),
    receive begun -> ok end,
    receive after 10 -> ok end,
    halt(case is_process_alive(Pid) of false -> 0; true -> 1 end).
