%% Round trips of one byte between two processes, or a process and a program, when little else
%% happens: wall and processor time of each, and context switches of this operating system process.
%%
%%     purlin erl -noshell -run round_trips main active 20000
%%
%% Prints nanoseconds of wall time, nanoseconds of processor time, and context switches in
%% hundredths, each per round.
-module(round_trips).
-export([main/1]).

main([What, N]) ->
    Rounds = list_to_integer(N),
    {Round, Close} = pair(list_to_atom(What)),
    repeat(Round, Rounds div 10),
    {Switches, Wall, Processor} = {switches(), erlang:monotonic_time(nanosecond), processor()},
    repeat(Round, Rounds),
    Figures = [
        erlang:monotonic_time(nanosecond) - Wall,
        processor() - Processor,
        100 * (switches() - Switches)
    ],
    io:format("~b ~b ~b~n", [F div Rounds || F <- Figures]),
    Close(),
    halt().

repeat(_, 0) -> ok;
repeat(Round, N) -> Round(), repeat(Round, N - 1).

%% Returns how to make a round, and how to end.
pair(What) when What =:= active; What =:= once; What =:= passive ->
    Mode = case What of passive -> false; active -> true; once -> once end,
    Options = [binary, {active, false}, {nodelay, true}],
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}} | Options]),
    {ok, Port} = inet:port(L),
    spawn_link(fun() ->
        {ok, S} = gen_tcp:accept(L),
        inet:setopts(S, [{active, Mode}]),
        echo(Mode, S)
    end),
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, Options),
    inet:setopts(S, [{active, Mode}]),
    {fun() -> ok = gen_tcp:send(S, <<1>>), got(Mode, S) end, fun() -> gen_tcp:close(S) end};
pair(udp) ->
    Open = fun() ->
        {ok, S} = gen_udp:open(0, [binary, {active, true}, {ip, {127, 0, 0, 1}}]),
        {ok, Port} = inet:port(S),
        {S, Port}
    end,
    {Mine, Back} = Open(),
    Me = self(),
    spawn_link(fun() ->
        {S, Port} = Open(),
        Me ! {port, Port},
        udp_echo(S, Back)
    end),
    To = receive {port, Port} -> Port end,
    {fun() ->
        ok = gen_udp:send(Mine, {127, 0, 0, 1}, To, <<1>>),
        receive {udp, Mine, _, _, _} -> ok end
    end, fun() -> gen_udp:close(Mine) end};
pair(socket) ->
    Address = #{family => inet, addr => {127, 0, 0, 1}, port => 0},
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, Address),
    ok = socket:listen(L),
    {ok, To} = socket:sockname(L),
    spawn_link(fun() ->
        {ok, S} = socket:accept(L),
        ok = socket:setopt(S, {tcp, nodelay}, true),
        socket_echo(S)
    end),
    {ok, S} = socket:open(inet, stream, tcp),
    ok = socket:connect(S, To),
    ok = socket:setopt(S, {tcp, nodelay}, true),
    {fun() -> ok = socket:send(S, <<1>>), {ok, _} = socket:recv(S, 1) end, fun() -> socket:close(S) end};
pair(cat) ->
    P = open_port({spawn_executable, os:find_executable("cat")}, [binary, use_stdio]),
    {fun() -> true = port_command(P, <<1>>), receive {P, {data, _}} -> ok end end, fun() -> port_close(P) end}.

got(true, S) -> receive {tcp, S, _} -> ok end;
got(once, S) -> receive {tcp, S, _} -> ok = inet:setopts(S, [{active, once}]) end;
got(false, S) -> {ok, _} = gen_tcp:recv(S, 1), ok.

echo(Mode, S) ->
    try got(Mode, S), gen_tcp:send(S, <<1>>) of
        _ -> echo(Mode, S)
    catch
        _:_ -> ok
    end.

udp_echo(S, To) ->
    receive {udp, S, _, _, B} -> gen_udp:send(S, {127, 0, 0, 1}, To, B) end,
    udp_echo(S, To).

socket_echo(S) ->
    case socket:recv(S, 1) of
        {ok, B} -> socket:send(S, B), socket_echo(S);
        _ -> ok
    end.

%% Nanoseconds.
processor() -> of_threads("schedstat", "^([0-9]+)").

switches() -> of_threads("status", "ctxt_switches:\\s+([0-9]+)").

%% Returns the sum of what that expression matches in that file of each thread.
of_threads(File, Number) ->
    lists:sum([of_thread(F, Number) || F <- filelib:wildcard("/proc/self/task/*/" ++ File)]).

of_thread(File, Number) ->
    case file:read_file(File) of
        {ok, Text} ->
            {match, Found} = re:run(Text, Number, [global, {capture, all_but_first, list}]),
            lists:sum([list_to_integer(N) || [N] <- Found]);
        _ ->
            0
    end.
