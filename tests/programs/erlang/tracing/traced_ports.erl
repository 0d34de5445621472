%% Traces ports: commands, output, names and links; ports opened while new ones are traced; changed
%% traces; sockets.
-module(traced_ports).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    Me = self(),
    T = spawn(fun() -> collect([]) end),
    P0 = open_port({spawn, "cat"}, [binary, eof]),
    1 = erlang:trace(P0, true, [ports, send, 'receive', {tracer, T}]),
    show(erlang:trace_info(P0, flags)),
    show({tracer, erlang:trace_info(P0, tracer) =:= {tracer, T}}),
    show(refused(fun() -> erlang:trace(P0, true, [ports, {tracer, Me}]) end)),
    port_command(P0, <<"hello">>),
    receive {P0, {data, D1}} -> show(D1) end,
    P0 ! {Me, {command, ["a", <<"b">>, [$c | <<"d">>]]}},
    receive {P0, {data, D2}} -> show(D2) end,
    flush(T, "commands"),
    register(my_port, P0),
    unregister(my_port),
    register(my_port2, P0),
    flush(T, "names"),
    link(P0),
    unlink(P0),
    link(P0),
    flush(T, "links"),
    Other = spawn(fun() -> receive stop -> ok end end),
    P0 ! {Me, {connect, Other}},
    receive {P0, connected} -> ok end,
    flush(T, "connect"),
    port_connect(P0, Me),
    flush(T, "port_connect"),
    catch port_control(P0, 17, "abc"),
    flush(T, "control"),
    M = erlang:monitor(port, P0),
    erlang:demonitor(M),
    P0 ! nonsense,
    flush(T, "nonsense"),
    process_flag(trap_exit, true),
    P0 ! {Me, close},
    receive {P0, closed} -> ok end,
    flush(T, "close"),
    Other ! stop,
    %% New ports.
    0 = erlang:trace(new_ports, true, [ports, send, 'receive', {tracer, T}]),
    show(erlang:trace_info(new_ports, flags)),
    show({tracer, erlang:trace_info(new_ports, tracer) =:= {tracer, T}}),
    P1 = open_port({spawn, "cat"}, [stream]),
    port_command(P1, "xyz"),
    receive {P1, {data, D3}} -> show(D3) end,
    port_close(P1),
    flush(T, "new"),
    0 = erlang:trace(new_ports, false, [all]),
    show(erlang:trace_info(new_ports, flags)),
    %% A process that ends with its port.
    {Q, R} = spawn_monitor(fun() ->
        P = open_port({spawn, "cat"}, []),
        Me ! {opened, P},
        receive go -> exit(bye) end
    end),
    P2 = receive {opened, X} -> X end,
    1 = erlang:trace(P2, true, [ports, 'receive', {tracer, T}]),
    Q ! go,
    receive {'DOWN', R, _, _, _} -> ok end,
    gone(P2),
    flush(T, "owner ends"),
    %% Exit status and the end of input.
    P3 = open_port({spawn, "sh -c 'echo begun; read x; exit 3'"}, [exit_status, eof, {line, 10}]),
    receive {P3, {data, {eol, "begun"}}} -> ok end,
    1 = erlang:trace(P3, true, [ports, send, {tracer, T}]),
    port_command(P3, "\n"),
    receive {P3, {exit_status, S}} -> show(S) end,
    receive {P3, eof} -> ok end,
    port_close(P3),
    flush(T, "status"),
    %% exit/2.
    P4 = open_port({spawn, "cat"}, []),
    1 = erlang:trace(P4, true, [ports, send, 'receive', {tracer, T}]),
    unlink(P4),
    exit(P4, kill),
    gone(P4),
    flush(T, "exit"),
    %% Turned off again.
    P5 = open_port({spawn, "cat"}, []),
    1 = erlang:trace(P5, true, [ports, 'receive', {tracer, T}]),
    1 = erlang:trace(P5, false, ['receive']),
    show(erlang:trace_info(P5, flags)),
    1 = erlang:trace(P5, false, [all]),
    show(erlang:trace_info(P5, flags)),
    show(erlang:trace_info(P5, tracer)),
    port_close(P5),
    flush(T, "off"),
    show(erlang:trace_info(P5, flags)),
    show(refused(fun() -> erlang:trace(P5, true, [ports]) end)),
    %% Times.
    P6 = open_port({spawn, "cat"}, []),
    1 = erlang:trace(P6, true, [ports, timestamp, {tracer, Me}]),
    port_close(P6),
    receive {trace_ts, P6, closed, Why, {_, _, _}} -> show({closed, Why}) end,
    %% What the process is told of its links.
    1 = erlang:trace(Me, true, [procs, {tracer, T}]),
    P7 = open_port({spawn, "cat"}, []),
    unlink(P7),
    link(P7),
    port_close(P7),
    receive {'EXIT', P7, normal} -> ok end,
    1 = erlang:trace(Me, false, [procs]),
    flush(T, "process"),
    sockets(T).

sockets(T) ->
    {ok, L} = gen_tcp:listen(0, [{active, false}, binary]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect("localhost", Port, [{active, true}, binary]),
    {ok, A} = gen_tcp:accept(L),
    1 = erlang:trace(C, true, [ports, send, 'receive', {tracer, T}]),
    ok = gen_tcp:send(C, "to"),
    {ok, <<"to">>} = gen_tcp:recv(A, 2),
    flush(T, "socket: send"),
    ok = gen_tcp:send(A, "back"),
    receive {tcp, C, D} -> show(D) end,
    flush(T, "socket: receive"),
    gen_tcp:close(A),
    receive {tcp_closed, C} -> ok end,
    gone(C),
    flush(T, "socket: closed").

gone(P) ->
    case erlang:port_info(P) of
        undefined -> ok;
        _ -> timer:sleep(5), gone(P)
    end.

flush(T, What) ->
    R = erlang:trace_delivered(all),
    receive {trace_delivered, all, R} -> ok end,
    T ! {take, self()},
    receive {taken, All0} -> ok end,
    %% Stock's ports hear from the process that starts programs.
    All = [E || E <- All0, not is_start(E)],
    io:format("~s:~n", [What]),
    [io:format("  ~0p~n", [E]) || E <- All],
    ok.

is_start({trace, _, send, {_, {control, <<>>}}, _}) -> true;
is_start(_) -> false.

collect(L) ->
    receive
        {take, From} ->
            From ! {taken, lists:reverse(L)},
            collect([]);
        E -> collect([E | L])
    end.

refused(F) ->
    try F() catch C:R -> {C, R} end.

show(T) -> io:format("~p~n", [T]).
