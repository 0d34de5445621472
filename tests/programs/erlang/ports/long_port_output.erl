%% Sends long lists to ports. Nothing of a list is lost or torn, whatever happens to its sender, and
%% a sender with `nosuspend` does not wait. @seconds 180
-module(long_port_output).
-export([main/0]).

%% What a program reads: packets of four bytes, each {Length, Checksum}, told by a line each; it
%% waits before.
main() ->
    %% Less than is queued at once, and more.
    [begin
         io:format("~p ~p~n", [What, Size]),
         killed(What, Size), suspended(What, Size), nosuspend(What, Size), closed(What, Size), owner_gone(What, Size)
     end || What <- [packet, stream], Size <- [short, long]],
    [tcp(short, Opts) || Opts <- [[], [{packet, 4}], [{send_timeout, 200}, {packet, 4}]]],
    [tcp(long, Opts) || Opts <- [[], [{packet, 4}], [{packet, line}], [{send_timeout, 200}]]],
    both_ends(),
    ok.

%% Parts with different bytes, so that an order is seen.
list(short) -> [[<<N:32>>, lists:duplicate(30, N band 255)] || N <- lists:seq(1, 80000)];
list(long) -> B = binary:copy(<<"b">>, 250), [[<<N:32>>, B, $x] || N <- lists:seq(1, 140000)].

sum(L) -> {iolist_size(L), erlang:adler32(L)}.

opts(packet) -> [{packet, 4}];
opts(stream) -> [stream].

%% A program that reads nothing until it is told to, by a file, and then gives all back.
open(What, More) ->
    Flag = "flag" ++ integer_to_list(erlang:unique_integer([positive])) ++ os:getpid(),
    Name = filename:join(os:getenv("TMPDIR", "/tmp"), Flag),
    Cmd = "while [ ! -e " ++ Name ++ " ]; do sleep 0.02; done; rm " ++ Name ++ "; exec cat",
    P = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Cmd]}, binary, use_stdio, exit_status | opts(What) ++ More]),
    {P, Name}.

go(Name) -> ok = file:write_file(Name, "").

%% What comes back of so many frames, or bytes.
back(packet, P, Sizes) -> [receive {P, {data, D}} -> {N, {N, erlang:adler32(D)} =:= sum(D)} after 20000 -> {timeout, N} end || N <- Sizes];
back(stream, P, Sizes) -> bytes(P, lists:sum(Sizes), []).

bytes(_, 0, Acc) -> sum(lists:reverse(Acc));
bytes(P, N, Acc) ->
    receive {P, {data, D}} -> bytes(P, N - byte_size(D), [D | Acc])
    after 20000 -> {timeout, N} end.

%% The expected.
want(packet, Lists) -> [{iolist_size(L), true} || L <- Lists];
want(stream, Lists) -> sum(Lists).

check(Label, What, P, Lists) ->
    Got = back(What, P, [iolist_size(L) || L <- Lists]),
    case Got =:= want(What, Lists) of
        true -> io:format("  ~s: whole~n", [Label]);
        false -> io:format("  ~s: ~p, not ~p~n", [Label, Got, want(What, Lists)])
    end.

killed(What, Size) ->
    {P, Flag} = open(What, []),
    L = list(Size),
    {Pid, M} = spawn_monitor(fun() -> port_command(P, L), receive never -> ok end end),
    timer:sleep(100),
    exit(Pid, kill),
    receive {'DOWN', M, _, _, killed} -> ok end,
    go(Flag),
    true = port_command(P, "after"),
    check("killed", What, P, [L, "after"]),
    port_close(P).

suspended(What, Size) ->
    {P, Flag} = open(What, []),
    L = list(Size),
    {Pid, M} = spawn_monitor(fun() -> exit({sent, port_command(P, L)}) end),
    timer:sleep(100),
    Was = suspend(Pid),
    Me = self(),
    spawn_link(fun() -> true = port_command(P, "other"), Me ! other end),
    go(Flag),
    receive other -> ok after 20000 -> io:format("  blocked~n") end,
    check("suspended", What, P, [L, "other"]),
    Was andalso erlang:resume_process(Pid),
    receive {'DOWN', M, _, _, R} -> io:format("  ~p~n", [R]) end,
    port_close(P).

%% Who has sent all ends, before it hears of it maybe: whether it is suspended.
suspend(Pid) -> try erlang:suspend_process(Pid) catch error:badarg -> false end.

nosuspend(What, Size) ->
    {P, Flag} = open(What, []),
    L = list(Size),
    %% Nobody reads: it doesn't wait.
    {Pid, M} = spawn_monitor(fun() -> exit({sent, port_command(P, L, [nosuspend]), port_command(P, L, [nosuspend])}) end),
    receive {'DOWN', M, _, _, R} -> io:format("  nosuspend ~p~n", [R])
    after 20000 -> io:format("  nosuspend waits~n"), exit(Pid, kill) end,
    go(Flag),
    check("nosuspend", What, P, [L]),
    port_close(P).

%% Closed by another: everything is written.
closed(What, Size) ->
    {Out, Args} = out(),
    L = list(Size),
    P = open_port({spawn_executable, "/bin/sh"}, [{args, Args}, binary, out | opts(What)]),
    {Pid, M} = spawn_monitor(fun() -> exit({sent, port_command(P, L)}) end),
    timer:sleep(100),
    true = port_close(P),
    io:format("  closed, shown ~p~n", [erlang:port_info(P, links)]),
    go(Out ++ ".go"),
    receive {'DOWN', M, _, _, R} -> io:format("  ~p~n", [R]) after 20000 -> io:format("  waits~n"), exit(Pid, kill) end,
    written("closed", What, Out, L).

%% Its owner, who sends, is killed.
owner_gone(What, Size) ->
    {Out, Args} = out(),
    L = list(Size),
    Me = self(),
    {Pid, M} = spawn_monitor(fun() ->
        P = open_port({spawn_executable, "/bin/sh"}, [{args, Args}, binary, out | opts(What)]),
        Me ! opened,
        port_command(P, L), receive never -> ok end end),
    receive opened -> ok end,
    timer:sleep(100),
    exit(Pid, kill),
    receive {'DOWN', M, _, _, R} -> io:format("  ~p~n", [R]) end,
    go(Out ++ ".go"),
    written("owner gone", What, Out, L).

%% A program that copies to a file, when it is told to.
out() ->
    Out = filename:join(os:getenv("TMPDIR", "/tmp"), "out" ++ integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    Cmd = "while [ ! -e $0.go ]; do sleep 0.02; done; rm $0.go; cat > $0.tmp; mv $0.tmp $0",
    {Out, ["-c", Cmd, Out]}.

written(Label, What, Out, L) ->
    wait_file(Out, 1000),
    {ok, D} = file:read_file(Out),
    file:delete(Out),
    All = case What of packet -> [<<(iolist_size(L)):32>>, L]; stream -> L end,
    io:format("  ~s: ~p~n", [Label, sum(D) =:= sum(All)]).

wait_file(_, 0) -> ok;
wait_file(F, N) -> case filelib:is_file(F) of true -> ok; false -> timer:sleep(20), wait_file(F, N - 1) end.

%% Streams.
pair(Opts) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {packet, 0}, {recbuf, 100000}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect("localhost", Port, [binary, {active, false}, {sndbuf, 100000} | Opts]),
    {ok, S} = gen_tcp:accept(L),
    gen_tcp:close(L),
    {C, S}.

framed(Opts, L) ->
    case lists:keyfind(packet, 1, Opts) of
        {_, 4} -> [<<(iolist_size(L)):32>>, L];
        {_, 2} -> [<<(iolist_size(L)):16>>, L];
        _ -> L
    end.

tcp(Size, Opts) ->
    io:format("tcp ~p ~p~n", [Size, Opts]),
    L = list(Size),
    Lists = [L, "after"],
    Whole = [framed(Opts, X) || X <- Lists],
    Read = fun(S) ->
        R = read(S, iolist_size(Whole), []),
        io:format("  whole: ~p~n", [R =:= sum(Whole)])
    end,
    %% A helper is killed while it sends.
    {C1, S1} = pair(Opts),
    {H1, M1} = spawn_monitor(fun() -> gen_tcp:send(C1, L), receive never -> ok end end),
    timer:sleep(100),
    exit(H1, kill),
    receive {'DOWN', M1, _, _, _} -> ok end,
    Me = self(),
    spawn_link(fun() -> Me ! {second, gen_tcp:send(C1, "after")} end),
    timer:sleep(300),
    Read(S1),
    second(),
    true = erlang:port_info(C1) =/= undefined,
    %% One is suspended.
    {C2, S2} = pair(Opts),
    {H2, M2} = spawn_monitor(fun() -> exit({sent, gen_tcp:send(C2, L)}) end),
    timer:sleep(100),
    Was = suspend(H2),
    spawn_link(fun() -> Me ! {second, gen_tcp:send(C2, "after")} end),
    timer:sleep(300),
    Read(S2),
    second(),
    Was andalso erlang:resume_process(H2),
    receive {'DOWN', M2, _, _, R2} -> io:format("  ~p~n", [R2]) after 10000 -> io:format("  waits~n") end,
    %% Shut down behind it, by another.
    {C3, S3} = pair(Opts),
    {_, M3} = spawn_monitor(fun() -> exit({sent, gen_tcp:send(C3, L)}) end),
    timer:sleep(100),
    io:format("  shutdown ~p~n", [gen_tcp:shutdown(C3, write)]),
    R3 = read(S3, iolist_size(framed(Opts, L)), []),
    {error, closed} = gen_tcp:recv(S3, 0, 5000),
    io:format("  all of it: ~p~n", [R3 =:= sum(framed(Opts, L))]),
    receive {'DOWN', M3, _, _, W3} -> io:format("  ~p~n", [W3]) after 10000 -> io:format("  waits~n") end,
    [gen_tcp:close(X) || X <- [C1, S1, C2, S2, C3, S3]].

second() -> receive {second, X} -> io:format("  second ~p~n", [X]) after 10000 -> io:format("  second waits~n") end.

read(_, 0, Acc) -> sum(lists:reverse(Acc));
read(S, N, Acc) ->
    case gen_tcp:recv(S, min(N, 100000), 10000) of
        {ok, D} -> read(S, N - byte_size(D), [D | Acc]);
        {error, closed} -> sum(lists:reverse(Acc));
        E -> {E, N}
    end.

%% A process holds both ends.
both_ends() ->
    {C, S} = pair([]),
    L = [[<<N:32>>, lists:duplicate(16, $x)] || N <- lists:seq(1, 1000000)],
    io:format("both ends: ~p~n", [gen_tcp:send(C, L)]),
    io:format("~p~n", [read(S, iolist_size(L), []) =:= sum(L)]).
