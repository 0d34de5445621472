%% Checks the results of each native of module socket, and gen_tcp on top of it.
-module(socket_natives).
-export([main/0]).

main() ->
    [io:format("~p ~0p~n", [F, outcome(F)]) ||
        F <- [tables, open, names, stream, waiting, queue, cancel, closing, accepting, refused, datagrams, messages,
              control, options, own_options, native_options, owner, dead_owner, monitor, collected, local, large, gather,
              file, counters, again, ioctls, net, tcp, tcp_active, bad]].

outcome(F) ->
    try t(F) catch C:E -> {C, E} end.

loopback() -> #{family => inet, addr => loopback, port => 0}.

pair() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, loopback()),
    ok = socket:listen(L),
    {ok, A} = socket:sockname(L),
    {ok, C} = socket:open(inet, stream, tcp),
    ok = socket:connect(C, A),
    {ok, S} = socket:accept(L),
    {L, C, S}.

udp() ->
    {ok, U} = socket:open(inet, dgram, udp),
    ok = socket:bind(U, loopback()),
    {ok, A} = socket:sockname(U),
    {U, A}.

%% Selections without their references.
s({select, {select_info, T, _}}) -> {select, T};
s({select, {{select_info, T, _}, D}}) -> {select, T, D};
s(R) -> R.

later(Tag, F) ->
    Me = self(),
    spawn(fun() -> Me ! {Tag, F()} end).
await(Tag) -> receive {Tag, R} -> R after 5000 -> none end.

%% Until so many wait on the socket.
until(S, Key, N) ->
    case socket:info(S) of
        #{Key := N} -> ok;
        _ -> erlang:yield(), until(S, Key, N)
    end.

path() -> filename:absname("s").

t(tables) ->
    [lists:sort(socket:supports(T)) || T <- [protocols, options, msg_flags, ioctl_requests, ioctl_flags]];
t(open) ->
    [case catch apply(socket, open, A) of {ok, S} -> I = socket:info(S), socket:close(S), maps:without([owner], I); R -> R end ||
        A <- [[inet, stream, tcp], [inet, stream], [inet6, dgram, udp], [local, stream], [local, seqpacket], [inet, foo],
              [foo, stream], [inet, stream, foo], [inet, stream, 9999], [1000], [inet, stream, tcp, #{netns => "/none"}]]];
t(names) ->
    {ok, S} = socket:open(inet, stream, tcp),
    [socket:peername(S), socket:sockname(S), socket:bind(S, #{family => inet, addr => {1, 2, 3, 4}, port => 0}),
     catch socket:bind(S, foo), catch socket:bind(S, #{family => inet, addr => foo}),
     catch socket:bind(S, #{family => inet, foo => 1}), catch socket:bind(S, #{family => local}), socket:bind(S, loopback()),
     maps:get(addr, element(2, socket:sockname(S))), socket:shutdown(S, write), catch socket:shutdown(S, foo),
     socket:close(S), socket:sockname(S), socket:peername(S), socket:bind(S, loopback())];
t(stream) ->
    {_, C, S} = pair(),
    [socket:send(C, "hello"), socket:recv(S, 2), socket:recv(S, 0, [peek]), socket:recv(S, 3), socket:recv(S, 0, 0),
     s(socket:recv(S, 0, nowait)), socket:send(C, <<"abc">>),
     receive {'$socket', S, select, R} when is_reference(R) -> ready after 5000 -> none end,
     socket:recv(S, 0), socket:send(C, "12"), socket:recv(S, 1), s(socket:recv(S, 4, nowait)), socket:send(C, "345"),
     receive {'$socket', S, select, R2} when is_reference(R2) -> ready after 5000 -> none end,
     socket:recv(S, 3), socket:shutdown(C, write), socket:recv(S, 1), socket:recv(S, 0),
     socket:send(S, "x"), socket:recv(C, 1), socket:close(S), socket:recv(C, 1), socket:recv(S, 1), socket:send(S, "")];
t(waiting) ->
    {_, C, S} = pair(),
    later(r, fun() -> socket:recv(S, 3) end),
    until(S, num_readers, 1),
    ok = socket:send(C, "abc"),
    A = await(r),
    later(r, fun() -> socket:recv(S, 5, 60000) end),
    until(S, num_readers, 1),
    ok = socket:send(C, "ab"),
    ok = socket:send(C, "cde"),
    [A, await(r)];
t(queue) ->
    {_, C, S} = pair(),
    P = later(r1, fun() -> socket:recv(S, 3) end),
    until(S, num_readers, 1),
    later(r2, fun() -> socket:recv(S, 3) end),
    until(S, num_readers, 2),
    Q = later(r3, fun() -> socket:recv(S, 3) end),
    until(S, num_readers, 3),
    Zero = socket:recv(S, 0, 0),
    exit(Q, kill),
    until(S, num_readers, 2),
    exit(P, kill),
    until(S, num_readers, 1),
    ok = socket:send(C, "123"),
    [Zero, await(r2), maps:with([num_readers, rstates, wstates], socket:info(S))];
t(cancel) ->
    {L, C, S} = pair(),
    {select, I} = socket:recv(S, 0, nowait),
    {select, J} = socket:accept(L, nowait),
    {select_info, T, _} = I,
    [socket:cancel(S, {select_info, T, make_ref()}), socket:cancel(S, I), socket:cancel(S, I), socket:recv(L, 0, 0),
     socket:cancel(L, J), catch socket:cancel(S, foo), catch socket:cancel(S, {select_info, foo, make_ref()}),
     socket:close(C), socket:cancel(C, I)];
t(closing) ->
    {L, _, S} = pair(),
    later(r1, fun() -> socket:recv(S, 3) end),
    until(S, num_readers, 1),
    later(r2, fun() -> socket:recvfrom(S) end),
    until(S, num_readers, 2),
    later(a1, fun() -> socket:accept(L) end),
    until(L, num_acceptors, 1),
    later(a2, fun() -> socket:accept(L) end),
    until(L, num_acceptors, 2),
    {select, _} = s(socket:recv(S, 0, nowait)),
    [socket:close(S), await(r1), await(r2), socket:close(L), await(a1), await(a2),
     receive {'$socket', S, abort, {R, Why}} when is_reference(R) -> Why after 5000 -> none end,
     socket:close(S), socket:accept(L), socket:listen(L), socket:connect(S, loopback())];
t(accepting) ->
    {L, _, _} = pair(),
    {ok, A} = socket:sockname(L),
    P = later(a1, fun() -> socket:accept(L) end),
    until(L, num_acceptors, 1),
    later(a2, fun() -> element(1, socket:accept(L)) end),
    until(L, num_acceptors, 2),
    exit(P, kill),
    until(L, num_acceptors, 1),
    {ok, C} = socket:open(inet, stream, tcp),
    [socket:connect(C, A), await(a2), socket:accept(L, 0), socket:listen(C),
     maps:with([num_acceptors, rstates], socket:info(L))];
t(refused) ->
    {L, _, _} = pair(),
    {ok, A} = socket:sockname(L),
    ok = socket:close(L),
    {ok, S} = socket:open(inet, stream, tcp),
    [socket:connect(S, A), catch socket:connect(S), catch socket:connect(S, foo),
     catch socket:connect(S, #{family => inet, addr => foo, port => 1}), socket:recv(S, 0, 0)];
t(datagrams) ->
    {U, _} = udp(),
    {V, A} = udp(),
    {ok, UA} = socket:sockname(U),
    ok = socket:sendto(U, "datagram", A),
    {ok, {From, D}} = socket:recvfrom(V),
    [From =:= UA, D, socket:recvfrom(V, 0, 0), socket:recv(V, 0, [], 0), socket:recvmsg(V, 0),
     socket:sendto(U, binary:copy(<<0>>, 70000), A), socket:sendto(U, "12345678", A), socket:recv(V, 4),
     socket:send(U, "x"), socket:connect(U, A), socket:send(U, "to you"), socket:recv(V), socket:sendto(U, "", A),
     socket:recv(V), socket:connect(U, #{family => unspec}), socket:peername(U), catch socket:sendto(U, "x", foo)];
t(messages) ->
    {U, _} = udp(),
    {V, A} = udp(),
    ok = socket:sendmsg(U, #{addr => A, iov => [<<"a">>, <<>>, <<"bc">>]}),
    {ok, M} = socket:recvmsg(V),
    ok = socket:sendmsg(U, #{addr => A, iov => [<<"a long one">>]}),
    {ok, N} = socket:recvmsg(V, 4, 0),
    [maps:remove(addr, M), maps:remove(addr, N), catch socket:sendmsg(U, #{addr => A, iov => [a]}),
     catch socket:sendmsg(U, #{addr => A, iov => [<<1>> | <<2>>]}), catch socket:sendmsg(U, #{addr => foo, iov => [<<1>>]}),
     catch socket:sendmsg(U, #{addr => A, iov => [<<I>> || I <- lists:seq(1, 1200)]}), catch socket:sendmsg(U, foo)];
t(control) ->
    {U, _} = udp(),
    {V, A} = udp(),
    [ok = socket:setopt(V, {ip, O}, true) || O <- [recvtos, recvttl, pktinfo]],
    C = fun(L) -> catch socket:sendmsg(U, #{addr => A, iov => [<<"x">>], ctrl => L}) end,
    ok = C([#{level => ip, type => tos, value => throughput}, #{level => ip, type => ttl, value => 3}]),
    {ok, #{ctrl := L}} = socket:recvmsg(V),
    ok = socket:setopt(V, {socket, timestamp}, true),
    ok = C([]),
    {ok, #{ctrl := K}} = socket:recvmsg(V),
    [lists:sort(L), [maps:keys(Time) || #{type := timestamp, value := Time} <- K],
     C([#{level => ip, type => foo, value => 1}]), C([#{level => ip, type => tos}]), C([#{level => foo, type => tos, value => 1}]),
     C([#{level => ip, type => ttl, data => 9}]), C([#{level => ip, type => 2, data => <<9:32/native>>}]), C(foo), C([#{}]),
     C([#{level => ip, type => tos, value => mincost, data => <<1>>}])];
t(options) ->
    {U, _} = udp(),
    {ok, S} = socket:open(inet, stream, tcp),
    {ok, S6} = socket:open(inet6, stream, tcp),
    [{O, catch socket:setopt(Y, O, X), socket:getopt(Y, O)} || {Y, O, X} <-
        [{U, {socket, broadcast}, true}, {U, {socket, broadcast}, 3}, {S, {socket, keepalive}, true},
         {S, {socket, linger}, #{onoff => true, linger => 3}}, {S, {socket, linger}, abort}, {S, {socket, linger}, 1},
         {S, {tcp, nodelay}, true}, {S, {tcp, congestion}, "reno"}, {S, {tcp, congestion}, "none such"}, {S, {tcp, congestion}, x},
         {S, {socket, reuseaddr}, true}, {S, {socket, rcvlowat}, 2}, {S, {socket, priority}, 5}, {S, {socket, bindtodevice}, 1},
         {S, {socket, type}, stream}, {S, {socket, domain}, inet}, {S, {socket, protocol}, tcp}, {S, {socket, acceptconn}, true},
         {U, {ip, tos}, lowdelay}, {U, {ip, tos}, 12}, {U, {ip, tos}, foo}, {U, {ip, ttl}, 9}, {U, {ip, multicast_if}, any},
         {U, {ip, multicast_ttl}, 7}, {U, {ip, multicast_loop}, false}, {U, {ip, mtu_discover}, do},
         {U, {ip, add_membership}, #{multiaddr => {224, 0, 0, 251}, interface => loopback}},
         {U, {ip, drop_membership}, #{multiaddr => {224, 0, 0, 251}, interface => loopback}}, {U, {ip, add_membership}, foo},
         {S6, {ipv6, v6only}, true}, {S6, {ipv6, unicast_hops}, default}, {S6, {ipv6, unicast_hops}, 300}, {S6, {ipv6, tclass}, 8},
         {S6, {ipv6, multicast_hops}, 9}, {S, {socket, peercred}, 1}, {S, {foo, bar}, 1}, {S, foo, 1}, {S, {sctp, rtoinfo}, 1}]];
t(own_options) ->
    {S, _} = udp(),
    [{O, catch socket:setopt(S, {otp, O}, V), catch socket:getopt(S, {otp, O})} ||
        {O, V} <- [{rcvbuf, 17}, {rcvbuf, {2, 100}}, {rcvbuf, 0}, {rcvbuf, default}, {rcvbuf, {0, 1}}, {rcvctrlbuf, 99},
                   {sndctrlbuf, 98}, {sndctrlbuf, x}, {iow, true}, {iow, x}, {meta, {any, [term]}}, {meta, undefined},
                   {use_registry, false}, {use_registry, true}, {domain, inet}, {foo, 1}]];
t(native_options) ->
    {S, _} = udp(),
    R = {1, 2},
    [catch socket:getopt_native(S, R, V) || V <- [integer, boolean, 4, 2, 0, <<0:32>>, foo]] ++
        [catch socket:setopt_native(S, R, V) || V <- [1, true, <<1:32/native>>, <<>>, foo]] ++
        [socket:getopt_native(S, {socket, 2}, boolean), socket:getopt_native(S, {1, 9999}, integer)];
t(owner) ->
    Me = self(),
    {P, M} = spawn_monitor(fun() -> Me ! {sock, socket:open(inet, stream, tcp)}, receive stop -> ok end end),
    {ok, S} = await(sock),
    A = socket:setopt(S, {otp, controlling_process}, self()),
    B = socket:setopt(S, {otp, meta}, 1),
    P ! stop,
    receive {'DOWN', M, _, _, _} -> ok end,
    [A, B, socket:sockname(S)];
t(dead_owner) ->
    {P, M} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', M, _, _, _} -> ok end,
    {S, _} = udp(),
    [socket:setopt(S, {otp, controlling_process}, P), socket:sockname(S)];
t(monitor) ->
    Me = self(),
    N = socket:number_of(),
    P = spawn(fun() -> Me ! {sock, socket:open(inet, stream, tcp)}, receive stop -> ok end end),
    {ok, S} = await(sock),
    R = socket:monitor(S),
    O = socket:number_of(),
    P ! stop,
    D = receive {'DOWN', R, K, S, Why} -> {K, Why} after 5000 -> none end,
    [O - N, D, socket:number_of() - N];
t(collected) ->
    %% A socket that the registry does not know goes with its last reference.
    #{counters := #{num_sockets := N}} = socket:info(),
    {P, M} = spawn_monitor(fun() -> {ok, _} = socket:open(inet, stream, tcp, #{use_registry => false}) end),
    receive {'DOWN', M, process, P, _} -> ok end,
    #{counters := #{num_sockets := O}} = socket:info(),
    O - N;
t(local) ->
    {ok, L} = socket:open(local, stream),
    A = #{family => local, path => path()},
    R = [socket:bind(L, A), socket:bind(L, A), socket:listen(L)],
    {ok, C} = socket:open(local, stream),
    ok = socket:connect(C, A),
    {ok, S} = socket:accept(L),
    R ++ [maps:get(path, element(2, socket:sockname(L))) =:= list_to_binary(path()), socket:sockname(C), socket:peername(S),
          socket:send(C, "x"), socket:recv(S), socket:bind(C, #{family => local, path => lists:duplicate(200, $x)}),
          file:delete(path())];
t(large) ->
    {_, C, S} = pair(),
    D = binary:copy(<<"0123456789">>, 1000000),
    later(sent, fun() -> socket:send(C, D) end),
    {ok, E} = socket:recv(S, byte_size(D)),
    [D =:= E, await(sent)];
t(gather) ->
    {_, C, S} = pair(),
    later(sent, fun() -> socket:sendmsg(C, #{iov => [<<I:32>> || I <- lists:seq(1, 5000)]}) end),
    {ok, D} = socket:recv(S, 20000),
    [erlang:md5(D), await(sent)];
t(file) ->
    {_, C, S} = pair(),
    D = binary:copy(<<"abcdefghij">>, 500000),
    ok = file:write_file("data", D),
    {ok, F} = file:open("data", [read, raw, binary]),
    [begin
         later(sent, fun() -> {ok, G} = file:open("data", [read, raw, binary]), socket:sendfile(C, G, O, N, infinity) end),
         {ok, E} = socket:recv(S, M),
         {erlang:md5(E), await(sent)}
     end || {O, N, M} <- [{0, 0, 5000000}, {5, 0, 4999995}, {1, 10, 10}]] ++
        [socket:sendfile(C, F, 6000000, 0), catch socket:sendfile(C, make_ref(), 0, 0), catch socket:sendfile(C, F, -1, 0)];
t(counters) ->
    {_, C, S} = pair(),
    ok = socket:send(C, "12345"),
    {ok, _} = socket:recv(S, 2),
    {ok, _} = socket:recv(S, 0),
    ok = socket:close(C),
    {error, closed} = socket:recv(S, 0),
    maps:get(counters, socket:info(S));
t(again) ->
    {_, C, S} = pair(),
    {ok, Fd} = socket:getopt(S, {otp, fd}),
    {ok, T} = socket:open(Fd),
    ok = socket:send(C, "xyz"),
    I = socket:info(T),
    [socket:recv(T), maps:with([domain, type, protocol, rstates, wstates], I), element(1, maps:get(ctype, I)),
     socket:open(99999), catch socket:open(foo), catch socket:open(Fd, #{dup => false, domain => foo, type => foo}) =/= x];
t(ioctls) ->
    {ok, S} = socket:open(inet, stream, tcp),
    [catch socket:ioctl(S, R, "lo") || R <- [gifaddr, gifindex, gifflags, gifmtu, gifnetmask, gifbrdaddr]] ++
        [catch socket:ioctl(S, gifaddr, "none"), catch socket:ioctl(S, gifname, 1), catch socket:ioctl(S, gifname, 9999),
         lists:member("lo", [N || #{name := N} <- element(2, socket:ioctl(S, gifconf))])];
t(net) ->
    [net:if_name2index("lo"), net:if_name2index("none"), net:if_index2name(1), net:if_index2name(9999), net:if_names(),
     net:getifaddrs(all), net:getaddrinfo("localhost"), net:getaddrinfo("127.0.0.1", "80"), net:gethostname() =:= inet:gethostname(),
     net:getnameinfo(#{family => inet, addr => {127, 0, 0, 1}, port => 80}, [numerichost, numericserv]),
     catch net:getnameinfo(#{family => inet, addr => {127, 0, 0, 1}, port => 80}, [foo]),
     net:getifaddrs(fun(#{name := N}) -> N =:= "none" end), (catch prim_net:get_if_entry(#{index => 1})) =/= x];
t(tcp) ->
    O = [{inet_backend, socket}, binary, {active, false}, {packet, 2}],
    {ok, L} = gen_tcp:listen(0, O),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, O),
    {ok, S} = gen_tcp:accept(L),
    [gen_tcp:send(C, "one"), gen_tcp:send(C, "second"), gen_tcp:recv(S, 0), inet:setopts(S, [{packet, raw}]),
     gen_tcp:recv(S, 4), gen_tcp:recv(S, 0), gen_tcp:recv(S, 0, 0), inet:getopts(S, [packet, active, mode]),
     gen_tcp:shutdown(C, write), gen_tcp:recv(S, 0), gen_tcp:close(S), gen_tcp:recv(S, 0), gen_tcp:close(C),
     gen_tcp:close(L), gen_tcp:connect({127, 0, 0, 1}, Port, O)];
t(tcp_active) ->
    O = [{inet_backend, socket}, list, {active, once}, {packet, line}],
    {ok, L} = gen_tcp:listen(0, O),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, O),
    {ok, S} = gen_tcp:accept(L),
    Next = fun() -> receive {tcp, S, D} -> D; {tcp_closed, S} -> closed after 5000 -> none end end,
    ok = gen_tcp:send(C, "one\ntwo\n"),
    A = Next(),
    ok = inet:setopts(S, [{active, once}]),
    B = Next(),
    ok = gen_tcp:close(C),
    ok = inet:setopts(S, [{active, true}]),
    [A, B, Next()];
t(bad) ->
    {S, _} = udp(),
    [catch socket:recv(S, 1 bsl 70) =/= x, catch socket:send(S, <<1>>, [1 bsl 40]) =/= x, catch socket:send(S, <<1>>, [foo]),
     catch socket:recv(foo, 1) =/= x, (catch socket:close(make_ref())) =/= x, catch socket:send(S, [foo]) =/= x,
     catch socket:info(foo) =/= x, (catch socket:recv({'$socket', make_ref()}, 1)) =/= x].
