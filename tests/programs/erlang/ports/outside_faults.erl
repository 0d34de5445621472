%% Checks failures outside the runtime: peers that disconnect, stall or send garbage, hundreds of
%% programs, full pipes and devices, loops of links, names that are not UTF-8. Each gives its error
%% and leaves nothing behind.
-module(outside_faults).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    Before = length(erlang:ports()),
    [garbage(P, B) || {P, B} <- packets()],
    reset(),
    refused(),
    slow_reader(),
    children(),
    inherited(),
    full_pipe(),
    left_unread(),
    devices(),
    links(),
    raw_names(),
    descriptors(),
    io:format("ports left: ~p~n", [length(erlang:ports()) - Before]).

pair(Options) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}} | Options]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, S} = gen_tcp:accept(L),
    gen_tcp:close(L),
    {S, C}.

packets() ->
    [{raw, <<"x">>}, {1, <<5, "ab">>}, {2, <<0, 9, "ab">>}, {4, <<255, 255, 255, 255, "ab">>}, {line, binary:copy(<<"y">>, 5000)},
     {http, <<"\r\n\r\nGET\r\n">>}, {http, <<1, 2, 3, 10>>}, {http_bin, <<"GET / HTTP/9.9.9\r\nA\r\n\r\n">>}, {httph, <<"A\r\n\r\n">>},
     {asn1, <<16#30, 16#84, 255, 255, 255, 255, 0>>}, {asn1, <<16#1f, 16#ff, 16#ff, 16#ff, 16#ff>>}, {cdr, <<"GIOP", 9, 9, 9, 9, 255, 255, 255, 255>>},
     {fcgi, <<2, 0, 0, 0, 0, 0, 0, 0>>}, {sunrm, <<255, 255, 255, 255, 1>>}, {tpkt, <<9, 9, 0, 1, 1>>}, {ssl_tls, <<22, 3, 1, 255, 255, 1>>}].

%% Nonsense and the end of the connection.
garbage(Packet, Bytes) ->
    {S, C} = pair([{packet, Packet}]),
    ok = gen_tcp:send(C, Bytes),
    ok = gen_tcp:close(C),
    io:format("~p ~p: ~p~n", [Packet, size(Bytes), until_error(S, 6)]),
    gen_tcp:close(S).
until_error(_, 0) -> [];
until_error(S, N) ->
    case gen_tcp:recv(S, 0, 5000) of
        {ok, B} when is_binary(B), size(B) > 100 -> [{ok, size(B)} | until_error(S, N - 1)];
        {ok, B} -> [{ok, B} | until_error(S, N - 1)];
        E -> [E]
    end.

reset() ->
    [begin
        {S, C} = pair([{show_econnreset, Show}]),
        ok = inet:setopts(C, [{linger, {true, 0}}]),
        ok = gen_tcp:close(C),
        io:format("reset, shown ~p: ~p ~p~n", [Show, gen_tcp:recv(S, 0, 5000), gen_tcp:send(S, "x")]),
        gen_tcp:close(S)
     end || Show <- [false, true]],
    {S, C} = pair([]),
    ok = inet:setopts(S, [{active, true}]),
    ok = inet:setopts(C, [{linger, {true, 0}}]),
    ok = gen_tcp:close(C),
    io:format("reset, active: ~p~n", [receive {Tag, S} -> Tag; {Tag, S, Why} -> {Tag, Why} after 5000 -> none end]).

refused() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    gen_tcp:close(L),
    io:format("refused: ~p~n", [gen_tcp:connect({127, 0, 0, 1}, Port, [])]),
    io:format("local: ~p~n", [gen_tcp:connect({local, "/nowhere/at/all"}, 0, [])]).

%% A writer that is faster than the reader waits: what is queued stays near the high mark, and all
%% arrives.
slow_reader() ->
    {S, C} = pair([{high_watermark, 100000}, {low_watermark, 50000}, {sndbuf, 10000}]),
    Block = binary:copy(<<7>>, 20000),
    {Writer, Ref} = spawn_monitor(fun() -> [ok = gen_tcp:send(S, Block) || _ <- lists:seq(1, 1000)] end),
    {Most, Bytes} = slowly(S, C, 0, 0),
    receive {'DOWN', Ref, _, Writer, Why} -> io:format("slow reader: ~p bytes, queue bounded ~p, writer ~p~n", [Bytes, Most =< 120000, Why]) end,
    gen_tcp:close(S), gen_tcp:close(C).
slowly(_, _, Most, 20000000) -> {Most, 20000000};
slowly(S, C, Most, N) ->
    {queue_size, Q} = erlang:port_info(S, queue_size),
    {ok, B} = gen_tcp:recv(C, 0),
    slowly(S, C, max(Most, Q), N + size(B)).

%% Hundreds of programs at once; none stays behind as a zombie.
children() ->
    Ports = [open_port({spawn_executable, "/bin/sh"}, [exit_status, binary, {args, ["-c", "read x; exit " ++ integer_to_list(N rem 7)]}])
             || N <- lists:seq(1, 500)],
    [port_command(P, "go\n") || P <- Ports],
    Codes = [receive {P, {exit_status, C}} -> C after 20000 -> late end || P <- Ports],
    io:format("children: ~p~n", [[{C, length([X || X <- Codes, X =:= C])} || C <- lists:usort(Codes)]]),
    Killed = open_port({spawn, "sleep 1000"}, [exit_status]),
    {os_pid, Pid} = erlang:port_info(Killed, os_pid),
    "" = os:cmd("kill -9 " ++ integer_to_list(Pid)),
    io:format("killed: ~p~n", [receive {Killed, X} -> X after 20000 -> late end]),
    io:format("zombies: ~s", [os:cmd("ps -o stat= --ppid " ++ os:getpid() ++ " | grep -c '^Z'")]).

%% A program gets its three descriptors and nothing of ours: listing them needs one more.
inherited() ->
    {S, C} = pair([]),
    {ok, F} = file:open("/dev/null", [write, raw]),
    io:format("descriptors of a child: ~s", [os:cmd("ls /proc/self/fd | wc -l")]),
    gen_tcp:close(S), gen_tcp:close(C), file:close(F).

%% A program that doesn't read: the sender waits, and may go; the rest of the pipe is lost without
%% harm.
full_pipe() ->
    P = open_port({spawn, "sleep 1000"}, [binary]),
    {os_pid, Pid} = erlang:port_info(P, os_pid),
    {Writer, Ref} = spawn_monitor(fun() -> [port_command(P, binary:copy(<<0>>, 100000)) || _ <- lists:seq(1, 100)] end),
    timer:sleep(100),
    io:format("busy: ~p~n", [is_process_alive(Writer) andalso erlang:port_command(P, "x", [nosuspend])]),
    exit(Writer, kill),
    receive {'DOWN', Ref, _, _, Why} -> io:format("writer: ~p~n", [Why]) end,
    unlink(P),
    Watch = monitor(port, P),
    os:cmd("kill " ++ integer_to_list(Pid)),
    io:format("ended: ~p~n", [receive {'DOWN', Watch, port, P, _} -> true after 20000 -> late end]).

%% A program that ends without reading what it was sent.
left_unread() ->
    Old = process_flag(trap_exit, true),
    P = open_port({spawn, "sleep 1"}, [binary, exit_status]),
    Sent = [port_command(P, binary:copy(<<"y">>, 30000), [nosuspend]) || _ <- lists:seq(1, 20)],
    io:format("left unread: ~p ~p~n", [lists:usort(Sent), receive {'EXIT', P, Why} -> Why; {P, X} -> X after 20000 -> late end]),
    process_flag(trap_exit, Old).

devices() ->
    {ok, F} = file:open("/dev/full", [write, raw]),
    io:format("full: ~p ~p ~p~n", [file:write(F, "x"), file:write(F, lists:duplicate(3000, binary:copy(<<"x">>, 300))), file:close(F)]),
    {ok, G} = file:open("/dev/full", [write]),
    io:format("full: ~p ~p~n", [file:write(G, "x"), file:close(G)]),
    {ok, H} = file:open("/dev/full", [write, raw, {delayed_write, 1000, 10000}]),
    io:format("full: ~p ~p ~p~n", [file:write(H, "x"), file:close(H), file:close(H)]),
    io:format("full: ~p~n", [file:write_file("/dev/full", "x")]),
    io:format("directory: ~p ~p ~p~n", [file:read_file("/"), file:write_file("/", "x"), file:open("/", [read])]),
    io:format("no directory: ~p ~p~n", [file:read_file("/dev/null/x"), file:list_dir("/dev/null")]),
    io:format("unfit: ~p ~p ~p~n", [file:read_file("a\0b"), file:make_dir(""), file:read_file(lists:duplicate(5000, $a))]).

links() ->
    D = "outside_faults." ++ os:getpid(),
    ok = file:make_dir(D),
    A = D ++ "/a", B = D ++ "/b",
    [ok, ok] = [file:make_symlink("b", A), file:make_symlink("a", B)],
    {ok, I} = file:read_link_info(A),
    io:format("loop: ~p ~p ~p ~p ~p~n", [file:read_file(A), file:read_file_info(A), element(3, I), file:read_link(A), filelib:is_file(A)]),
    io:format("wild: ~p~n", [[filename:basename(X) || X <- filelib:wildcard(D ++ "/*")]]),
    io:format("not empty: ~p ~p~n", [file:del_dir(D), file:rename(D, A)]),
    io:format("gone: ~p ~p~n", [file:del_dir_r(D), file:del_dir(D)]).

raw_names() ->
    D = "outside_faults." ++ os:getpid(),
    ok = file:make_dir(D),
    Raw = <<"b", 255, 254>>,
    Path = <<(list_to_binary(D))/binary, "/", Raw/binary>>,
    ok = file:write_file(Path, "raw"),
    io:format("raw: ~p ~p ~p~n", [file:read_file(Path), file:list_dir(D), file:list_dir_all(D)]),
    io:format("raw link: ~p ~p ~p~n", [file:make_symlink(Raw, D ++ "/l"), file:read_link(D ++ "/l"), file:read_link_all(D ++ "/l")]),
    io:format("gone: ~p~n", [file:del_dir_r(D)]).

%% Files that nobody closes are closed when their owner ends.
descriptors() ->
    Open = fun() -> {ok, Names} = file:list_dir_all("/proc/self/fd"), length(Names) end,
    N = Open(),
    {_, Ref} = spawn_monitor(fun() -> [{ok, _} = file:open("/dev/null", [read, raw]) || _ <- lists:seq(1, 300)] end),
    receive {'DOWN', Ref, _, _, Why} -> io:format("owner: ~p~n", [Why]) end,
    io:format("left open: ~p~n", [settles(Open, N, 100)]).
settles(Open, N, Times) ->
    case Open() of
        M when M =< N -> 0;
        M when Times =:= 0 -> M - N;
        _ -> timer:sleep(20), settles(Open, N, Times - 1)
    end.
