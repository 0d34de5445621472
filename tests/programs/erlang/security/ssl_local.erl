%% Runs TLS in one runtime: versions, kinds of certificates, client certificates, resumption, and
%% how connections end. @seconds 120
-module(ssl_local).
-export([main/0]).

main() ->
    {ok, _} = application:ensure_all_started(ssl),
    logger:set_primary_config(level, none),
    Ec = data([{key, {namedCurve, secp256r1}}]),
    Rsa = data([{key, {rsa, 2048, 65537}}, {digest, sha256}]),
    [exchange(Name, Data, Version) || {Name, Data} <- [{ec, Ec}, {rsa, Rsa}], Version <- ['tlsv1.2', 'tlsv1.3']],
    [suite(Data, Suite) || {Data, Suite} <-
        [{Ec, "ECDHE-ECDSA-AES128-GCM-SHA256"}, {Ec, "ECDHE-ECDSA-AES256-SHA384"}, {Rsa, "DHE-RSA-AES128-SHA256"},
         {Rsa, "ECDHE-RSA-CHACHA20-POLY1305"}]],
    [group(Ec, G) || G <- [x25519, secp256r1, secp384r1, secp521r1]],
    client_certificate(Ec),
    resumption(Ec),
    refusals(Ec),
    ending(Ec).

data(Opts) ->
    Chain = #{root => Opts, intermediates => [Opts], peer => Opts},
    #{server_config := S, client_config := C} = public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    {S, C}.

%% Both ends of a connection, and what the server side says of it.
connect({ServerConf, ClientConf}, ServerOpts, ClientOpts) ->
    {ok, L} = ssl:listen(0, [{active, false}, {mode, binary}, {reuseaddr, true} | ServerOpts ++ ServerConf]),
    {ok, {_, Port}} = ssl:sockname(L),
    Self = self(),
    Server = spawn_link(fun() ->
        {ok, T} = ssl:transport_accept(L),
        case ssl:handshake(T, 100000) of
            {ok, S} ->
                Self ! {self(), ok},
                ok = ssl:controlling_process(S, Self),
                Self ! {self(), S};
            {error, E} ->
                Self ! {self(), {error, E}}
        end
    end),
    C = ssl:connect("localhost", Port, [{active, false}, {mode, binary}, {verify, verify_peer},
        {server_name_indication, disable} | ClientOpts ++ ClientConf], 100000),
    R = receive
        {Server, ok} -> receive {Server, S} -> {ok, S} end;
        {Server, Error} -> Error
    end,
    ssl:close(L),
    {C, R}.

exchange(Name, Data, Version) ->
    {{ok, C}, {ok, S}} = connect(Data, [{versions, [Version]}], [{versions, [Version]}]),
    ok = ssl:send(C, <<"hello">>),
    Hello = ssl:recv(S, 5, 60000),
    Big = binary:copy(<<"0123456789abcdef">>, 20000),
    Self = self(),
    spawn_link(fun() -> ok = ssl:send(S, Big), Self ! sent end),
    {ok, Got} = ssl:recv(C, byte_size(Big), 60000),
    receive sent -> ok end,
    {ok, Info} = ssl:connection_information(C, [protocol, selected_cipher_suite]),
    io:format("~p ~p ~p ~p ~p~n", [Name, Version, Hello, Got =:= Big, Info]),
    ok = ssl:close(C),
    io:format("closed ~p~n", [ssl:recv(S, 0, 60000)]),
    ssl:close(S).

suite(Data, Suite) ->
    Opts = [{versions, ['tlsv1.2']}, {ciphers, [Suite]}],
    {{ok, C}, {ok, S}} = connect(Data, Opts, Opts),
    ok = ssl:send(S, "abc"),
    io:format("~s ~p ~p~n", [Suite, ssl:recv(C, 3, 60000), ssl:connection_information(C, [selected_cipher_suite])]),
    ssl:close(C),
    ssl:close(S).

group(Data, Group) ->
    Opts = [{versions, ['tlsv1.3']}, {supported_groups, [Group]}],
    {{ok, C}, {ok, S}} = connect(Data, Opts, Opts),
    ok = ssl:send(C, "abc"),
    io:format("~p ~p~n", [Group, ssl:recv(S, 0, 60000)]),
    ssl:close(C),
    ssl:close(S).

client_certificate({S, C} = Data) ->
    [begin
        Need = [{verify, verify_peer}, {fail_if_no_peer_cert, true}, {versions, [V]}],
        {{ok, A}, {ok, B}} = connect(Data, Need, [{versions, [V]}]),
        {ok, Der} = ssl:peercert(B),
        io:format("client certificate ~p ~p~n", [V, Der =:= proplists:get_value(cert, C)]),
        ssl:close(A),
        ssl:close(B),
        Without = [T || T = {K, _} <- C, K =/= cert, K =/= key],
        {R1, R2} = connect({S, Without}, Need, [{versions, [V]}]),
        _ = result(R1),
        io:format("without ~p~n", [alert(R2)])
     end || V <- ['tlsv1.2', 'tlsv1.3']].

%% With TLS 1.3 the client learns of it by the first read.
result({ok, C}) -> ssl:recv(C, 0, 60000);
result(E) -> E.

alert({error, {tls_alert, {Kind, _}}}) -> Kind;
alert({ok, _}) -> ok;
alert(E) -> E.

resumption({S, C}) ->
    {ok, L} = ssl:listen(0, [{active, false}, {reuseaddr, true}, {versions, ['tlsv1.2']} | S]),
    {ok, {_, Port}} = ssl:sockname(L),
    spawn_link(fun() ->
        [begin {ok, T} = ssl:transport_accept(L), {ok, X} = ssl:handshake(T), ssl:recv(X, 0), ssl:close(X) end || _ <- [1, 2]]
    end),
    Connect = fun(Opts) ->
        {ok, X} = ssl:connect("localhost", Port, [{versions, ['tlsv1.2']}, {server_name_indication, disable} | Opts ++ C]),
        X
    end,
    A = Connect([{reuse_sessions, save}]),
    {ok, [{session_id, Id}]} = ssl:connection_information(A, [session_id]),
    {ok, [{session_data, Session}]} = ssl:connection_information(A, [session_data]),
    ssl:close(A),
    B = Connect([{reuse_session, {Id, Session}}]),
    {ok, [{session_id, Id2}, {session_resumption, Resumed}]} = ssl:connection_information(B, [session_id, session_resumption]),
    io:format("resumed ~p ~p~n", [Id =:= Id2, Resumed]),
    ssl:close(B),
    %% By tickets.
    T13 = [{versions, ['tlsv1.3']}],
    {ok, L2} = ssl:listen(0, [{active, false}, {reuseaddr, true}, {session_tickets, stateless} | T13 ++ S]),
    {ok, {_, Port2}} = ssl:sockname(L2),
    spawn_link(fun() ->
        [begin {ok, T} = ssl:transport_accept(L2), {ok, X} = ssl:handshake(T), ssl:send(X, "x"), ssl:recv(X, 0), ssl:close(X) end || _ <- [1, 2]]
    end),
    Opts = [{server_name_indication, disable} | T13 ++ C],
    {ok, D} = ssl:connect("localhost", Port2, [{session_tickets, manual} | Opts]),
    Ticket = receive {ssl, session_ticket, T} -> T after 60000 -> none end,
    ssl:close(D),
    {ok, E} = ssl:connect("localhost", Port2, [{session_tickets, manual}, {use_ticket, [Ticket]} | Opts]),
    io:format("ticket ~p~n", [ssl:connection_information(E, [session_resumption])]),
    ssl:close(E).

refusals({S, C} = Data) ->
    {R1, R2} = connect(Data, [{versions, ['tlsv1.2']}], [{versions, ['tlsv1.3']}]),
    io:format("versions ~p ~p~n", [alert(R1), alert(R2)]),
    {_, Other} = data([{key, {namedCurve, secp256r1}}]),
    {R3, R4} = connect({S, Other}, [{versions, ['tlsv1.2']}], [{versions, ['tlsv1.2']}]),
    io:format("unknown ca ~p ~p~n", [alert(R3), alert(R4)]),
    {R5, R6} = connect({S, C}, [{versions, ['tlsv1.2']}, {ciphers, ["ECDHE-ECDSA-AES128-GCM-SHA256"]}],
        [{versions, ['tlsv1.2']}, {ciphers, ["ECDHE-ECDSA-AES256-GCM-SHA384"]}]),
    io:format("no suite ~p ~p~n", [alert(R5), alert(R6)]).

ending(Data) ->
    {{ok, C}, {ok, S}} = connect(Data, [], []),
    ok = ssl:setopts(C, [{active, once}]),
    ok = ssl:send(S, "one"),
    receive {ssl, C, D} -> io:format("active ~p~n", [D]) after 60000 -> io:format("nothing~n") end,
    ok = ssl:setopts(C, [{active, true}]),
    ok = ssl:send(S, "two"),
    receive {ssl, C, D2} -> io:format("active ~p~n", [D2]) after 60000 -> io:format("nothing~n") end,
    ok = ssl:shutdown(S, write),
    receive {ssl_closed, C} -> io:format("closed~n") after 60000 -> io:format("open~n") end,
    ssl:close(S),
    io:format("~p ~p~n", [ssl:send(C, "x"), ssl:recv(S, 0, 100)]).
