%% Writes long, deep or unusual lists to sockets, programs and files. Every byte arrives in order,
%% nothing of an invalid list is sent, and nothing comes between the parts of one list.
-module(odd_output_lists).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    Lists = [{Name, L, iolist_to_binary(L)} || {Name, L} <- lists()],
    [sent(Name, L, B, Packet) || {Name, L, B} <- Lists, Packet <- [raw, 1, 2, 4], fits(Packet, byte_size(B))],
    [piped(Name, L, B) || {Name, L, B} <- Lists],
    [written(Name, L, B, Modes) || {Name, L, B} <- Lists, Modes <- [[raw], [], [raw, {delayed_write, 100000, 50}]]],
    io:format("iovec: ~p~n", [[{Name, iolist_to_binary(erlang:iolist_to_iovec(L)) =:= B} || {Name, L, B} <- Lists]]),
    refused(),
    nobody_between(),
    times_out(),
    peer_goes(),
    closed_meanwhile(),
    sender_dies().

lists() ->
    Big = binary:copy(<<"0123456789">>, 50),
    <<_:3, Odd:4000/bitstring, _:5>> = <<0:3, Big/binary, 0:5>>,
    [{{vector, N}, lists:duplicate(N, Big)} || N <- [1022, 1023, 1024, 1025]] ++
    [{one, Big},
     {empty, []},
     {bytes, lists:seq(0, 255)},
     {halves, lists:duplicate(3000, [binary:copy(<<"a">>, 205), binary:copy(<<"b">>, 205)])},
     {references, lists:duplicate(40000, Big)},
     {small, lists:duplicate(60000, <<"small">>)},
     {mixed, [[X rem 256, Big, [<<X:64>>, []], "text" | Odd] || X <- lists:seq(1, 20000)]},
     {left, lists:foldl(fun(X, L) -> [L, X rem 256 | <<"x">>] end, [], lists:seq(1, 60000))},
     {odd, lists:duplicate(20000, Odd)},
     {huge_odd, begin N = 1 bsl 20, <<_:1, B:N/binary, _:7>> = binary:copy(<<170>>, N + 1), [B, B] end}].

fits(raw, _) -> true;
fits(N, Size) -> Size < 1 bsl (8 * N) andalso Size < 64000000.

pair(Options) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {sndbuf, 20000}, {recbuf, 20000} | Options]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {sndbuf, 20000}, {recbuf, 20000} | Options]),
    {ok, S} = gen_tcp:accept(L),
    gen_tcp:close(L),
    {S, C}.

%% A process that receives until the end, and the digest of it.
drain(C) ->
    Me = self(),
    Pid = spawn_link(fun() -> receive go -> ok end, Me ! {self(), drain(C, erlang:md5_init(), 0)} end),
    ok = gen_tcp:controlling_process(C, Pid),
    Pid ! go,
    Pid.
drain(C, D, N) ->
    case gen_tcp:recv(C, 0) of
        {ok, B} -> drain(C, erlang:md5_update(D, B), N + byte_size(B));
        {error, closed} -> {N, erlang:md5_final(D)}
    end.

sent(Name, L, B, Packet) ->
    {S, C} = pair([{packet, Packet}]),
    Pid = drain(C),
    R = gen_tcp:send(S, L),
    gen_tcp:close(S),
    receive {Pid, Got} -> io:format("~p ~p: ~p ~p~n", [Name, Packet, R, Got =:= {byte_size(B), erlang:md5(B)}]) end.

piped(Name, L, B) ->
    P = open_port({spawn_executable, os:find_executable("cat")}, [binary, stream]),
    true = port_command(P, L),
    io:format("~p through cat: ~p~n", [Name, collect(P, byte_size(B), []) =:= B]),
    port_close(P).
collect(_, N, Acc) when N =< 0 -> iolist_to_binary(lists:reverse(Acc));
collect(P, N, Acc) -> receive {P, {data, D}} -> collect(P, N - byte_size(D), [D | Acc]) end.

written(Name, L, B, Modes) ->
    File = "odd_output_lists." ++ os:getpid(),
    {ok, F} = file:open(File, [write, read, binary | Modes]),
    R = [file:write(F, L), file:pwrite(F, 10, L), file:close(F)],
    Head = binary:part(B, 0, min(10, byte_size(B))),
    Pad = case byte_size(B) of 0 -> <<>>; N when N < 10 -> error(N); _ -> Head end,
    {ok, Whole} = file:read_file(File),
    ok = file:delete(File),
    io:format("~p in a file, ~p: ~p ~p~n", [Name, Modes, R, Whole =:= <<Pad/binary, B/binary>>]).

%% What isn't an I/O list is found before anything is sent.
refused() ->
    {S, C} = pair([]),
    Good = lists:duplicate(50000, <<"some text of a page">>),
    Some = lists:duplicate(2000, binary:copy(<<"z">>, 300)),
    R = [catch erlang:port_command(S, Bad) || G <- [Good, Some], Bad <- [[G, 256], [G | foo], [G, <<1:1>>], [G, [G, -1]]]],
    io:format("refused: ~p~n", [[element(1, element(2, X)) || X <- R]]),
    io:format("by send: ~p~n", [gen_tcp:send(S, [Good, atom])]),
    ok = gen_tcp:send(S, "fine"),
    gen_tcp:close(S),
    Pid = drain(C),
    receive {Pid, Got} -> io:format("came: ~p~n", [Got =:= {4, erlang:md5("fine")}]) end.

%% Many senders of long lists on one socket: each list comes in one piece.
nobody_between() ->
    {S, C} = pair([{packet, 4}]),
    Lists = [{N, lists:duplicate(30000, <<N, "0123456789">>)} || N <- lists:seq(1, 6)],
    Pids = [spawn_monitor(fun() -> exit(gen_tcp:send(S, L)) end) || {_, L} <- Lists],
    Packets = [begin {ok, P} = gen_tcp:recv(C, 0), P end || _ <- Lists],
    Whole = lists:sort(Packets) =:= [iolist_to_binary(L) || {_, L} <- Lists],
    Ends = [receive {'DOWN', R, _, _, Why} -> Why end || {_, R} <- Pids],
    io:format("nobody between: ~p ~p~n", [Whole, Ends]),
    gen_tcp:close(S), gen_tcp:close(C).

long() -> lists:duplicate(300000, <<"0123456789 0123456789 0123456789">>).

times_out() ->
    {S, C} = pair([{send_timeout, 200}]),
    %% Whatever the kernel and the queue take, in the end nobody reads.
    io:format("timeout: ~p~n", [until_error(S, 10)]),
    gen_tcp:close(C),
    gen_tcp:close(S).
until_error(_, 0) -> none;
until_error(S, N) -> case gen_tcp:send(S, long()) of ok -> until_error(S, N - 1); E -> E end.

peer_goes() ->
    {S, C} = pair([]),
    Ref = spawn_sender(S),
    {ok, _} = gen_tcp:recv(C, 100000),
    gen_tcp:close(C),
    io:format("peer goes: ~p~n", [ended(Ref)]),
    gen_tcp:close(S).

closed_meanwhile() ->
    {S, C} = pair([{linger, {true, 0}}]),
    Ref = spawn_sender(S),
    {ok, _} = gen_tcp:recv(C, 100000),
    ok = gen_tcp:close(S),
    io:format("closed meanwhile: ~p~n", [ended(Ref)]),
    gen_tcp:close(C).

sender_dies() ->
    {S, C} = pair([]),
    {Pid, Ref} = spawn_monitor(fun() -> until_error(S, 100) end),
    {ok, _} = gen_tcp:recv(C, 100000),
    exit(Pid, kill),
    io:format("sender dies: ~p~n", [ended({Pid, Ref})]),
    gen_tcp:close(C), gen_tcp:close(S).

spawn_sender(S) -> spawn_monitor(fun() -> exit(until_error(S, 100)) end).
ended({_, Ref}) -> receive {'DOWN', Ref, _, _, Why} -> Why after 20000 -> still_there end.
