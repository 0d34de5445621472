%% Checks bounded memory and back-pressure: watermarks, busy limits, delay_send, half-closed
%% connections, linger, active N under load, acceptors that wait and die, names in use, large
%% packets, send time-outs.
-module(stream_back_pressure).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    [io:format("~p ~p~n", [N, outcome(F)]) || {N, F} <- [{half, fun half/0}, {active_n, fun active_n/0}, {acceptors, fun acceptors/0}, {packets, fun packets/0}, {exit_on_close, fun exit_on_close/0},
        {linger, fun linger/0}, {shutdowns, fun shutdowns/0}, {owner, fun owner/0}, {closing, fun closing/0}, {udp_queue, fun udp_queue/0}, {unix, fun unix/0}, {recv_states, fun recv_states/0}, {header, fun header/0}, {split, fun split/0},
        {httph, fun httph/0}, {many_small, fun many_small/0}, {delay, fun delay/0}, {unrecv, fun unrecv/0}, {inherit, fun inherit/0}, {suspended, fun suspended/0}, {connect_async, fun connect_async/0}, {dropped, fun dropped/0}]].
outcome(F) -> try F() catch C:R -> {C, R} end.
reason(F) -> try F() catch _:R -> R end.

pair(O) -> pair(O, []).
pair(O, P) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}} | O]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false} | P]),
    {ok, S} = gen_tcp:accept(L),
    gen_tcp:close(L),
    {S, C}.
until_closed(S) -> receive {tcp_closed, S} -> [closed]; {tcp_error, S, E} -> [{error, E} | until_closed(S)]; {tcp, S, D} -> [D | until_closed(S)]; {tcp_passive, S} -> [passive | until_closed(S)] after 5000 -> [late] end.

half() ->
    {S, C} = pair([{exit_on_close, false}]),
    ok = gen_tcp:send(C, "request"), ok = gen_tcp:shutdown(C, write),
    R = [gen_tcp:recv(S, 0), gen_tcp:recv(S, 0), gen_tcp:send(S, "answer"), gen_tcp:shutdown(S, write), gen_tcp:recv(C, 0), gen_tcp:recv(C, 0), gen_tcp:send(S, "x"), gen_tcp:close(S), gen_tcp:close(C), gen_tcp:shutdown(C, read)],
    R.

active_n() ->
    {S, C} = pair([{packet, 1}], [{packet, 1}]),
    ok = inet:setopts(S, [{active, 3}]), ok = inet:setopts(S, [{active, 2}]),
    A = inet:getopts(S, [active]),
    [ok = gen_tcp:send(C, [N]) || N <- lists:seq(1, 7)],
    B = wait_passive(S),
    D = [inet:getopts(S, [active]), gen_tcp:recv(S, 0), inet:setopts(S, [{active, -1}]), inet:setopts(S, [{active, 1}])],
    E = wait_passive(S),
    gen_tcp:close(C),
    F = [inet:setopts(S, [{active, once}]), until_closed(S)],
    {A, B, D, E, F}.
wait_passive(S) -> receive {tcp, S, D} -> [D | wait_passive(S)]; {tcp_passive, S} -> [passive] after 5000 -> [late] end.

acceptors() ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    Me = self(),
    Pids = [spawn_monitor(fun() -> R = gen_tcp:accept(L), Me ! {N, element(1, R)}, receive stop -> ok end end) || N <- lists:seq(1, 5)],
    timer:sleep(200),
    {P2, R2} = lists:nth(2, Pids), exit(P2, kill), receive {'DOWN', R2, _, _, killed} -> ok end,
    Cs = [gen_tcp:connect({127, 0, 0, 1}, Port, []) || _ <- lists:seq(1, 3)],
    Got = lists:sort([receive {_, ok} -> ok after 5000 -> late end || _ <- Cs]),
    gen_tcp:close(L),
    Last = receive {_, error} -> closed after 5000 -> late end,
    [P ! stop || {P, _} <- Pids],
    {Got, Last, gen_tcp:accept(L)}.

packets() ->
    [begin
        {S, C} = pair([{packet, P}], [{packet, P}]),
        Sent = [outcome(fun() -> gen_tcp:send(C, D) end) || D <- [<<>>, <<"a">>, binary:copy(<<"b">>, 255), binary:copy(<<"c">>, 256), binary:copy(<<"d">>, 65536)]],
        gen_tcp:close(C),
        Got = [case gen_tcp:recv(S, 0, 5000) of {ok, B} -> size(B); E -> E end || _ <- lists:seq(1, 6)],
        gen_tcp:close(S),
        {P, Sent, Got}
     end || P <- [1, 2, 4]] ++
    [too_long(), long_lines(), delimited()].
too_long() ->
    {S, C} = pair([{packet, 4}, {packet_size, 100}]),
    ok = gen_tcp:send(C, <<101:32, 0:808>>),
    X = gen_tcp:recv(S, 0, 5000),
    gen_tcp:close(S), gen_tcp:close(C), X.
long_lines() ->
    {S, C} = pair([{packet, line}, {buffer, 10}]),
    ok = gen_tcp:send(C, "0123456789abcdefghij\nshort\nlast"),
    gen_tcp:close(C),
    X = [gen_tcp:recv(S, 0, 5000) || _ <- lists:seq(1, 6)],
    gen_tcp:close(S), X.
delimited() ->
    {S, C} = pair([{packet, line}]),
    ok = inet:setopts(S, [{line_delimiter, $;}]),
    ok = gen_tcp:send(C, "one;two;"),
    X = [gen_tcp:recv(S, 0, 5000), gen_tcp:recv(S, 0, 5000)],
    gen_tcp:close(C), gen_tcp:close(S), X.

exit_on_close() ->
    [begin
        {S, C} = pair([{exit_on_close, E}, {active, true}]),
        ok = gen_tcp:send(C, "bye"), gen_tcp:close(C),
        M = until_closed(S),
        R = {M, inet:getopts(S, [active]), gen_tcp:recv(S, 0), gen_tcp:send(S, "x"), erlang:port_info(S, id) =/= undefined},
        gen_tcp:close(S), R
     end || E <- [true, false]].

linger() ->
    {S, C} = pair([{linger, {true, 0}}]),
    ok = inet:setopts(C, [{active, true}, {show_econnreset, true}]),
    gen_tcp:close(S),
    until_closed(C).

shutdowns() ->
    {S, C} = pair([]),
    R = [gen_tcp:shutdown(S, read_write), gen_tcp:shutdown(S, read_write), gen_tcp:recv(C, 0), gen_tcp:send(S, "x"), gen_tcp:recv(S, 0)],
    gen_tcp:close(S), gen_tcp:close(C),
    {T, D} = pair([]),
    X = [gen_tcp:shutdown(T, read), gen_tcp:recv(T, 0), gen_tcp:send(T, "x"), gen_tcp:recv(D, 1), reason(fun() -> gen_tcp:shutdown(T, foo) end)],
    {R, X}.

owner() ->
    {S, C} = pair([{active, true}]),
    Me = self(),
    P = spawn(fun() -> receive go -> Me ! {p, gen_tcp:controlling_process(S, self())} end, Me ! {got, until_closed(S)} end),
    ok = gen_tcp:send(C, "before"),
    receive {tcp, S, <<"before">>} = M -> self() ! M end,
    R = gen_tcp:controlling_process(S, P),
    P ! go,
    X = receive {p, Y} -> Y after 5000 -> late end,
    ok = gen_tcp:send(C, "after"),
    gen_tcp:close(C),
    G = receive {got, Z} -> iolist_to_binary([D || D <- Z, is_binary(D)]) after 5000 -> late end,
    {R, X, G, gen_tcp:controlling_process(S, P), gen_tcp:controlling_process(S, whereis(init)), reason(fun() -> gen_tcp:controlling_process(S, foo) end)}.

closing() ->
    {S, C} = pair([]),
    Me = self(),
    spawn(fun() -> Me ! {r, gen_tcp:recv(S, 0)} end),
    timer:sleep(100),
    gen_tcp:close(S),
    R = receive {r, X} -> X after 5000 -> late end,
    {R, gen_tcp:recv(C, 0), gen_tcp:close(C), gen_tcp:close(C)}.

udp_queue() ->
    {ok, A} = gen_udp:open(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {buffer, 10}]),
    {ok, B} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}]),
    {ok, P} = inet:port(A),
    [ok = gen_udp:send(B, {127, 0, 0, 1}, P, D) || D <- ["0123456789abc", "", "x"]],
    R = [element(3, element(2, gen_udp:recv(A, N, 5000))) || N <- [0, 0, 0]],
    ok = inet:setopts(A, [{active, 2}, {read_packets, 1}]),
    [ok = gen_udp:send(B, {127, 0, 0, 1}, P, [D]) || D <- "abc"],
    X = [receive {udp, A, _, _, D} -> D; {udp_passive, A} -> passive after 5000 -> late end || _ <- [1, 2, 3]],
    Y = element(3, element(2, gen_udp:recv(A, 0, 5000))),
    Z = [gen_udp:close(A), gen_udp:recv(A, 0), gen_udp:send(A, {127, 0, 0, 1}, P, "x")],
    {R, X, Y, Z}.

unix() ->
    N = "stream_back_pressure." ++ os:getpid(),
    {ok, A} = gen_udp:open(0, [{ifaddr, {local, N}}, binary, {active, false}]),
    {ok, B} = gen_udp:open(0, [local, binary, {active, false}]),
    R = [gen_udp:send(B, {local, N}, 0, "dgram"), gen_udp:recv(A, 0, 5000), inet:sockname(A) =:= {ok, {local, list_to_binary(N)}}, inet:sockname(B), gen_udp:send(B, {local, "/nonesuch"}, 0, "x")],
    gen_udp:close(A), gen_udp:close(B),
    Again = gen_tcp:listen(0, [{ifaddr, {local, N}}]),
    file:delete(N),
    {ok, L} = gen_tcp:listen(0, [{ifaddr, {local, N}}, {active, false}]),
    {ok, C} = gen_tcp:connect({local, list_to_binary(N)}, 0, [local, {active, false}]),
    {ok, S} = gen_tcp:accept(L),
    X = [gen_tcp:send(C, "stream"), gen_tcp:recv(S, 6), inet:peername(C) =:= {ok, {local, list_to_binary(N)}}, inet:sockname(C), inet:peername(S), gen_tcp:connect({local, <<0, "abstract none">>}, 0, []), reason(fun() -> gen_tcp:connect({local, lists:duplicate(200, $x)}, 0, []) end)],
    [gen_tcp:close(Q) || Q <- [S, C, L]],
    {ok, M} = gen_tcp:listen(0, [{ifaddr, {local, <<0, "stream_back_pressure", (list_to_binary(os:getpid()))/binary>>}}]),
    gen_tcp:close(M),
    {R, Again, X, file:delete(N)}.

recv_states() ->
    {S, C} = pair([]),
    ok = gen_tcp:send(C, "0123456789"),
    R = [gen_tcp:recv(S, 3), gen_tcp:recv(S, 0, 0), gen_tcp:recv(S, 1, 0), gen_tcp:recv(S, 5, 50), reason(fun() -> gen_tcp:recv(S, -1) end), gen_tcp:recv(S, 1 bsl 30, 0), inet:setopts(S, [{active, true}]), gen_tcp:recv(S, 0), inet:setopts(S, [{active, false}]), gen_tcp:send(C, "ab"), gen_tcp:recv(S, 2, infinity)],
    gen_tcp:close(S), gen_tcp:close(C), R.

header() ->
    {S, C} = pair([{header, 3}, {packet, 2}]),
    gen_tcp:send(C, <<5:16, "abcde", 2:16, "xy">>),
    R = [gen_tcp:recv(S, 0), gen_tcp:recv(S, 0), inet:setopts(S, [{header, 0}, {mode, list}, {active, once}]), gen_tcp:send(C, <<1:16, "l">>), receive {tcp, S, D} -> D after 5000 -> late end],
    gen_tcp:close(S), gen_tcp:close(C), R.

%% A packet that comes byte by byte.
split() ->
    {S, C} = pair([{packet, 4}, {active, once}], [{nodelay, true}]),
    [begin ok = gen_tcp:send(C, [B]), timer:sleep(1) end || <<B>> <= <<5:32, "split", 3:32, "two">>],
    R = receive {tcp, S, D} -> D after 5000 -> late end,
    X = gen_tcp:recv(S, 0),
    gen_tcp:close(S), gen_tcp:close(C), {R, X}.

httph() ->
    {S, C} = pair([{packet, http_bin}]),
    ok = gen_tcp:send(C, "\r\nPOST /a?b=c HTTP/1.1\r\nHost: h:80\r\nX-Long: a\r\n b\r\nContent-length: 5\r\n\r\nhelloGET * HTTP/1.0\r\n\r\nGET http://h/p HTTP/1.1\r\n\r\nCONNECT h:443 HTTP/1.1\r\nBad Header\r\n\r\nHTTP/1.1 200 OK now\r\n\r\n"),
    A = [gen_tcp:recv(S, 0, 5000) || _ <- lists:seq(1, 5)],
    ok = inet:setopts(S, [{packet, raw}]),
    B = gen_tcp:recv(S, 5, 5000),
    ok = inet:setopts(S, [{packet, http}]),
    D = [gen_tcp:recv(S, 0, 5000) || _ <- lists:seq(1, 10)],
    gen_tcp:close(S), gen_tcp:close(C), {A, B, D}.

many_small() ->
    {S, C} = pair([{packet, line}, {active, true}]),
    spawn_link(fun() -> [ok = gen_tcp:send(C, [integer_to_list(N), $\n]) || N <- lists:seq(1, 5000)] end),
    L = [receive {tcp, S, D} -> binary_to_integer(binary:part(D, 0, size(D) - 1)) after 5000 -> late end || _ <- lists:seq(1, 5000)],
    gen_tcp:close(S), gen_tcp:close(C), L =:= lists:seq(1, 5000).

delay() ->
    {S, C} = pair([], [{delay_send, true}]),
    [ok = gen_tcp:send(C, "abc") || _ <- lists:seq(1, 100)],
    R = gen_tcp:recv(S, 300, 5000),
    ok = gen_tcp:send(C, "last"), gen_tcp:close(C),
    {size(element(2, R)), gen_tcp:recv(S, 4, 5000), gen_tcp:recv(S, 0, 5000)}.

unrecv() ->
    {S, C} = pair([]),
    ok = gen_tcp:unrecv(S, "back "), ok = gen_tcp:send(C, "front"),
    R = [gen_tcp:recv(S, 10, 5000), gen_tcp:unrecv(S, "again"), inet:setopts(S, [{active, once}]), receive {tcp, S, D} -> D after 2000 -> none end],
    gen_tcp:close(S), gen_tcp:close(C), R.

inherit() ->
    {ok, L} = gen_tcp:listen(0, [list, {active, once}, {packet, 2}, {nodelay, true}, {keepalive, true}, {tos, 8}, {send_timeout, 77}, {high_watermark, 333}, {low_watermark, 222}, {buffer, 999}, {linger, {true, 1}}, {exit_on_close, false}, {ip, {127, 0, 0, 1}}, {header, 2}, {packet_size, 44}, {delay_send, true}, {priority, 2}, {send_timeout_close, true}, {show_econnreset, true}]),
    {ok, P} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, []),
    {ok, S} = gen_tcp:accept(L),
    R = inet:getopts(S, [mode, active, packet, nodelay, keepalive, tos, send_timeout, high_watermark, low_watermark, buffer, linger, exit_on_close, header, packet_size, delay_send, priority, send_timeout_close, show_econnreset]),
    [gen_tcp:close(X) || X <- [S, C, L]], R.

%% A sender is held up by a reader that doesn't read, times out, and learns of the close.
suspended() ->
    {S, C} = pair([{sndbuf, 5000}, {send_timeout, 200}, {high_watermark, 1000}, {low_watermark, 500}], [{recbuf, 5000}]),
    fill(S, 1000),
    R = [gen_tcp:send(S, "x"), inet:getopts(S, [send_timeout])],
    {ok, B} = gen_tcp:recv(C, 0, 5000),
    gen_tcp:close(C),
    {R, size(B) > 0, gen_tcp:close(S)}.
fill(_, 0) -> never;
fill(S, N) -> case gen_tcp:send(S, binary:copy(<<0>>, 10000)) of ok -> fill(S, N - 1); E -> E end.

connect_async() ->
    [element(1, gen_tcp:connect({127, 0, 0, 1}, 1, [])), reason(fun() -> gen_tcp:connect({256, 0, 0, 1}, 1, []) end), reason(fun() -> gen_tcp:connect({127, 0, 0, 1}, 1, [{nonesuch, 1}]) end)].

dropped() ->
    {S, C} = pair([{active, true}]),
    {_, Ref} = spawn_monitor(fun() -> ok = gen_tcp:controlling_process(S, self()) end),
    receive {'DOWN', Ref, _, _, W} -> ok end,
    unlink(S),
    M = monitor(port, S),
    exit(S, kill),
    X = receive {'DOWN', M, port, S, Y} -> Y after 5000 -> late end,
    {element(1, W), X, gen_tcp:recv(C, 0, 5000), gen_tcp:close(C)}.
