%% Checks registered names. @stress @shared
-module(registered_names).
-export([main/0]).

main() ->
    register(me, self()),
    io:format("~p ~p~n", [whereis(me) =:= self(), whereis(nobody)]),
    me ! hello, receive hello -> io:format("sent by name~n") end,
    {me, node()} ! again, receive again -> io:format("sent by name and node~n") end,
    P = fun(F) -> try F() catch C:R -> {C, R} end end,
    io:format("~p~n", [P(fun() -> register(me, spawn(fun() -> ok end)) end)]),
    io:format("~p~n", [P(fun() -> register(other, self()) end)]),
    io:format("~p~n", [P(fun() -> register(undefined, self()) end)]),
    io:format("~p~n", [P(fun() -> unregister(nobody) end)]),
    io:format("~p~n", [P(fun() -> nobody ! x end)]),
    io:format("~p~n", [erlang:send({nobody, node()}, x, [])]),
    io:format("~p~n", [lists:member(me, registered())]),
    io:format("~p~n", [process_info(self(), registered_name)]),
    unregister(me),
    io:format("~p ~p~n", [whereis(me), process_info(self(), registered_name)]),
    {Q, R} = spawn_monitor(fun() -> register(brief, self()), receive stop -> ok end end),
    Q ! stop,
    receive {'DOWN', R, process, Q, normal} -> ok end,
    io:format("~p~n", [whereis(brief)]),
    io:format("~p~n", [[N || N <- [init, kernel_sup, code_server, user, logger, erl_prim_loader, error_logger, file_server_2, application_controller], not is_pid(whereis(N))]]).
