%% Checks batches of messages of module `socket` (OTP 29), and SCTP options on sockets without
%% associations. Earlier releases have neither. @stress @shared @fence
-module(socket_message_batches).
-compile([nowarn_undefined_function, {nowarn_deprecated_catch, true}]).
-export([main/0]).

main() ->
    {module, socket} = code:ensure_loaded(socket),
    case erlang:function_exported(socket, sendmmsg, 4) of
        true -> [io:format("~w: ~0p~n", [F, try t(F) catch C:R:S -> {C, R, [element(2, E) || E <- lists:sublist(S, 1)]} end])
                 || F <- [sent, cut, control, many, stream, waits, refused, gone, associations]];
        false -> io:format("none~n")
    end.

udp() ->
    {ok, S} = socket:open(inet, dgram, udp),
    ok = socket:bind(S, #{family => inet, addr => loopback, port => 0}),
    {ok, A} = socket:sockname(S),
    {S, A}.
%% So many messages, in as many calls as it takes.
collect(_, N, _) when N =< 0 -> [];
collect(S, N, Room) ->
    case socket:recvmmsg(S, N, Room, 0, [], 5000) of
        {ok, L} -> L ++ collect(S, N - length(L), Room);
        E -> [E]
    end.
data(#{iov := L}) -> iolist_to_binary(L);
data(E) -> E.
cause(F) -> try F() catch C:R -> {C, R} end.

t(sent) ->
    {A, AA} = udp(),
    {B, BA} = udp(),
    L = [#{addr => BA, iov => [integer_to_binary(I), binary:copy(<<I>>, I * 40)]} || I <- lists:seq(1, 20)],
    R = socket:sendmmsg(A, L, [], infinity),
    Got = collect(B, 20, 0),
    Same = [data(M) || M <- Got] =:= [iolist_to_binary(maps:get(iov, M)) || M <- L],
    From = lists:usort([maps:get(addr, M) =:= AA || M <- Got]),
    Keys = lists:usort([lists:sort(maps:keys(M)) || M <- Got]),
    ok = socket:connect(A, BA),
    R2 = socket:sendmmsg(A, [#{iov => [<<"x">>]}, #{iov => []}, #{iov => [<<>>, <<"y">>]}], [], 1000),
    R3 = [data(M) || M <- collect(B, 3, 100)],
    R4 = socket:sendmmsg(A, [], [], infinity),
    [socket:close(S) || S <- [A, B]],
    {R, length(Got), Same, From, Keys, R2, R3, R4};
%% Of a message that is longer than the room the rest is lost, and its flags say so.
t(cut) ->
    {A, _} = udp(),
    {B, BA} = udp(),
    ok = socket:sendmmsg(A, [#{addr => BA, iov => [binary:copy(<<C>>, N)]} || {C, N} <- [{$a, 3}, {$b, 5}, {$c, 90}, {$d, 4}]], [], infinity),
    Got = collect(B, 4, 4),
    ok = socket:sendmmsg(A, [#{addr => BA, iov => [<<"longer">>]}], [], infinity),
    {ok, Peeked} = socket:recvmmsg(B, 3, 2, 0, [peek, trunc], 5000),
    [socket:close(S) || S <- [A, B]],
    {[{data(M), maps:get(flags, M)} || M <- Got], [data(M) || M <- Peeked]};
t(control) ->
    {A, _} = udp(),
    {B, BA} = udp(),
    ok = socket:setopt(B, {ip, recvttl}, true),
    Ttl = fun(N) -> #{addr => BA, iov => [<<N>>], ctrl => [#{level => ip, type => ttl, data => N}]} end,
    R = socket:sendmmsg(A, [Ttl(I) || I <- [3, 40, 200]], [], infinity),
    Got = collect(B, 3, 0),
    Bad = [cause(fun() -> socket:sendmmsg(A, [Ttl(1), #{addr => BA, iov => [<<1>>], ctrl => C}], [], infinity) end)
           || C <- [[#{level => ip, type => ttl, data => foo}]]],
    [socket:close(S) || S <- [A, B]],
    {R, [{data(M), [maps:with([level, type, value], C) || C <- maps:get(ctrl, M)]} || M <- Got], [element(1, B1) || B1 <- Bad]};
%% Batches of as many as have come.
t(many) ->
    {ok, B} = socket:open(local, dgram, default),
    Path = "/tmp/socket_message_batches-" ++ os:getpid(),
    ok = socket:bind(B, #{family => local, path => Path}),
    {ok, A} = socket:open(local, dgram, default),
    ok = socket:connect(A, #{family => local, path => Path}),
    Me = self(),
    N = 1500,
    {P, Ref} = spawn_monitor(fun() -> Me ! {got, [data(M) || M <- collect(B, N, 256)]} end),
    many(A, [<<I:32>> || I <- lists:seq(1, N)]),
    Got = receive {got, G} -> G; {'DOWN', Ref, process, P, Why} -> [Why] end,
    [socket:close(S) || S <- [A, B]],
    ok = file:delete(Path),
    {length(Got), Got =:= [<<I:32>> || I <- lists:seq(1, N)]};
%% A stream: parts of messages go when it is full, and come in other pieces.
t(stream) ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:listen(L),
    {ok, Address} = socket:sockname(L),
    {ok, A} = socket:open(inet, stream, tcp),
    ok = socket:connect(A, Address),
    {ok, B} = socket:accept(L),
    ok = socket:sendmmsg(A, [#{iov => [<<"one ">>, <<"two ">>]}, #{iov => [<<"three">>]}], [], infinity),
    {ok, <<"one two three">>} = socket:recv(B, 13, 5000),
    ok = socket:send(A, <<"again">>),
    {ok, Got} = socket:recvmmsg(B, 9, 3, 0, [], 5000),
    socket:close(A),
    [socket:close(S) || S <- [B, L]],
    [data(M) || M <- Got];
t(waits) ->
    {A, _} = udp(),
    {B, BA} = udp(),
    Zero = socket:recvmmsg(B, 4, 0, 0, [], 0),
    Short = socket:recvmmsg(B, 4, 0, 0, [], 20),
    {select, {select_info, What, H} = Info} = socket:recvmmsg(B, 4, 0, 0, [], nowait),
    ok = socket:sendmmsg(A, [#{addr => BA, iov => [<<I>>]} || I <- "abc"], [], nowait),
    receive {'$socket', B, select, H} -> ok end,
    Got = [data(M) || M <- collect(B, 3, 0)],
    {select, Info2} = socket:recvmmsg(B, 4, 0, 0, [], nowait),
    Cancelled = socket:cancel(B, Info2),
    %% Another process waits behind the one that reads.
    Me = self(),
    {select, Info3} = socket:recvmmsg(B, 4, 0, 0, [], nowait),
    P = spawn(fun() -> Me ! {self(), [data(M) || M <- collect(B, 1, 0)]} end),
    ok = socket:cancel(B, Info3),
    ok = socket:sendmmsg(A, [#{addr => BA, iov => [<<"last">>]}], [], infinity),
    Last = receive {P, L} -> L end,
    [socket:close(S) || S <- [A, B]],
    {Zero, Short, What, Info =:= Info2, Got, Cancelled, Last};
t(refused) ->
    {A, AA} = udp(),
    M = #{addr => AA, iov => [<<"x">>]},
    R = [element(1, cause(fun() -> socket:sendmmsg(A, L, F, T) end))
         || {L, F, T} <- [{[M, foo], [], infinity}, {[M | foo], [], infinity}, {[#{addr => AA}], [], infinity},
                          {[M#{iov => foo}], [], infinity}, {[M#{iov => [foo]}], [], infinity},
                          {foo, [], infinity}, {[M], foo, infinity}, {[M], [], foo}, {[M], [foo], infinity}]],
    R2 = [cause(fun() -> socket:recvmmsg(A, N, B, C, F, T) end)
          || {N, B, C, F, T} <- [{0, 0, 0, [], 0}, {1 bsl 40, 0, 0, [], 0}, {1, -1, 0, [], 0}, {1, 0, foo, [], 0},
                                 {1, 0, 0, [], foo}, {1, 1 bsl 62, 0, foo, 0}]],
    Nothing = socket:recvmmsg(A, 8, 0, 0, [], 0),
    socket:close(A),
    {R, [case X of {error, {N, _}} when is_atom(N) -> {error, N}; {error, N} when is_atom(N) -> {error, N}; _ -> X end || X <- R2], Nothing};
t(gone) ->
    {A, AA} = udp(),
    socket:close(A),
    {socket:sendmmsg(A, [#{addr => AA, iov => [<<"x">>]}], [], infinity), socket:recvmmsg(A, 1, 0, 0, [], 0)};
t(associations) ->
    {ok, T} = socket:open(inet, stream, tcp),
    {U, _} = udp(),
    A = #{family => inet, addr => {127, 0, 0, 1}, port => 0},
    R = [cause(F) || F <- [fun() -> socket:bind(T, [A], add) end, fun() -> socket:bind(T, [A, A], remove) end,
                           fun() -> socket:bind(U, [], add) end,
                           fun() -> socket:bind(U, [A#{family => local, path => "x"}], add) end,
                           fun() -> prim_socket:bind(element(2, U), [A], other) end,
                           fun() -> socket:peeloff(T, 0) end, fun() -> socket:peeloff(U, foo) end,
                           fun() -> socket:socknames(T, 0) end, fun() -> socket:peernames(U, 3) end,
                           fun() -> prim_socket:peernames(element(2, U), foo) end]],
    socket:close(T),
    R2 = [cause(F) || F <- [fun() -> socket:bind(T, [A], add) end, fun() -> socket:socknames(T, 0) end]],
    socket:close(U),
    {R, R2, [X || {K, _} = X <- socket:supports(), K =:= sctp]}.

many(_, []) -> ok;
many(A, L) ->
    {Now, Later} = lists:split(min(10, length(L)), L),
    [ok = socket:sendmsg(A, #{iov => [B]}) || B <- Now],
    many(A, Later).
