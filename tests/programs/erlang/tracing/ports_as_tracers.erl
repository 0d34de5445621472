%% Uses ports as tracers: events to files, wrap files, a TCP client and a program; clients of `dbg`;
%% fprof.
-module(ports_as_tracers).
-export([main/0, work/1, loop/0]).

work(0) -> [];
work(N) -> [N | work(N - 1)].

loop() ->
    receive
        {From, N} ->
            From ! {self(), length(work(N))},
            loop()
    end.

main() ->
    Dir = "trace_ports_" ++ os:getpid(),
    ok = file:make_dir(Dir),
    %% Where they are part of the runtime, this is refused.
    Lib = filename:join(code:priv_dir(runtime_tools), "lib"),
    [erl_ddll:load_driver(Lib, D) || D <- ["trace_file_drv", "trace_ip_drv"]],
    P = spawn(fun loop/0),
    show(file, fun() -> file(filename:join(Dir, "one"), P) end),
    show(row, fun() -> row(filename:join(Dir, "row"), P) end),
    show(ip, fun() -> ip(P) end),
    show(program, fun() -> program(P) end),
    show(sequential, fun() -> sequential(filename:join(Dir, "seq")) end),
    show(meta, fun() -> meta(filename:join(Dir, "meta"), P) end),
    show(gone, fun() -> gone(filename:join(Dir, "gone"), P) end),
    show(refused, fun() -> refused(Dir, P) end),
    show(fprof, fun() -> fprof(filename:join(Dir, "fprof")) end),
    file:del_dir_r(Dir).

show(What, F) ->
    R = try F() catch C:E:_ -> {C, E} end,
    io:format("~p: ~p~n", [What, R]).

ask(P, N) ->
    P ! {self(), N},
    receive {P, L} -> L end.

%% Pids and times differ from run to run.
plain(T, Names) when is_tuple(T) -> list_to_tuple([plain(X, Names) || X <- tuple_to_list(T)]);
plain([H | T], Names) -> [plain(H, Names) | plain(T, Names)];
plain(T, Names) ->
    case lists:keyfind(T, 1, Names) of
        {T, Name} -> Name;
        false when is_pid(T); is_port(T); is_reference(T) -> other;
        false -> T
    end.

read(<<>>) -> [];
read(<<0, Size:32, Event:Size/binary, Rest/binary>>) -> [binary_to_term(Event) | read(Rest)];
read(<<1, Dropped:32, Rest/binary>>) -> [{drop, Dropped} | read(Rest)].

stop(P) ->
    erlang:trace(P, false, [all]),
    Ref = erlang:trace_delivered(P),
    receive {trace_delivered, P, Ref} -> ok end.

open(Args) -> open_port({spawn, "trace_file_drv " ++ Args}, [eof]).

file(Name, P) ->
    T = open("n " ++ Name),
    erlang:trace_pattern({?MODULE, work, 1}, true, [local]),
    1 = erlang:trace(P, true, [send, 'receive', call, {tracer, T}]),
    {tracer, T} = erlang:trace_info(P, tracer),
    3 = ask(P, 3),
    stop(P),
    Flushed = port_control(T, $f, ""),
    {ok, B} = file:read_file(Name),
    Other = (catch port_control(T, $p, "")),
    port_command(T, [<<"a">>, "b"]),
    true = port_close(T),
    {ok, B2} = file:read_file(Name),
    {Flushed, plain(read(B), [{P, p}, {self(), main}]), element(1, element(2, Other)), byte_size(B2) - byte_size(B),
        element(8, element(2, file:read_file_info(Name)))}.

%% Files of at most about 200 bytes, of which eight stay; read back as dbg does.
row(Name, P) ->
    T = open("w 200 8 0 " ++ integer_to_list(length(Name)) ++ " n " ++ Name ++ ".log"),
    erlang:trace(P, true, [send, {tracer, T}]),
    [ask(P, N) || N <- lists:seq(1, 70)],
    stop(P),
    port_control(T, $f, ""),
    true = port_close(T),
    Files = [{filename:basename(F), filelib:file_size(F)} || F <- lists:sort(filelib:wildcard(Name ++ "*"))],
    Me = self(),
    dbg:trace_client(file, {Name, wrap, ".log"}, {fun(M, L) -> handled(Me, M, L) end, []}),
    R = receive {handled, L} -> plain(L, [{P, p}, {self(), main}]) after 5000 -> none end,
    {length(Files), [F || {F, _} <- Files], R}.

handled(Me, end_of_trace, L) -> Me ! {handled, lists:reverse(L)}, L;
handled(_, {trace, _, send, {_, N}, _}, L) -> [N | L].

ip(P) ->
    T = open_port({spawn, "trace_ip_drv 0 5 2"}, [eof]),
    <<0, Number:16>> = port_control(T, $p, ""),
    erlang:trace(P, true, [send, {tracer, T}]),
    [ask(P, N) || N <- lists:seq(1, 9)],
    stop(P),
    {ok, S} = gen_tcp:connect("localhost", Number, [binary, {active, false}]),
    First = some(S, 6),
    erlang:trace(P, true, [send, {tracer, T}]),
    ask(P, 10),
    stop(P),
    Second = some(S, 1),
    {ok, S2} = gen_tcp:connect("localhost", Number, [binary, {active, false}]),
    Refused = gen_tcp:recv(S2, 0, 5000),
    true = port_close(T),
    Closed = gen_tcp:recv(S, 0, 5000),
    {plain(First ++ Second, [{P, p}, {self(), main}]), Refused, Closed}.

some(_, 0) -> [];
some(S, N) ->
    {ok, <<Kind, Size:32>>} = gen_tcp:recv(S, 5, 5000),
    case Kind of
        1 -> [{drop, Size} | some(S, N - 1)];
        0 ->
            {ok, B} = gen_tcp:recv(S, Size, 5000),
            [binary_to_term(B) | some(S, N - 1)]
    end.

program(P) ->
    T = open_port({spawn, "cat"}, [{packet, 4}, binary]),
    erlang:trace(P, true, [send, timestamp, {tracer, T}]),
    ask(P, 2),
    stop(P),
    R = receive {T, {data, B}} -> setelement(6, binary_to_term(B), time) after 5000 -> none end,
    port_close(T),
    plain(R, [{P, p}, {self(), main}]).

sequential(Name) ->
    T = open("n " ++ Name),
    false = seq_trace:set_system_tracer(T),
    T = seq_trace:get_system_tracer(),
    seq_trace:set_token(label, 7),
    seq_trace:set_token(print, true),
    seq_trace:print(here),
    seq_trace:set_token([]),
    T = seq_trace:set_system_tracer(false),
    port_close(T),
    {ok, B} = file:read_file(Name),
    plain(read(B), [{self(), main}]).

meta(Name, P) ->
    T = open("n " ++ Name),
    1 = erlang:trace_pattern({?MODULE, work, 1}, [{['_'], [], [{return_trace}]}], [{meta, T}]),
    {meta, T} = erlang:trace_info({?MODULE, work, 1}, meta),
    ask(P, 1),
    erlang:trace_pattern({?MODULE, work, 1}, false, [meta]),
    port_close(T),
    {ok, B} = file:read_file(Name),
    plain([setelement(tuple_size(E), E, time) || E <- read(B)], [{P, p}, {self(), main}]).

%% What a port that has gone traced isn't traced any more.
gone(Name, P) ->
    T = open("n " ++ Name),
    erlang:trace(P, true, [send, {tracer, T}]),
    port_close(T),
    ask(P, 1),
    {erlang:trace_info(P, tracer), erlang:trace_info(P, flags), (catch erlang:trace(P, true, [send, {tracer, T}]))}.

refused(Dir, _) ->
    [{A, try port_close(open_port({spawn, A}, [])) catch _:E -> E end} || A <- [
        "trace_file_drv", "trace_file_drv n", "trace_file_drv n ", "trace_file_drv x y", "trace_file_drv n /nowhere/x",
        "trace_file_drv w 1 2 3 n a", "trace_file_drv w 1 2 0 99 n a", "trace_ip_drv", "trace_ip_drv 0 1",
        "trace_ip_drv 0 1 4", "trace_ip_drv x 1 1"]] ++
    [(catch length(element(2, file:list_dir(Dir))))].

fprof(Name) ->
    {ok, _} = fprof:start(),
    20 = length(fprof:apply(?MODULE, work, [20], [{file, Name}])),
    ok = fprof:profile([{file, Name}]),
    ok = fprof:analyse([{dest, Name ++ ".out"}]),
    ok = fprof:stop(),
    {ok, Terms} = file:consult(Name ++ ".out"),
    length([x || {_, {{?MODULE, work, 1}, 21, _, _}, _} <- lists:flatten(Terms)]).
