%% Checks socket options that came with OTP 26 (`exclusiveaddruse`) and 27 (`read_ahead`). A stream
%% that must not read ahead leaves the next packet to the owner of its descriptor. Earlier releases
%% reject the options. Also checks `open_port` with a name, which OTP 27 no longer has.
%% @stress @shared @fence
-module(socket_options_by_release).
-export([main/0]).

main() ->
    [io:format("~w: ~0p~n", [F, try t(F) catch C:R -> {C, R} end]) || F <- [told, datagrams, refused, packets, left, files]].

t(told) ->
    {ok, L} = gen_tcp:listen(0, [{active, false}]),
    R = [{inet:setopts(L, [O]), inet:getopts(L, [element(1, O)])} || O <- [{exclusiveaddruse, true}, {read_ahead, false}, {read_ahead, true}]],
    ok = gen_tcp:close(L),
    R;
t(datagrams) ->
    {ok, U} = gen_udp:open(0),
    R = [{inet:setopts(U, [O]), inet:getopts(U, [element(1, O)])} || O <- [{exclusiveaddruse, false}, {read_ahead, false}, {non_block_send, true}]],
    ok = gen_udp:close(U),
    R;
t(refused) ->
    [case catch gen_tcp:listen(0, [O]) of
         {ok, L} -> {O, gen_tcp:close(L)};
         E -> {O, E}
     end || O <- [{read_ahead, maybe_not}, {non_block_send, true}, {exclusiveaddruse, 1}]];
%% Every kind of packets whose length lies ahead of it, in pieces and together.
t(packets) ->
    [{Kind, both(Kind, Bytes, 2)} || {Kind, Bytes} <- kinds()] ++ [{line, both(line, <<"one\ntwo\n">>, 2)}, {http, both(http, <<"GET / HTTP/1.1\r\nHost: a\r\n\r\n">>, 3)}];
t(left) ->
    [{Kind, left(Kind, Bytes)} || {Kind, Bytes} <- kinds()];
t(files) ->
    ok = file:write_file("some.txt", "text"),
    [try open_port(Name, O) of
         P -> {port, [receive {P, M} -> M after 2000 -> none end || _ <- [1, 2]]}
     catch C:R -> {C, R} end || Name <- ["some.txt", 'some.txt', "none.txt", "", <<"some.txt">>, {"some.txt"}], O <- [[in, eof]]].

kinds() ->
    [{1, <<3, "abc", 2, "de">>}, {2, <<0, 3, "abc", 0, 2, "de">>}, {4, <<0, 0, 0, 3, "abc", 0, 0, 0, 2, "de">>}, {asn1, <<48, 3, "abc", 48, 2, "de">>},
     {sunrm, <<128, 0, 0, 3, "abc", 128, 0, 0, 2, "de">>}, {tpkt, <<3, 0, 0, 7, "abc", 3, 0, 0, 6, "de">>}, {fcgi, <<1, 1, 0, 1, 0, 3, 0, 0, "abc", 1, 1, 0, 1, 0, 2, 0, 0, "de">>}].

pair(Kind) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {packet, Kind}, {read_ahead, false}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, S} = gen_tcp:accept(L),
    ok = gen_tcp:close(L),
    {C, S}.

both(Kind, Bytes, N) ->
    [begin
         {C, S} = pair(Kind),
         _ = inet:setopts(C, [{nodelay, true}]),
         [ok = gen_tcp:send(C, P) || P <- parts(Bytes, Step)],
         R = [gen_tcp:recv(S, 0, 5000) || _ <- lists:seq(1, N)],
         gen_tcp:close(C),
         E = gen_tcp:recv(S, 0, 5000),
         gen_tcp:close(S),
         {inet:getopts(S, [read_ahead]), R, E}
     end || Step <- [1, 1000]].

parts(B, N) when byte_size(B) =< N -> [B];
parts(B, N) -> [binary:part(B, 0, N) | parts(binary:part(B, N, byte_size(B) - N), N)].

%% The second packet is still where another socket on the same descriptor finds it.
left(Kind, Bytes) ->
    {C, S} = pair(Kind),
    ok = gen_tcp:send(C, Bytes),
    {ok, First} = gen_tcp:recv(S, 0, 5000),
    {ok, Fd} = inet:getfd(S),
    {ok, O} = socket:open(Fd, #{dup => true}),
    R = socket:recv(O, 0, 2000),
    socket:close(O),
    gen_tcp:close(S),
    gen_tcp:close(C),
    {First, R}.
