-module(copied).
-export([main/1]).

%% Each process captures a whole socket, of which it needs one field.
main(_) ->
    Make = fun(Id) -> #{assigns => lists:seq(1, 5000), id => Id} end,
    Pids = [start(Make(Id)) || Id <- lists:seq(1, 400)],
    [receive {Pid, _} -> ok end || Pid <- Pids].

start(Socket) ->
    Me = self(),
    spawn(fun() -> Me ! {self(), maps:get(id, Socket)} end).
