%% Checks every option of gen_tcp, gen_udp and inet: its default, whether it can be set, and its
%% value then. Also checks statistics, look-ups of names, addresses and interfaces, and IPv6.
-module(inet_options).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    [io:format("~p~n", [{N, outcome(F)}]) || {N, F} <- tests()].

outcome(F) -> try F() catch C:R -> {C, R} end.

tests() ->
    [{{listen, O}, fun() -> listens(O) end} || O <- listen_options()] ++
    [{{tcp, O}, fun() -> with_tcp(fun(S) -> sets(S, O) end) end} || O <- tcp_options()] ++
    [{{udp, O}, fun() -> with_udp([], fun(S) -> sets(S, O) end) end} || O <- udp_options()] ++
    [{{udp6, O}, fun() -> with_udp([inet6], fun(S) -> sets(S, O) end) end} || O <- udp6_options()] ++
    [{{local, O}, fun() -> with_local(fun(S) -> sets(S, O) end) end} || O <- tcp_options()] ++
    [{raw, fun raw/0}, {unknown, fun unknown/0}, {stats, fun stats/0}, {info, fun info/0}, {names, fun names/0}, {v6, fun v6/0},
     {udp_v6, fun udp_v6/0}, {connected, fun connected/0}, {ancillary, fun ancillary/0}, {multicast, fun multicast/0},
     {interfaces, fun interfaces/0}, {lookups, fun lookups/0}, {ports, fun ports/0}, {open_at, fun open_at/0}, {fdopen, fun fdopen/0},
     {i, fun i/0}].

listen_options() ->
    [{backlog, 0}, {backlog, -1}, {backlog, 5}, {backlog, x}, {reuseaddr, true}, {reuseport, true}, {ip, loopback}, {ip, any}, {ip, {127, 0, 0, 2}}, {ip, {1, 2, 3, 4}},
     {ifaddr, {127, 0, 0, 1}}, {ipv6_v6only, true}, {port, 0}, {fd, 9999}, {fd, x}, {packet, 9}, {packet, 2}, {mode, binary}, {mode, x}, binary, list,
     {active, 5}, {active, foo}, {tos, 16}, {priority, 3}, {nodelay, true}, {foo, bar}, foo, inet, inet6, local, {ip, {local, "/nonesuch/x"}},
     {netns, "/nonesuch"}, {bind_to_device, <<"lo">>}, {bind_to_device, <<"nonesuch">>}, {sndbuf, 10000}, {recbuf, 10000}, {buffer, 77}, {send_timeout, -1},
     {delay_send, x}, {exit_on_close, 3}, {header, 4}, {packet_size, 10}, {low_watermark, 0}, {high_watermark, 0}, {raw, 1, 9, <<1:32/native>>}, {tclass, 3},
     {keepalive, true}, {linger, {true, 3}}, {dontroute, true}, {broadcast, true}, {deliver, term}, {deliver, port}, {deliver, x}, {ttl, 33}, {recvtos, true}, {recvttl, true}, {recvtclass, true}].

listens(O) ->
    case gen_tcp:listen(0, [O]) of
        {ok, S} -> R = {ok, element(2, sockname(S)) =/= 0}, gen_tcp:close(S), R;
        E -> E
    end.
sockname(S) -> case inet:sockname(S) of {ok, {A, P}} -> {A, P}; X -> {x, X} end.

with_tcp(F) ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, P} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, []),
    {ok, S} = gen_tcp:accept(L),
    R = outcome(fun() -> F(S) end),
    [gen_tcp:close(X) || X <- [S, C, L]],
    R.
with_udp(O, F) ->
    {ok, S} = gen_udp:open(0, O),
    R = outcome(fun() -> F(S) end),
    gen_udp:close(S),
    R.
with_local(F) ->
    N = "inet_options." ++ os:getpid(),
    {ok, L} = gen_tcp:listen(0, [{ip, {local, N}}]),
    {ok, C} = gen_tcp:connect({local, N}, 0, []),
    {ok, S} = gen_tcp:accept(L),
    R = outcome(fun() -> F(S) end),
    [gen_tcp:close(X) || X <- [S, C, L]],
    file:delete(N),
    R.

sets(S, {K, Vs}) ->
    First = get1(S, K),
    [First | [begin A = outcome(fun() -> inet:setopts(S, [{K, V}]) end), {V, A, get1(S, K)} end || V <- Vs]].
%% The sizes of the kernel's buffers depend on the load.
get1(S, K) ->
    case outcome(fun() -> inet:getopts(S, [K]) end) of
        {ok, [{K, _}]} when K =:= recbuf; K =:= sndbuf -> some;
        R -> R
    end.

general() ->
    [{active, [true, false, once, 3, -1, 0, 40000, x]}, {mode, [binary, list, x]}, {header, [2, 0, -1, x]}, {buffer, [1, 100, 100000, -1, x]}, {recbuf, [5000, x]}, {sndbuf, [5000, x]},
     {priority, [0, 3, 6, x]}, {tos, [0, 16, 255, x]}, {tclass, [0, 4]}, {ttl, [1, 64, 255, 0, 256]}, {dontroute, [true, false, x]}, {linger, [{true, 2}, {false, 0}, {true, 0}, x]},
     {reuseaddr, [true, false]}, {reuseport, [true, false]}, {bind_to_device, [<<"lo">>, <<>>, x]}, {recvtos, [true, false]}, {recvttl, [true]}, {recvtclass, [true]}, {pktoptions, []}, {ipv6_v6only, [true]},
     {high_msgq_watermark, [10, 0]}, {low_msgq_watermark, [5, 0, 100]}, {netns, []}, {deliver, [port, term]}, {ifaddr, []}, {port, []}, {fd, []}, {line_delimiter, [$x, 0, 256, x]}].
tcp_options() ->
    general() ++
    [{packet, [raw, 0, 1, 2, 4, line, http, http_bin, httph, httph_bin, asn1, cdr, sunrm, fcgi, tpkt, ssl_tls, 3, x]}, {packet_size, [10, 0, 16#7ffffff, -1]},
     {nodelay, [true, false, 1]}, {keepalive, [true, false]}, {nopush, [true, false]}, {delay_send, [true, false, x]}, {send_timeout, [100, infinity, 0, -1]},
     {send_timeout_close, [true, false]}, {exit_on_close, [false, true, x]}, {show_econnreset, [true, false]}, {high_watermark, [100, 10000, 0, -1]}, {low_watermark, [50, 5000, 1000000]}, {backlog, [3]}].
udp_options() ->
    general() ++
    [{broadcast, [true, false]}, {read_packets, [1, 10, 0, -1, x]}, {multicast_ttl, [3, 256]}, {multicast_loop, [true, false]},
     {add_membership, [{{224, 0, 0, 5}, {127, 0, 0, 1}}, {{1, 2, 3, 4}, {127, 0, 0, 1}}, x]}, {drop_membership, [{{224, 0, 0, 5}, {127, 0, 0, 1}}, {{224, 0, 0, 9}, {127, 0, 0, 1}}]}, {packet, [2]}, {nodelay, [true]}, {high_watermark, [10]}].
udp6_options() ->
    [{tclass, [0, 4, 256]}, {ipv6_v6only, [true, false]}, {recvtclass, [true]}, {recvhoplimit, [true]}, {multicast_ttl, [4]}, {multicast_loop, [false]}, {tos, [3]}].

raw() ->
    with_tcp(fun(S) ->
        %% TCP_NODELAY, SO_KEEPALIVE, TCP_KEEPIDLE.
        A = inet:setopts(S, [{raw, 6, 1, <<1:32/native>>}, {raw, 1, 9, <<1:32/native>>}, {raw, 6, 4, <<77:32/native>>}]),
        {A, inet:getopts(S, [{raw, 6, 1, 4}, {raw, 1, 9, <<0:32>>}, {raw, 6, 4, 4}, {raw, 6, 4, 2}, nodelay, keepalive]),
         inet:getopts(S, [{raw, 77, 1, 4}]), inet:setopts(S, [{raw, 77, 1, <<0:32>>}])}
    end).
unknown() ->
    with_tcp(fun(S) -> {[outcome(fun() -> inet:setopts(S, [O]) end) || O <- [foo, {foo, 1}, {nodelay}, 7]], outcome(fun() -> inet:getopts(S, [foo]) end), outcome(fun() -> inet:getopts(S, nodelay) end),
        outcome(fun() -> inet:setopts(S, [{nodelay, true} | x]) end), outcome(fun() -> inet:setopts(S, [{nodelay, true}, {foo, 1}]) end), inet:getopts(S, [nodelay, active, mode, packet])} end).

stats() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {active, false}, binary]),
    {ok, P} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, [{active, false}]),
    {ok, S} = gen_tcp:accept(L),
    [ok = gen_tcp:send(C, lists:duplicate(N, $x)) || N <- [1, 10, 100]],
    {ok, _} = gen_tcp:recv(S, 111),
    K = [send_oct, send_cnt, send_max, send_avg, send_dvi, send_pend],
    R = {inet:getstat(C, K), inet:getstat(S, [recv_oct]), element(1, inet:getstat(S)), length(element(2, inet:getstat(S))), outcome(fun() -> inet:getstat(S, [foo]) end)},
    [gen_tcp:close(X) || X <- [S, C]],
    {R, inet:getstat(C), inet:getopts(C, [active]), inet:setopts(C, [{active, true}]), inet:peername(C), inet:sockname(C), inet:port(C), gen_tcp:send(C, "x"), gen_tcp:recv(C, 0), gen_tcp:shutdown(C, write), gen_tcp:accept(C), gen_tcp:close(C)}.

info() ->
    with_tcp(fun(S) -> I = inet:info(S), {lists:sort(maps:keys(I)), [maps:get(K, I, none) || K <- [states, domain, type, protocol, num_readers, num_writers]], lists:sort(maps:keys(maps:get(counters, I, #{})))} end).

names() ->
    {[outcome(fun() -> inet:parse_address(A) end) || A <- ["1.2.3.4", "::1", "fe80::1%lo", "1.2", "1.2.3.4.5", "::ffff:1.2.3.4", "x", "", "0x7f.1", "::1%"]],
     [outcome(fun() -> inet:ntoa(A) end) || A <- [{1, 2, 3, 4}, {0, 0, 0, 0, 0, 0, 0, 1}, {16#fe80, 0, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 65535, 258, 772}, {1, 2}]],
     [inet:format_error(E) || E <- [econnrefused, eaddrinuse, timeout, exbadport, einval, system_limit, foo]]}.

v6() ->
    {ok, L} = gen_tcp:listen(0, [inet6, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}, {active, false}, binary]),
    {ok, {A, P}} = inet:sockname(L),
    {ok, C} = gen_tcp:connect("::1", P, [inet6, {active, false}, binary]),
    {ok, S} = gen_tcp:accept(L),
    ok = gen_tcp:send(C, "six"),
    R = {A, gen_tcp:recv(S, 3), element(1, element(2, inet:peername(S))), inet:getopts(S, [ipv6_v6only, tclass]), outcome(fun() -> gen_tcp:connect({127, 0, 0, 1}, P, [inet6]) end)},
    [gen_tcp:close(X) || X <- [S, C, L]],
    {ok, D} = gen_tcp:listen(0, [inet6, {ipv6_v6only, false}]),
    {ok, Q} = inet:port(D),
    {ok, E} = gen_tcp:connect({127, 0, 0, 1}, Q, []),
    {ok, F} = gen_tcp:accept(D),
    {ok, {B, _}} = inet:peername(F),
    [gen_tcp:close(X) || X <- [D, E, F]],
    {R, B}.

udp_v6() ->
    {ok, A} = gen_udp:open(0, [inet6, binary, {active, false}, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}]),
    {ok, B} = gen_udp:open(0, [inet6, binary, {active, true}]),
    {ok, P} = inet:port(A),
    R0 = gen_udp:send(B, {0, 0, 0, 0, 0, 0, 0, 1}, P, ["to ", <<"six">>]),
    {ok, {X, Q, D}} = gen_udp:recv(A, 0, 5000),
    ok = gen_udp:send(A, {X, Q}, <<"back">>),
    R = receive {udp, B, Y, P, M} -> {Y, M} after 5000 -> none end,
    gen_udp:close(A), gen_udp:close(B),
    {R0, X, D, R}.

connected() ->
    {ok, A} = gen_udp:open(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, B} = gen_udp:open(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, P} = inet:port(A),
    {ok, Q} = inet:port(B),
    R = [gen_udp:connect(A, {127, 0, 0, 1}, Q), gen_udp:send(A, "one"), element(3, element(2, gen_udp:recv(B, 0, 5000))), element(1, element(2, inet:peername(A))), inet:peername(B),
         gen_udp:send(B, {127, 0, 0, 1}, P, <<>>), element(3, element(2, gen_udp:recv(A, 0, 5000))), gen_udp:recv(A, 0, 10), gen_udp:send(B, "x"),
         gen_udp:send(B, {127, 0, 0, 1}, P, binary:copy(<<0>>, 70000)), outcome(fun() -> gen_udp:send(B, {127, 0, 0, 1}, 70000, "x") end),
         gen_udp:send(B, {127, 0, 0, 1}, 0, "x"), outcome(fun() -> gen_udp:send(B, "no..name", P, "x") end), outcome(fun() -> gen_udp:send(B, {127, 0, 0, 1}, P, [foo]) end)],
    gen_udp:close(A), gen_udp:close(B),
    {R, gen_udp:send(A, "x"), gen_udp:recv(A, 0), gen_udp:open(70000), outcome(fun() -> gen_udp:open(x) end), gen_udp:open(0, [{ip, {1, 2, 3, 4}}])}.

ancillary() ->
    {ok, A} = gen_udp:open(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {recvtos, true}, {recvttl, true}]),
    {ok, B} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}, {tos, 8}, {ttl, 44}]),
    {ok, P} = inet:port(A),
    ok = gen_udp:send(B, {127, 0, 0, 1}, P, "x"),
    {ok, {_, _, Anc, D}} = gen_udp:recv(A, 0, 5000),
    ok = gen_udp:send(B, {{127, 0, 0, 1}, P}, [{tos, 16}, {ttl, 9}], "y"),
    {ok, {_, _, Anc2, E}} = gen_udp:recv(A, 0, 5000),
    inet:setopts(A, [{active, true}]),
    ok = gen_udp:send(B, {{127, 0, 0, 1}, P}, [{tclass, 1}], "z"),
    R = receive {udp, A, _, _, Anc3, Z} -> {lists:sort(Anc3), Z} after 1000 -> none end,
    gen_udp:close(A), gen_udp:close(B),
    {lists:sort(Anc), D, lists:sort(Anc2), E, R}.

multicast() ->
    G = {224, 0, 0, 77},
    {ok, A} = gen_udp:open(0, [binary, {active, false}, {add_membership, {G, {127, 0, 0, 1}}}, {multicast_loop, true}]),
    {ok, P} = inet:port(A),
    {ok, B} = gen_udp:open(0, [binary, {multicast_if, {127, 0, 0, 1}}, {multicast_ttl, 1}]),
    R = {gen_udp:send(B, G, P, "all"), case gen_udp:recv(A, 0, 2000) of {ok, {I, _, D}} -> {I, D}; X -> X end},
    gen_udp:close(A), gen_udp:close(B),
    R.

interfaces() ->
    {ok, All} = inet:getifaddrs(),
    {lists:sort(All), element(1, inet:getif()), inet:ifget("lo", [addr, netmask, flags, mtu, hwaddr, broadaddr, dstaddr]), inet:ifget("nonesuch", [addr]), outcome(fun() -> inet:getiflist() end), inet:getifaddrs([{netns, "/nonesuch"}])}.

lookups() ->
    {inet:getaddr("localhost", inet), inet:getaddr("localhost", inet6), inet:getaddr("no..name", inet), inet:getaddrs(localhost, inet), inet:gethostbyname("127.0.0.1"),
     inet:gethostbyaddr({127, 0, 0, 1}), inet:gethostbyname("localhost", inet6), inet:gethostname(), inet:getservbyname(http, tcp), inet:getservbyname(nonesuch, tcp), inet:getservbyport(25, tcp), outcome(fun() -> inet:getservbyport(x, tcp) end),
     inet:getaddr("::1", inet), inet:getaddr({1, 2, 3, 4}, inet6), inet:gethostbyaddr("::1")}.

ports() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, P} = inet:port(L),
    Again = gen_tcp:listen(P, [{ip, {127, 0, 0, 1}}]),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, []),
    Busy = gen_tcp:accept(L, 1000),
    T = gen_tcp:accept(L, 10),
    Bad = [outcome(fun() -> gen_tcp:connect({127, 0, 0, 1}, X, []) end) || X <- [0, -1, 70000, x, http2]],
    Info = [{K, V} || {K, V} <- erlang:port_info(C), lists:member(K, [name, input, output])],
    gen_tcp:close(C), gen_tcp:close(L),
    {Again, element(1, Busy), T, Bad, Info, outcome(fun() -> gen_tcp:accept(L) end), outcome(fun() -> gen_tcp:listen(70000, []) end), gen_tcp:connect("no..name", 1, []), gen_tcp:connect({127, 0, 0, 1}, P, [], 1000), outcome(fun() -> gen_tcp:connect({127, 0, 0, 1}, P, [], -1) end)}.

open_at() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, P} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, [{ip, {127, 0, 0, 3}}, {linger, {true, 0}}]),
    {ok, {A, _}} = inet:sockname(C),
    gen_tcp:close(C), gen_tcp:close(L),
    A.

fdopen() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, P} = inet:port(L),
    {ok, Fd} = prim_inet:getfd(L),
    {ok, M} = gen_tcp:fdopen(Fd, []),
    R = {inet:port(M) =:= {ok, P}, inet:getopts(M, [active])},
    gen_tcp:close(L),
    R.

i() -> {is_list(inet:i(tcp, [port]) =:= ok), outcome(fun() -> inet:sockname(foo) end), outcome(fun() -> inet:peername(hd(erlang:ports())) end)}.
