%% TLS connections by OTP's `ssl`, both ends in one emulator: `erl -noshell -pa DIR -run
%% tls_connections main [CONNECTIONS]`. Prints a line for each figure: what, how much, of what.
%% `scripts/bench-tls.sh` runs it on stock and on Purlin in turn.
-module(tls_connections).
-export([main/0, main/1]).

main() -> main(["1000"]).
main([Connections]) ->
    {ok, _} = application:ensure_all_started(ssl),
    [of_version(V, list_to_integer(Connections)) || V <- ['tlsv1.3', 'tlsv1.2']],
    halt().

%% Opens that many connections, with a whole handshake each, and keeps them; then sends small
%% messages over all of them.
of_version(Version, N) ->
    Key = [{key, {namedCurve, secp256r1}}],
    Chain = #{root => Key, intermediates => [], peer => Key},
    #{server_config := Server, client_config := Client} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    Whole = case Version of 'tlsv1.2' -> [{reuse_sessions, false}]; _ -> [] end,
    Common = [{versions, [Version]}, {mode, binary}, {active, false} | Whole],
    {ok, Listen} = ssl:listen(0, [{ip, {127, 0, 0, 1}}, {backlog, 1000} | Common ++ Server]),
    {ok, {_, Port}} = ssl:sockname(Listen),
    Acceptors = [spawn_link(fun() -> accept(Listen) end) || _ <- lists:seq(1, 20)],
    Options = [{verify, verify_peer}, {server_name_indication, disable} | Common ++ Client],
    Connect = fun(I) -> I, {ok, S} = ssl:connect({127, 0, 0, 1}, Port, Options), S end,
    Connect(first),
    Before = resident(),
    {Sockets, Wall, Computed} = timed(fun() -> by_many(Connect, lists:seq(1, N)) end),
    say(Version, "connections", N * 1000000 div Wall, "per second"),
    say(Version, "connections", Computed div N, "us of processor time each"),
    say(Version, "connections", max(0, resident() - Before) div N, "kB resident each, both ends"),
    Trips = 20,
    {_, _, Sent} = timed(fun() -> by_many(fun(S) -> trips(S, Trips), S end, Sockets) end),
    say(Version, "round trips", Sent div (N * Trips), "us of processor time each"),
    {_, _, Closed} = timed(fun() -> by_many(fun(S) -> ok = ssl:close(S), S end, Sockets) end),
    say(Version, "closing", Closed div N, "us of processor time each"),
    [begin unlink(A), exit(A, kill) end || A <- Acceptors],
    ssl:close(Listen).

accept(Listen) ->
    {ok, T} = ssl:transport_accept(Listen),
    P = spawn(fun() ->
        receive go -> ok end,
        {ok, S} = ssl:handshake(T),
        echo(S)
    end),
    ok = ssl:controlling_process(T, P),
    P ! go,
    accept(Listen).

echo(S) ->
    case ssl:recv(S, 100) of
        {ok, B} -> ok = ssl:send(S, B), echo(S);
        {error, closed} -> ssl:close(S)
    end.

trips(_, 0) -> ok;
trips(S, N) ->
    Bytes = binary:copy(<<N>>, 100),
    ok = ssl:send(S, Bytes),
    {ok, Bytes} = ssl:recv(S, 100),
    trips(S, N - 1).

%% What `f` makes of each item, by twenty processes, which keep what they have opened until all is
%% done.
by_many(F, Items) ->
    Me = self(),
    Parts = parts(Items, (length(Items) + 19) div 20),
    Refs = [begin
        R = make_ref(),
        spawn_link(fun() ->
            Made = [F(I) || I <- Part],
            [ssl:controlling_process(S, Me) || S <- Made],
            Me ! {R, Made}
        end),
        R
    end || Part <- Parts],
    lists:append([receive {R, Made} -> Made end || R <- Refs]).

parts([], _) -> [];
parts(L, N) when length(L) =< N -> [L];
parts(L, N) -> {Part, Rest} = lists:split(N, L), [Part | parts(Rest, N)].

%% {What it gave, microseconds that passed, microseconds that were computed}.
timed(F) ->
    C0 = computed(),
    T0 = erlang:monotonic_time(microsecond),
    R = F(),
    {R, max(1, erlang:monotonic_time(microsecond) - T0), computed() - C0}.

%% Processor time of this emulator, in microseconds.
computed() ->
    {ok, Text} = file:read_file("/proc/self/stat"),
    [_, Rest] = binary:split(Text, <<") ">>),
    [User, System] = lists:sublist(binary:split(Rest, <<" ">>, [global]), 12, 2),
    (binary_to_integer(User) + binary_to_integer(System)) * 10000.

%% kB of memory.
resident() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [N]} = re:run(Text, "VmRSS:\\s+(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(N).

say(Version, What, Value, Unit) ->
    io:format("~-8s ~-14s ~10w ~s~n", [Version, What, Value, Unit]).
