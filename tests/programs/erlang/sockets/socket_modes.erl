%% Checks the messages and results of sockets in each mode, with each option, and for each way to
%% end a connection.
-module(socket_modes).
-export([main/0]).

main() ->
    process_flag(trap_exit, true),
    [io:format("~p ~0p~n", [F, outcome(F)]) ||
        F <- [echo, line, active, http, asn1, refused, timeouts, opts, udp, udp_options, local, many, big, packet4, counted,
              sendfile, accepting, monitor, services, send_timeout, owner_ends, controlling, half, reset, bad]].

outcome(F) ->
    try t(F) catch C:E -> {C, E} end.

pair(O) ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {reuseaddr, true} | O]),
    {ok, P} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, O),
    {ok, A} = gen_tcp:accept(L, 5000),
    gen_tcp:close(L),
    flush(),
    {C, A}.

%% Messages so far, sockets and pids cut out.
flush() ->
    receive
        {'EXIT', P, R} when is_pid(P) -> [{'EXIT', pid, R} | flush()];
        M -> [setelement(2, M, s) | flush()]
    after 150 -> []
    end.

t(echo) ->
    {C, A} = pair([binary, {active, false}]),
    ok = gen_tcp:send(C, ["he", <<"llo">>, [[$!]]]),
    {ok, X} = gen_tcp:recv(A, 6, 5000),
    ok = gen_tcp:send(A, X),
    {ok, Y} = gen_tcp:recv(C, 3, 5000),
    {ok, Z} = gen_tcp:recv(C, 3, 5000),
    {ok, {_, P}} = inet:peername(C),
    {ok, {_, P}} = inet:sockname(A),
    [X, Y, Z, inet:getstat(C, [recv_cnt, recv_oct, send_cnt, send_oct, send_pend]), gen_tcp:close(C), gen_tcp:recv(A, 0),
     gen_tcp:recv(A, 0), gen_tcp:send(A, "x"), gen_tcp:send(A, "x"), inet:peername(A)];
t(line) ->
    {C, A} = pair([list, {active, false}, {packet, line}]),
    ok = gen_tcp:send(C, "a\nbb\nccc"),
    R = [gen_tcp:recv(A, 0, 300) || _ <- [1, 2, 3]],
    ok = gen_tcp:send(C, ["c\n", lists:duplicate(3000, $x), "\n"]),
    R ++ [case gen_tcp:recv(A, 0, 300) of {ok, L} -> length(L); E -> E end || _ <- [1, 2, 3, 4, 5]];
t(active) ->
    {C, A} = pair([binary, {active, true}]),
    Steps = [fun() -> gen_tcp:send(C, "one") end, fun() -> inet:setopts(A, [{active, once}]), gen_tcp:send(C, "two") end,
             fun() -> gen_tcp:send(C, "three") end, fun() -> inet:setopts(A, [{active, once}]) end,
             fun() -> gen_tcp:close(C) end, fun() -> inet:setopts(A, [{active, true}]) end],
    [begin S(), flush() end || S <- Steps];
t(http) ->
    {C, A} = pair([binary, {active, false}, {packet, http_bin}]),
    ok = gen_tcp:send(C, "GET /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
    R = [gen_tcp:recv(A, 0, 5000) || _ <- [1, 2, 3, 4]],
    inet:setopts(A, [{packet, raw}]),
    B = gen_tcp:recv(A, 3, 5000),
    inet:setopts(A, [{packet, http}, {active, true}]),
    ok = gen_tcp:send(C, "HTTP/1.0 404 Not Found\r\nserver: me\r\n\r\nnonsense\r\n"),
    R ++ [B, flush()];
t(asn1) ->
    {C, A} = pair([binary, {active, true}, {packet, asn1}]),
    ok = gen_tcp:send(C, <<16#30, 3, "abc", 16#30, 16#81, 4, "defg", 16#30, 2, "h">>),
    R = flush(),
    inet:setopts(A, [{packet, tpkt}]),
    ok = gen_tcp:send(C, <<"i">>),
    [R, flush()];
t(refused) ->
    {ok, L} = gen_tcp:listen(0, []),
    {ok, P} = inet:port(L),
    gen_tcp:close(L),
    [gen_tcp:connect({127, 0, 0, 1}, P, []), gen_tcp:connect("127.0.0.1", P, [], 30000), gen_tcp:listen(0, [{ip, {1, 2, 3, 4}}])];
t(timeouts) ->
    {C, A} = pair([{active, false}]),
    [gen_tcp:recv(C, 0, 10), gen_tcp:recv(C, 0, 0), gen_tcp:recv(A, 5, 20), gen_tcp:close(A), gen_tcp:close(C), gen_tcp:recv(C, 0),
     gen_tcp:send(C, "")];
t(opts) ->
    {C, A} = pair([{active, false}, {nodelay, true}, {sndbuf, 8192}]),
    [[inet:getopts(C, [O]) || O <- [active, nodelay, packet, mode, header, deliver, exit_on_close, high_watermark, low_watermark,
        send_timeout, delay_send, packet_size, keepalive, linger, priority, tos, reuseaddr, buffer, show_econnreset, broadcast,
        dontroute, sndbuf, recbuf, high_msgq_watermark, low_msgq_watermark, send_timeout_close, nopush, ttl, foo]],
     inet:setopts(C, [{tos, 16}, {priority, 2}, {linger, {true, 2}}, {active, 3}, {header, 2}]),
     inet:getopts(C, [tos, priority, linger, active, header]), inet:setopts(C, [{foo, 1}]),
     inet:getopts(C, [{raw, 6, 1, 4}]), inet:setopts(C, [{raw, 6, 1, <<0:32>>}]), inet:getopts(C, [nodelay]), inet:getopts(A, [active, nodelay])];
t(udp) ->
    {ok, U} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, V} = gen_udp:open(0, [list, {ip, {127, 0, 0, 1}}]),
    {ok, P} = inet:port(U),
    {ok, Q} = inet:port(V),
    ok = gen_udp:send(V, {127, 0, 0, 1}, P, ["a", <<"bc">>]),
    {ok, {I, Q, D}} = gen_udp:recv(U, 0, 5000),
    ok = gen_udp:send(U, {127, 0, 0, 1}, Q, "xyz"),
    R = [setelement(4, M, port) || M <- flush()],
    ok = gen_udp:connect(U, {127, 0, 0, 1}, Q),
    ok = gen_udp:send(U, "conn"),
    R2 = [setelement(4, M, port) || M <- flush()],
    [I, D, R, R2, gen_udp:recv(U, 0, 10), gen_udp:send(V, {127, 0, 0, 1}, P, binary:copy(<<0>>, 70000)), gen_udp:close(U),
     gen_udp:recv(U, 0, 10)];
t(udp_options) ->
    {ok, U} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}, {active, 2}, {recvttl, true}, {recvtos, true}, {header, 2}]),
    {ok, V} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}]),
    {ok, P} = inet:port(U),
    ok = gen_udp:send(V, {127, 0, 0, 1}, P, "one"),
    ok = gen_udp:send(V, {127, 0, 0, 1}, P, [{ttl, 9}, {tos, 8}], "two"),
    [case M of {udp, s, IP, _, Anc, D} -> {IP, lists:sort(Anc), D}; _ -> M end || M <- flush()] ++ [inet:getopts(U, [read_packets])];
t(local) ->
    file:delete("socket_modes.sock"),
    {ok, L} = gen_tcp:listen(0, [{ifaddr, {local, "socket_modes.sock"}}, {active, false}]),
    {ok, C} = gen_tcp:connect({local, "socket_modes.sock"}, 0, [{active, false}]),
    {ok, A} = gen_tcp:accept(L),
    ok = gen_tcp:send(C, "hi"),
    R = gen_tcp:recv(A, 2, 5000),
    file:delete("socket_modes.sock"),
    [R, inet:sockname(L), inet:peername(A), gen_tcp:connect({local, "socket_modes.sock"}, 0, [])];
t(many) ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {active, false}, binary, {packet, 2}, {backlog, 100}]),
    {ok, P} = inet:port(L),
    Me = self(),
    [spawn(fun() -> acceptor(L) end) || _ <- lists:seq(1, 5)],
    [spawn(fun() -> Me ! {done, N, client(P, N)} end) || N <- lists:seq(1, 40)],
    R = lists:usort([receive {done, N, X} -> X after 20000 -> timeout end || N <- lists:seq(1, 40)]),
    gen_tcp:close(L),
    R;
t(big) ->
    {C, A} = pair([binary, {active, false}]),
    D = binary:copy(<<"0123456789">>, 1000000),
    spawn(fun() -> ok = gen_tcp:send(C, D) end),
    {ok, X} = gen_tcp:recv(A, 10000000, 20000),
    X =:= D;
t(packet4) ->
    {C, A} = pair([binary, {active, true}, {packet, 4}]),
    ok = gen_tcp:send(C, <<>>),
    ok = gen_tcp:send(C, binary:copy(<<7>>, 100000)),
    R = [{T, byte_size(B)} || {T, s, B} <- flush()],
    inet:setopts(A, [{packet_size, 10}]),
    ok = gen_tcp:send(C, <<"eleven byte">>),
    [R, flush()];
t(counted) ->
    {C, A} = pair([binary, {active, 2}, {packet, 1}]),
    [ok = gen_tcp:send(C, [N]) || N <- [1, 2, 3, 4]],
    R = flush(),
    inet:setopts(A, [{active, 1}]),
    R2 = flush(),
    inet:setopts(A, [{active, -5}]),
    [R, R2, flush(), inet:getopts(A, [active]), inet:setopts(A, [{active, 40000}])];
t(sendfile) ->
    D = binary:copy(<<"0123456789">>, 30000),
    ok = file:write_file("socket_modes.data", D),
    {C, A} = pair([binary, {active, false}]),
    S = self(),
    spawn(fun() -> S ! {r, gen_tcp:recv(A, 300000, 20000)} end),
    R = file:sendfile("socket_modes.data", C),
    B = receive {r, {ok, X}} -> X =:= D; O -> O after 20000 -> timeout end,
    file:delete("socket_modes.data"),
    [R, B];
t(accepting) ->
    {ok, L} = gen_tcp:listen(0, []),
    S = self(),
    R = gen_tcp:accept(L, 20),
    spawn(fun() -> S ! {a, gen_tcp:accept(L)} end),
    timer:sleep(100),
    gen_tcp:close(L),
    [R, receive {a, X} -> X after 5000 -> timeout end, gen_tcp:accept(L)];
t(monitor) ->
    {C, _} = pair([]),
    R = inet:monitor(C),
    gen_tcp:close(C),
    receive {'DOWN', R, port, C, W} -> W after 5000 -> timeout end;
t(services) ->
    {ok, I} = inet:getifaddrs(),
    [lists:keyfind("lo", 1, I), inet:getservbyname(nonsense, tcp), inet:ifget("lo", [addr, netmask, flags, mtu, hwaddr])];
t(send_timeout) ->
    {C, A} = pair([binary, {active, false}, {send_timeout, 50}, {sndbuf, 4096}, {recbuf, 4096}]),
    [fill(C, 1000), gen_tcp:close(A)];
t(owner_ends) ->
    {ok, L} = gen_tcp:listen(0, [{active, true}]),
    {ok, P} = inet:port(L),
    spawn(fun() -> {ok, _} = gen_tcp:connect({127, 0, 0, 1}, P, []), timer:sleep(50) end),
    {ok, _} = gen_tcp:accept(L),
    receive {tcp_closed, _} -> [{tcp_closed, s} | flush()] after 30000 -> late end;
t(controlling) ->
    {C, A} = pair([{active, false}]),
    S = self(),
    Pid = spawn(fun() ->
        receive {go, X} -> inet:setopts(X, [{active, once}]), receive M -> S ! {got, setelement(2, M, s)} end end
    end),
    R = gen_tcp:controlling_process(A, Pid),
    Other = gen_tcp:controlling_process(A, self()),
    Pid ! {go, A},
    ok = gen_tcp:send(C, "z"),
    [R, Other, receive {got, M} -> M after 5000 -> timeout end];
t(half) ->
    {C, A} = pair([{active, false}, {exit_on_close, false}]),
    ok = gen_tcp:send(C, "end"),
    gen_tcp:shutdown(C, write),
    R = [gen_tcp:recv(A, 3, 5000), gen_tcp:recv(A, 0, 5000), gen_tcp:send(A, "back")],
    R ++ [gen_tcp:recv(C, 4, 5000)];
t(reset) ->
    {C, A} = pair([{active, false}, {show_econnreset, true}]),
    inet:setopts(C, [{linger, {true, 0}}]),
    gen_tcp:close(C),
    [gen_tcp:recv(A, 0, 5000), gen_tcp:send(A, "x")];
t(bad) ->
    {C, A} = pair([{active, true}, {packet, cdr}]),
    ok = gen_tcp:send(C, "no such thing here"),
    R = flush(),
    [R, erlang:port_info(A), gen_tcp:send(A, "x")].

fill(_, 0) -> never;
fill(C, N) ->
    case gen_tcp:send(C, binary:copy(<<0>>, 10000)) of
        ok -> fill(C, N - 1);
        E -> E
    end.

acceptor(L) ->
    case gen_tcp:accept(L) of
        {ok, A} -> echo(A), acceptor(L);
        _ -> ok
    end.

echo(A) ->
    case gen_tcp:recv(A, 0) of
        {ok, B} -> ok = gen_tcp:send(A, B), echo(A);
        _ -> gen_tcp:close(A)
    end.

client(P, N) ->
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, [binary, {active, false}, {packet, 2}]),
    R = [begin
        ok = gen_tcp:send(C, <<N:16, K:16>>),
        gen_tcp:recv(C, 0, 10000) =:= {ok, <<N:16, K:16>>}
    end || K <- lists:seq(1, 30)],
    gen_tcp:close(C),
    lists:usort(R).
