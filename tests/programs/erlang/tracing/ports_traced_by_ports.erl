%% Traces ports by a port: one that works, all ports including the tracer itself, and two tracers
%% that trace each other.
-module(ports_traced_by_ports).
-export([main/0]).

main() ->
    {ok, _} = application:ensure_all_started(runtime_tools),
    one(),
    all(),
    each_other().

%% The events of one port, in their order.
one() ->
    File = file("one"),
    T = (dbg:trace_port(file, File))(),
    P = open_port({spawn, "cat"}, [binary]),
    1 = erlang:trace(P, true, [ports, send, 'receive', running_ports, {tracer, T}]),
    {tracer, T} = erlang:trace_info(P, tracer),
    P ! {self(), {command, "a line\n"}},
    receive {P, {data, D}} -> io:format("~p~n", [D]) end,
    register(katt, P),
    1 = erlang:trace(P, false, [all]),
    [] = [E || E <- [erlang:trace_info(P, tracer)], E =/= {tracer, []}],
    port_close(P),
    close(T),
    Me = self(),
    [io:format("~p~n", [plain(E, P, Me)]) || E <- events(File)].

%% All ports that there are, the tracer and another tracer among them.
all() ->
    File = file("all"),
    T = (dbg:trace_port(file, File))(),
    Other = (dbg:trace_port(file, file("other")))(),
    true = erlang:trace(existing_ports, true, [send, 'receive', {tracer, T}]) >= 2,
    {tracer, T} = erlang:trace_info(Other, tracer),
    P = open_port({spawn, "cat"}, [binary]),
    1 = erlang:trace(P, true, [send, 'receive', {tracer, Other}]),
    io:format("~p~n", [talk(P, 40)]),
    close(Other),
    close(T),
    io:format("~p~n", [length([E || E <- events(file("other")), element(2, E) =:= P])]),
    io:format("~p~n", [[E || E <- events(File), element(2, E) =:= T]]).

%% Many ports at work at once, with two tracers that are traced by each other, and processes that
%% they trace too. Stock tells one of each what it is told of the other, without an end, so that
%% nothing of it is kept; here what a port does as it takes events isn't told to ports.
each_other() ->
    T1 = (dbg:trace_port(file, "/dev/null"))(),
    T2 = (dbg:trace_port(file, "/dev/null"))(),
    1 = erlang:trace(T1, true, [ports, send, 'receive', running_ports, {tracer, T2}]),
    1 = erlang:trace(T2, true, [ports, send, 'receive', running_ports, {tracer, T1}]),
    Me = self(),
    Of = fun(N, T) ->
                 P = open_port({spawn, "cat"}, [binary]),
                 1 = erlang:trace(P, true, [send, 'receive', {tracer, T}]),
                 Me ! {N, talk(P, 40)}
         end,
    Pids = [{N, spawn_link(fun() -> Of(N, T) end)} || {N, T} <- lists:zip([1, 2, 3, 4], [T1, T2, T1, T2])],
    [catch erlang:trace(Pid, true, [send, 'receive', {tracer, T1}]) || {_, Pid} <- Pids],
    Answers = [receive {N, A} -> A end || {N, _} <- Pids],
    io:format("~p~n", [Answers]),
    catch port_close(T1),
    catch port_close(T2),
    ok.

talk(P, 0) ->
    port_close(P),
    done;
talk(P, N) ->
    port_command(P, <<"x">>),
    receive {P, {data, <<"x">>}} -> talk(P, N - 1) end.

%% An event with the port and the process by names.
plain(E, P, Me) when is_tuple(E) -> list_to_tuple([plain(X, P, Me) || X <- tuple_to_list(E)]);
plain(P, P, _) -> port;
plain(Me, _, Me) -> me;
plain(X, _, _) -> X.

%% A tracer ends with what it was left.
close(T) ->
    erlang:trace_delivered(all),
    receive {trace_delivered, all, _} -> ok end,
    true = port_close(T).

events(File) ->
    Me = self(),
    Ref = make_ref(),
    Tell = fun(end_of_trace, Acc) -> Me ! {Ref, lists:reverse(Acc)};
              (E, Acc) -> [E | Acc]
           end,
    dbg:trace_client(file, File, {Tell, []}),
    receive {Ref, All} -> All after 5000 -> error(no_trace) end.

file(Name) ->
    "ports_traced_by_ports." ++ Name ++ "." ++ os:getpid().
