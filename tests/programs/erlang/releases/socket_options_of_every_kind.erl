%% Reads each option of `socket:supports(options)`, except those of SCTP, on all kinds of sockets,
%% sets it to the value read and to values of each wrong type, and reads it again. Each kind of
%% socket gets a third of the values for each option, and the next kind another third.
%% @seconds 200
-module(socket_options_of_every_kind).
-export([main/0]).

main() ->
    %% Some releases list them by level.
    Told = lists:usort([T || {Of, B} <- socket:supports(options), T <- case Of of {_, _} -> [{Of, B}]; _ -> [{{Of, O}, Is} || {O, Is} <- B] end]),
    [io:format("~0p~n", [T]) || T <- Told],
    Listed = [T || {T = {L, _}, _} <- Told, lists:member(L, [socket, ip, ipv6, tcp, udp])],
    All = lists:usort(Listed ++ others()),
    Domains = [{inet, stream, tcp}, {inet, dgram, udp}, {inet6, stream, tcp}, {inet6, dgram, udp}, {local, stream, default}, {local, dgram, default}],
    [kind(K, N, All) || {N, K} <- lists:zip(lists:seq(1, length(Domains)), Domains)],
    pairs(All),
    init:stop().

others() ->
    [{otp, O} || O <- [iow, meta, rcvbuf, rcvctrlbuf, sndctrlbuf, fd, meta, use_registry, select_read, nonesuch, 1]] ++
    [{L, O} || L <- [socket, ip, ipv6, tcp, udp], O <- [nonesuch, 9999]] ++
    [{socket, acceptconn}, {1, 2}, {0, 1}, {6, 1}, {17, 1}, {41, 16}, {nonesuch, debug}, {9999, 1}, {ip, ttl}, socket, {ip}, {1, 2, 3}, 17, []].

kind({D, T, P}, N, All) ->
    [begin
         {ok, S} = socket:open(D, T, P),
         io:format("~w ~w ~0p: ~0p~n", [D, T, O, tried(S, O, third(N + erlang:phash2(O), values(O)))]),
         socket:close(S)
     end || O <- All].

%% Every third value, beginning with one of the first three.
third(N, Values) -> [V || {I, V} <- lists:zip(lists:seq(1, length(Values)), Values), (I + N) rem 3 =:= 0].

%% Those of a connected socket, and of one that listens.
pairs(All) ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, port => 0, addr => loopback}),
    ok = socket:listen(L),
    {ok, Name} = socket:sockname(L),
    {ok, C} = socket:open(inet, stream, tcp),
    ok = socket:connect(C, Name),
    {ok, A} = socket:accept(L),
    [io:format("connected ~0p: ~0p~n", [O, [got(C, O), got(A, O), got(L, O)]]) || O <- All, is_tuple(O), O =/= {otp, fd}],
    [socket:close(S) || S <- [A, C, L]],
    [io:format("closed ~0p: ~0p~n", [O, [got(C, O), set(C, O, 1)]]) || O <- All].

tried(S, O, Values) ->
    First = got(S, O),
    Same = case First of {ok, V} -> set(S, O, V); _ -> none end,
    Sets = [{V, set(S, O, V)} || V <- Values],
    {First, Same, group(Sets), got(S, O)}.

%% Values with one outcome stand together.
group(Sets) -> [{R, [V || {V, R1} <- Sets, R1 =:= R]} || R <- lists:usort([R || {_, R} <- Sets])].

%% Releases differ in the text that binaries make, which stock lets end behind them.
values({L, O}) when O =:= bindtodevice; O =:= congestion -> [V || V <- values({L, other}), not is_binary(V)];
values({socket, Time}) when Time =:= rcvtimeo; Time =:= sndtimeo ->
    [#{sec => 1, usec => 2}, #{sec => 1}, #{usec => 1}, #{sec => -1, usec => 0}, #{sec => 0, usec => 1 bsl 40}, #{sec => 1 bsl 70, usec => 1}, #{sec => a, usec => 1},
     #{sec => 0, usec => 0, x => 1}, 1, true, #{}, []];
values(_) ->
    [true, false, 0, 1, 2, -1, 17, 255, 256, 65536, (1 bsl 31) - 1, 1 bsl 31, (1 bsl 32) - 1, 1 bsl 32, 1 bsl 62, 1 bsl 70, -(1 bsl 31), 1.0, foo, default, [], [1], [a | b], {},
     "text", <<>>, <<1>>, <<0:32>>, <<1:32/native>>, <<1:64/native>>, <<1:3>>, {1, 2}, {1, a}, {0, 0}, #{}, #{onoff => true, linger => 3}, #{onoff => false, linger => 0},
     #{onoff => true}, #{onoff => 1, linger => 1}, #{onoff => true, linger => -1}, #{sec => 1, usec => 1}, lowdelay, throughput, reliability, mincost,
     dont, want, do, probe, any, loopback, {127, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 1}, {1, 2, 3, 256}, {1, 2, 3}, #{multiaddr => {224, 0, 0, 1}, interface => any},
     #{multiaddr => {224, 0, 0, 1}, interface => {127, 0, 0, 1}}, #{multiaddr => any}, #{multiaddr => {65282, 0, 0, 0, 0, 0, 0, 1}, interface => 0},
     #{multiaddr => {65282, 0, 0, 0, 0, 0, 0, 1}, interface => 1}, #{multiaddr => {224, 0, 0, 5}, interface => any, sourceaddr => {127, 0, 0, 1}},
     #{mode => exclude, interface => any, multiaddr => {224, 0, 0, 1}, slist => []}, all, make_ref, "lo", <<"lo">>, "reno", <<"cubic">>, self, lists:duplicate(300, $a)].

got(S, O) -> told(O, try socket:getopt(S, O) catch C:R -> {C, R} end).
set(S, O, V) -> told(O, try socket:setopt(S, O, V) catch C:R -> {C, R} end).

%% What differs from run to run.
told({otp, fd}, {ok, N}) when is_integer(N) -> {ok, fd};
told({otp, debug}, R) -> R;
told(_, {ok, P}) when is_pid(P) -> {ok, pid};
told({tcp, info}, {ok, M}) when is_map(M) -> {ok, lists:sort(maps:keys(M))};
told({_, timestamp}, {ok, M}) when is_map(M) -> {ok, map};
told(_, {error, {invalid, {_, S}}}) -> {error, {invalid, S}};
told(_, R) -> R.
