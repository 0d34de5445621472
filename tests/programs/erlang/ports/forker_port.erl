%% The forker port exists from the start, and starts programs on stock. Checks its properties, and
%% that it behaves like any port.
-module(forker_port).
-export([main/0]).

main() ->
    [P | _] = Ports = erlang:ports(),
    io:format("~p ~p~n", [P, [X || X <- Ports, erlang:port_info(X, name) =:= {name, "forker"}] =:= [P]]),
    io:format("~p~n", [erlang:port_info(P)]),
    Items = [registered_name, monitors, monitored_by, parallelism, locking, memory, queue_size, os_pid],
    io:format("~p~n", [[erlang:port_info(P, I) || I <- Items]]),
    io:format("~p~n", [[try F() catch C:R -> {C, R} end ||
        F <- [fun() -> erlang:port_control(P, 1, <<>>) end,
              fun() -> erlang:port_call(P, 1, x) end,
              fun() -> port_command(P, <<"x">>) end,
              fun() -> port_command(P, <<>>, [nosuspend]) end,
              fun() -> erlang:port_get_data(P) end,
              fun() -> erlang:port_set_data(P, {some, data}) end,
              fun() -> erlang:port_get_data(P) end,
              fun() -> erlang:port_to_list(P) end,
              fun() -> list_to_port("#Port<0.0>") =:= P end,
              fun() -> register(forker_port, P) end,
              fun() -> whereis(forker_port) =:= P end,
              fun() -> erlang:port_info(P, registered_name) end,
              fun() -> unregister(forker_port) end]]]),
    {_, Ref} = spawn_monitor(fun() -> link(P), {links, [Me]} = erlang:port_info(P, links), exit({Me =:= self()}) end),
    receive {'DOWN', Ref, _, _, Why} -> io:format("~p ~p~n", [Why, erlang:port_info(P, links)]) end,
    M = monitor(port, P),
    io:format("~p~n", [erlang:port_info(P, monitored_by) =:= {monitored_by, [self()]}]),
    demonitor(M, [flush]),
    P ! {self(), {command, <<"x">>}},
    io:format("~p~n", [receive X2 -> X2 after 50 -> nothing end]),
    %% Programs start whoever is its owner.
    io:format("~s", [os:cmd("echo one")]),
    io:format("~p ~p~n", [erlang:port_connect(P, self()), erlang:port_info(P, connected) =:= {connected, self()}]),
    unlink(P),
    P ! {self(), {command, <<"x">>}},
    io:format("~p~n", [receive X3 -> X3 after 50 -> nothing end]),
    io:format("~s", [os:cmd("echo two")]),
    io:format("~p~n", [lists:member(P, erlang:ports())]).
