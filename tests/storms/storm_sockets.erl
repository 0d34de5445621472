%% Sockets: each byte and each datagram comes once and in order, whichever way it is received,
%% whoever owns the socket, whenever a receive times out, and the end comes behind the last one.
-module(storm_sockets).
-export([round/0]).

-define(LATE, (storm:late(20000))).

round() ->
    storm:run([{stream, 6, fun stream/0}, {datagrams, 3, fun datagrams/0}, {accepts, 1, fun accepts/0}, {closes, 1, fun closes/0}, {native, 2, fun native/0}]).

%% ---- streams ----

stream() ->
    Family = storm:choice([inet, inet, inet6, local]),
    Packet = storm:choice([raw, raw, raw, 1, 2, 4, line]),
    {L, Where} = listen(Family, Packet, backend(Packet)),
    Me = self(),
    {Sender, M} = spawn_monitor(fun() -> connect(Where, Packet, Me) end),
    case gen_tcp:accept(L, ?LATE) of
        {ok, S} ->
            put(where, {Family, Packet, element(3, Where)}),
            ok = gen_tcp:controlling_process(S, self()),
            receive {total, Sender, Total} -> ok end,
            Passed = receiver(S, #{packet => Packet, at => 0, total => Total, rest => <<>>, mode => false, owners => 0, left => 0, what => get(where), steps => []}),
            storm:check(Passed =:= Total, "a stream of ~p ended at ~p: ~0p", [Total, Passed, get(where)]);
        Error ->
            storm:fault("accept: ~0p", [Error])
    end,
    gen_tcp:close(L),
    case Where of {_, {local, Name}, _} -> file:delete(Name); _ -> ok end,
    receive {'DOWN', M, process, Sender, Why} -> storm:check(Why =:= normal, "who sends ended by ~0p", [Why])
    after ?LATE -> storm:fault("who sends does not end: ~0p", [process_info(Sender, current_stacktrace)])
    end.

release() -> list_to_integer(erlang:system_info(otp_release)).

%% Module gen_tcp_socket of OTP 25 damages packets.
backend(raw) -> backend();
backend(_) -> case release() < 26 of true -> []; false -> backend() end.

%% The inet drivers, or module socket.
backend() -> storm:choice([[], [], [{inet_backend, socket}]]).

path() ->
    filename:join(os:getenv("STORM_DIR", "/tmp"), "storm_" ++ os:getpid() ++ "_" ++ integer_to_list(erlang:unique_integer([positive]))).

address(inet) -> {[inet, {ip, {127, 0, 0, 1}}], {127, 0, 0, 1}};
address(inet6) -> {[inet6, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}], {0, 0, 0, 0, 0, 0, 0, 1}};
address(local) -> L = {local, path()}, {[local, {ifaddr, L}], L}.

%% What comes with a path is bytes as a list: with binaries gen_udp:recv fails in some releases.
kind(local) -> list;
kind(_) -> binary.

listen(Family, Packet, Backend) ->
    {Options, Address} = address(Family),
    case gen_tcp:listen(0, Backend ++ [binary, {active, false}, {packet, Packet}, {backlog, 20} | Options]) of
        {ok, L} ->
            Port = case Family of local -> 0; _ -> {ok, P} = inet:port(L), P end,
            {L, {Port, Address, Backend}};
        {error, _} when Family =:= inet6 ->
            listen(inet, Packet, Backend)
    end.

family(Address) when tuple_size(Address) =:= 8 -> [inet6];
family({local, _}) -> [local];
family(_) -> [inet].

connect({Port, Address, _}, Packet, Receiver) ->
    {ok, S} = gen_tcp:connect(Address, Port, backend(Packet) ++ [binary, {active, false}, {packet, Packet}, {nodelay, true}] -- case Address of {local, _} -> [{nodelay, true}]; _ -> [] end ++ family(Address), ?LATE),
    Messages = messages(Packet, 300 + storm:random(1500)),
    Receiver ! {total, self(), case Packet of raw -> iolist_size(Messages); _ -> length(Messages) end},
    send(S, Messages),
    case storm:chance(2) of
        true -> ok = gen_tcp:shutdown(S, write);
        false -> ok
    end,
    ok = gen_tcp:close(S).

%% In a stream without packets the number I stands at byte 4 I; otherwise packet I begins with its
%% number.
messages(raw, N) ->
    cut(<< <<I:32>> || I <- lists:seq(0, N) >>);
messages(line, N) ->
    [[integer_to_list(I), lists:duplicate(storm:random(60), $x), $\n] || I <- lists:seq(0, N)];
messages(Length, N) ->
    Most = case Length of 1 -> 240; _ -> 1000 end,
    [<<I:32, (binary:copy(<<I>>, storm:random(Most)))/binary>> || I <- lists:seq(0, N div 4)].

cut(<<>>) -> [];
cut(B) ->
    K = min(byte_size(B), 1 + storm:random(40)),
    <<X:K/binary, R/binary>> = B,
    [X | cut(R)].

send(_, []) -> ok;
send(S, [M | Rest]) ->
    case storm:random(12) of
        0 -> receive after 1 -> ok end;
        X when X < 6 -> erlang:yield();
        _ -> ok
    end,
    ok = gen_tcp:send(S, M),
    send(S, Rest).

%% One step after the other: what is set, what comes. `at` is the next byte, or the next packet.
%% `left`: where the last bytes before the end are fewer than a recv has asked for in vain, they may
%% go with the connection, as they do in stock.
receiver(S, #{mode := false} = M) ->
    case storm:random(10) of
        X when X < 5 -> recv(S, M);
        X when X < 6 -> active(S, M, once);
        X when X < 7 -> active(S, M, true);
        X when X < 8 -> active(S, M, 1 + storm:random(5));
        X when X < 9 -> storm:wait(1), receiver(S, M);
        _ -> give(S, M)
    end;
receiver(S, #{mode := Mode} = M) ->
    case storm:random(8) of
        0 -> passive(S, M);
        1 when Mode =:= true -> give(S, M);
        2 when Mode =:= true ->
            %% Who knows whether what comes now was sent before that?
            _ = inet:setopts(S, [{active, once}]),
            storm:wait(1),
            passive(S, noted(M, {active, once}));
        3 when Mode =:= once -> active(S, M, true);
        4 -> storm:wait(1), receiver(S, M);
        _ -> take(S, M, storm:choice([0, 1, ?LATE]))
    end.

noted(#{steps := L} = M, What) -> M#{steps := lists:sublist([What | L], 8)}.

active(S, M, Mode) ->
    case inet:setopts(S, [{active, Mode}]) of
        ok -> receiver(S, noted(M#{mode := Mode}, {active, Mode}));
        %% It was closed by the other side.
        {error, _} -> ended(S, drain(S, M))
    end.

passive(S, M0) ->
    R = inet:setopts(S, [{active, false}]),
    M = drain(S, noted(M0, {active, false})),
    case {M, R} of
        {#{closed := true}, _} -> ended(S, M);
        {_, ok} -> receiver(S, M#{mode := false});
        {_, {error, _}} -> ended(S, M)
    end.

%% What came before the socket became passive.
drain(S, M) ->
    receive
        {tcp, S, D} -> drain(S, data(D, M));
        {tcp_passive, S} -> drain(S, M);
        {tcp_closed, S} -> M#{closed => true};
        {tcp_error, S, E} -> wrong("tcp_error ~0p", [E], M)
    after 0 -> M
    end.

take(S, #{mode := Mode} = M, Wait) ->
    receive
        {tcp, S, D} ->
            M1 = noted(data(D, M), {got, byte_size(D)}),
            case Mode of
                once ->
                    receive {tcp, S, _} -> wrong("two messages of {active, once}", [], M1) after 0 -> ok end,
                    receiver(S, M1#{mode := false});
                true -> receiver(S, M1);
                0 -> wrong("a message behind {tcp_passive, Socket}, or without it", [], M1);
                N -> receiver(S, M1#{mode := N - 1})
            end;
        {tcp_passive, S} when Mode =:= 0 -> receiver(S, M#{mode := false});
        {tcp_passive, S} -> wrong("{tcp_passive, Socket} while ~p are to come", [Mode], M);
        {tcp_closed, S} -> ended(S, M#{closed => true});
        {tcp_error, S, E} -> wrong("tcp_error ~0p", [E], M)
    after Wait ->
        case Wait =:= ?LATE of
            true -> wrong("nothing comes", [], M);
            false -> receiver(S, M)
        end
    end.

recv(S, #{packet := Packet} = M0) ->
    Length = case Packet of raw -> storm:choice([0, 0, 1, 4, storm:random(100)]); _ -> 0 end,
    Late = ?LATE,
    Time = storm:choice([0, 0, 1, 1, 2, 5, Late]),
    M = noted(M0, {recv, Length, Time}),
    T0 = storm:milliseconds(),
    R = gen_tcp:recv(S, Length, Time),
    Passed = storm:milliseconds() - T0,
    storm:check(Passed =< Time + ?LATE, "recv for ~p ms took ~p", [Time, Passed]),
    case R of
        {ok, D} ->
            storm:check(Length =:= 0 orelse byte_size(D) =:= Length, "recv of ~p bytes gives ~p", [Length, byte_size(D)]),
            receiver(S, noted(data(D, M), {got, byte_size(D)}));
        {error, timeout} when Time < Late ->
            receiver(S, M#{left := max(Length, maps:get(left, M))});
        {error, timeout} ->
            wrong("nothing is received", [], M);
        {error, closed} ->
            ended(S, M#{left := max(Length, maps:get(left, M))})
    end.

%% Another process goes on. The socket is passive then: what comes to an active one may go to its
%% old owner, in some releases. What has come by now goes to the new one.
give(S, #{owners := N} = M) when N >= 6 -> recv_or_take(S, M);
give(S, #{mode := true} = M) ->
    case inet:setopts(S, [{active, false}]) of
        ok -> give(S, noted(M#{mode := false}, {active, false}));
        {error, _} -> ended(S, drain(S, M))
    end;
give(S, #{owners := N} = M) ->
    {P, Ref} = spawn_monitor(fun() -> receive {go, M1} -> exit({returned, goes_on(S, drain(S, M1))}) end end),
    case gen_tcp:controlling_process(S, P) of
        ok -> ok;
        {error, E} -> storm:check(lists:member(E, [closed, einval, badarg]), "controlling_process: ~0p", [E])
    end,
    receive
        {tcp, S, D} -> storm:fault("the old owner gets ~0P: ~0p", [D, 10, M]);
        {tcp_closed, S} -> storm:fault("the old owner gets tcp_closed: ~0p", [M])
    after 0 -> ok
    end,
    P ! {go, noted(M#{owners := N + 1}, owner)},
    receive {'DOWN', Ref, process, P, {returned, X}} -> X;
            {'DOWN', Ref, process, P, Why} -> exit(Why)
    end.

goes_on(S, #{closed := true} = M) -> ended(S, M);
goes_on(S, M) -> receiver(S, M).

recv_or_take(S, #{mode := false} = M) -> recv(S, M);
recv_or_take(S, M) -> take(S, M, 1).

%% The stream has ended; what had come before it.
ended(S, M0) ->
    #{at := At, rest := Rest, total := Total, packet := Packet} = M = drain(S, M0),
    gen_tcp:close(S),
    receive {tcp_closed, S} -> (maps:is_key(closed, M0) andalso storm:fault("tcp_closed came twice: ~0p", [M])) after 0 -> ok end,
    case Packet of
        raw ->
            Left = maps:get(left, M),
            case At + byte_size(Rest) of
                Total -> Total;
                E when Left > 0, E > Total - Left -> Total;
                E -> storm:fault("the end of a stream at ~p of ~p: ~0p", [E, Total, maps:remove(rest, M)]), E
            end;
        _ ->
            storm:check(At =:= Total, "the end of a stream at packet ~p of ~p: ~0p", [At, Total, M]),
            At
    end.

data(D, #{packet := raw, at := At, rest := R} = M) -> raw(<<R/binary, D/binary>>, At, M#{left => 0});
data(D, #{packet := line, at := At} = M) ->
    Size = byte_size(D) - 1,
    case D of
        <<L:Size/binary, $\n>> ->
            case string:trim(L, trailing, "x") =:= integer_to_binary(At) of
                true -> M#{at := At + 1};
                false -> wrong("line ~0p in place of ~p", [D, At], M)
            end;
        _ -> wrong("a line without end ~0p at ~p", [D, At], M)
    end;
data(<<I:32, R/binary>>, #{at := At} = M) ->
    case I =:= At andalso R =:= binary:copy(<<I>>, byte_size(R)) of
        true -> M#{at := At + 1};
        false -> wrong("packet ~0P in place of ~p", [<<I:32, R/binary>>, 30, At], M)
    end.

raw(<<I:32, R/binary>>, At, M) ->
    case I * 4 =:= At of
        true -> raw(R, At + 4, M);
        false -> wrong("~p in place of ~p", [I, At div 4], M)
    end;
raw(R, At, M) -> M#{at := At, rest := R}.

-spec wrong(string(), list(), map()) -> no_return().
wrong(Format, Arguments, M) ->
    storm:fault(Format ++ " in a stream: ~0p", Arguments ++ [M]),
    exit(wrong).

%% ---- datagrams ----

%% So many are under way at once, which the system's buffers have room for.
-define(WINDOW, 8).

datagrams() ->
    Family = storm:choice([inet, inet6, local]),
    case open(Family) of
        {ok, S, To} ->
            case open(Family) of
                {ok, C, {Mine, _}} ->
                    Me = self(),
                    {Sender, M} = spawn_monitor(fun() -> datagrams_out(C, To, Me, 0, 20 + storm:random(20)) end),
                    ok = gen_udp:controlling_process(C, Sender),
                    Sender ! go,
                    datagrams_in(S, Sender, #{at => 0, mode => false, owners => 0, what => Family, steps => []}),
                    receive {'DOWN', M, process, Sender, Why} -> storm:check(Why =:= normal, "who sends datagrams ended by ~0p", [Why]) end,
                    remove(Mine);
                {error, E} -> storm:fault("open: ~0p", [E])
            end,
            remove(element(1, To));
        {error, eafnosupport} -> ok;
        {error, eaddrnotavail} -> ok
    end.

remove({local, Name}) -> file:delete(Name);
remove(_) -> ok.

open(Family) ->
    {Options, Address} = address(Family),
    case gen_udp:open(0, backend() ++ [kind(Family), {active, false} | Options]) of
        {ok, S} when Family =:= local -> {ok, S, {Address, 0}};
        {ok, S} -> {ok, Port} = inet:port(S), {ok, S, {Address, Port}};
        Error -> Error
    end.

datagrams_out(C, To, Receiver, At, Rounds) ->
    receive go -> ok after ?LATE -> exit(no_go) end,
    case Rounds of
        0 -> Receiver ! {batch, self(), 0}, gen_udp:close(C);
        _ ->
            K = 1 + storm:random(?WINDOW),
            Receiver ! {batch, self(), K},
            [begin
                 storm:chance(4) andalso storm:wait(1),
                 ok = gen_udp:send(C, element(1, To), element(2, To), [<<I:32>>, binary:copy(<<I>>, storm:random(700))])
             end || I <- lists:seq(At, At + K - 1)],
            datagrams_out(C, To, Receiver, At + K, Rounds - 1)
    end.

datagrams_in(S, Sender, M) ->
    case receive {batch, Sender, K0} -> K0 after ?LATE -> storm:fault("who sends datagrams hangs: ~0p", [process_info(Sender, current_stacktrace)]), 0 end of
        0 ->
            gen_udp:close(S),
            maps:get(at, M);
        K ->
            M1 = batch(S, M#{left => K}),
            %% In some releases datagrams that come as an active socket changes its owner go to the
            %% old one.
            Gives = storm:chance(5) andalso maps:get(mode, M1) =:= false,
            Sender ! go,
            case Gives of
                true -> datagram_owner(S, Sender, M1);
                false -> datagrams_in(S, Sender, M1)
            end
    end.

%% Another process owns the socket for the rest; batches go through this one.
datagram_owner(S, Sender, #{owners := N} = M) when N >= 4 -> datagrams_in(S, Sender, M);
datagram_owner(S, Sender, #{owners := N} = M) ->
    {P, Ref} = spawn_monitor(fun() -> receive go -> exit({returned, datagrams_in(S, Sender, M#{owners := N + 1})}) end end),
    ok = gen_udp:controlling_process(S, P),
    receive {udp, S, _, _, _} -> storm:fault("the old owner gets a datagram", []) after 0 -> ok end,
    P ! go,
    pass(P, Ref).

pass(P, Ref) ->
    receive
        {batch, _, _} = B -> P ! B, pass(P, Ref);
        {'DOWN', Ref, process, P, {returned, V}} -> V;
        {'DOWN', Ref, process, P, Why} -> exit(Why)
    end.

batch(_, #{left := 0} = M) -> M;
batch(S, #{mode := false} = M) ->
    case storm:random(8) of
        X when X < 4 ->
            Late = ?LATE,
            Time = storm:choice([0, 1, 2, Late]),
            case gen_udp:recv(S, 0, Time) of
                {ok, {_, _, D}} -> batch(S, datagram(D, M));
                {error, timeout} when Time < Late -> batch(S, M);
                Error -> storm:fault("datagrams: ~0p, ~0p", [Error, M]), exit(wrong)
            end;
        4 -> set(S, once, M);
        5 -> set(S, true, M);
        6 -> set(S, 1 + storm:random(4), M);
        7 -> storm:wait(1), batch(S, M)
    end;
batch(S, #{mode := Mode} = M) ->
    case storm:random(6) of
        0 ->
            ok = inet:setopts(S, [{active, false}]),
            batch(S, (datagrams_there(S, M))#{mode := false});
        1 -> storm:wait(1), batch(S, M);
        _ ->
            receive
                {udp, S, _, _, D} ->
                    batch(S, datagram(D, M#{mode := case Mode of once -> false; true -> true; 0 -> storm:fault("a datagram behind udp_passive", []), 0; N -> N - 1 end}));
                {udp_passive, S} ->
                    storm:check(Mode =:= 0, "udp_passive while ~p are to come", [Mode]),
                    batch(S, M#{mode := false})
            after ?LATE ->
                storm:fault("no datagram comes: ~0p", [M]), exit(wrong)
            end
    end.

set(S, Mode, M) ->
    ok = inet:setopts(S, [{active, Mode}]),
    batch(S, M#{mode := Mode, steps := lists:sublist([Mode | maps:get(steps, M)], 8)}).

datagrams_there(S, M) ->
    receive
        {udp, S, _, _, D} -> datagrams_there(S, datagram(D, M));
        {udp_passive, S} -> datagrams_there(S, M)
    after 0 -> M
    end.

datagram(L, M) when is_list(L) -> datagram(list_to_binary(L), M);
datagram(<<I:32, R/binary>>, #{at := At, left := Left} = M) ->
    case I =:= At andalso R =:= binary:copy(<<I>>, byte_size(R)) of
        true -> M#{at := At + 1, left := Left - 1};
        false -> storm:fault("datagram ~p in place of ~p: ~0p", [I, At, M]), exit(wrong)
    end.

%% ---- connections ----

%% Several accept, with and without a limit of time: each connection is accepted by one.
accepts() ->
    {L, Where} = listen(storm:choice([inet, local]), 4, backend(4)),
    N = 15,
    Me = self(),
    Acceptors = [spawn_monitor(fun() -> exit({returned, acceptor(L, Me, [])}) end) || _ <- [1, 2, 3]],
    Clients = [spawn_monitor(fun() ->
        storm:wait(3),
        {Port, Address, _} = Where,
        {ok, S} = gen_tcp:connect(Address, Port, backend(4) ++ [binary, {active, false}, {packet, 4} | family(Address)], ?LATE),
        ok = gen_tcp:send(S, <<I:32>>),
        case gen_tcp:recv(S, 0, ?LATE) of
            {ok, <<I:32>>} -> ok;
            Error -> storm:fault("a connection that was made is not served: ~0p", [Error])
        end,
        gen_tcp:close(S)
    end) || I <- lists:seq(1, N)],
    [receive {'DOWN', M, process, P, Why} -> storm:check(Why =:= normal, "who connects ended by ~0p", [Why]) end || {P, M} <- Clients],
    gen_tcp:close(L),
    Got = [receive {'DOWN', M, process, P, {returned, Is}} -> Is; {'DOWN', M, process, P, Why} -> exit(Why) after ?LATE -> storm:fault("accept does not end when its socket is closed", []), [] end || {P, M} <- Acceptors],
    storm:check(lists:sort(lists:append(Got)) =:= lists:seq(1, N), "connections were accepted: ~0p", [Got]),
    case Where of {_, {local, Name}, _} -> file:delete(Name); _ -> ok end.

acceptor(L, Me, Is) ->
    case gen_tcp:accept(L, storm:choice([0, 1, 3, ?LATE])) of
        {ok, S} ->
            {ok, <<I:32>>} = gen_tcp:recv(S, 0, ?LATE),
            ok = gen_tcp:send(S, <<I:32>>),
            gen_tcp:recv(S, 0, ?LATE),
            gen_tcp:close(S),
            acceptor(L, Me, [I | Is]);
        {error, timeout} -> acceptor(L, Me, Is);
        {error, closed} -> Is;
        {error, einval} -> Is
    end.

%% Closed, or its owner killed, while somebody receives: that ends at once, by an error.
closes() ->
    [begin
         {L, {Port, Address, _}} = listen(inet, raw, backend()),
         {ok, C} = gen_tcp:connect(Address, Port, backend() ++ [binary, {active, false}], ?LATE),
         {ok, S} = gen_tcp:accept(L, ?LATE),
         Me = self(),
         {Owner, M0} = spawn_monitor(fun() -> receive owned -> Me ! owned end, receive go -> gen_tcp:close(S) end end),
         ok = gen_tcp:controlling_process(S, Owner),
         Owner ! owned,
         receive owned -> ok end,
         Waiters = [spawn_monitor(fun() -> exit({returned, gen_tcp:recv(S, 10)}) end) || _ <- lists:seq(1, storm:random(3))],
         storm:wait(2),
         case storm:random(3) of
             0 -> Owner ! go;
             1 -> exit(Owner, kill);
             2 -> gen_tcp:close(C), storm:wait(1), exit(Owner, kill)
         end,
         receive {'DOWN', M0, process, Owner, _} -> ok after ?LATE -> storm:fault("an owner does not end", []) end,
         [receive
              {'DOWN', M, process, P, {returned, {error, _}}} -> ok;
              {'DOWN', M, process, P, Why} -> storm:fault("recv of a socket that is closed: ~0p", [Why])
          after ?LATE -> storm:fault("recv hangs though the socket was closed: ~0p", [process_info(P, current_stacktrace)]), exit(P, kill)
          end || {P, M} <- Waiters],
         case gen_tcp:recv(C, 0, ?LATE) of
             {error, E} when E =/= timeout -> ok;
             Other -> storm:fault("the other side of a socket that was closed: ~0p", [Other])
         end,
         gen_tcp:close(C),
         gen_tcp:close(L)
     end || _ <- lists:seq(1, 6)].

%% ---- module socket ----

%% Asynchronous receives, some of which are cancelled.
native() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => {127, 0, 0, 1}, port => 0}),
    ok = socket:listen(L),
    {ok, Address} = socket:sockname(L),
    N = 1000 + storm:random(3000),
    {Sender, M} = spawn_monitor(fun() ->
        {ok, C} = socket:open(inet, stream, tcp),
        ok = socket:connect(C, Address),
        [begin
             storm:chance(6) andalso storm:wait(1),
             ok = socket:send(C, B)
         end || B <- cut(<< <<I:32>> || I <- lists:seq(0, N) >>)],
        ok = socket:close(C)
    end),
    {ok, S} = accept(L),
    Got = native(S, #{packet => raw, at => 0, rest => <<>>, what => socket, steps => [], total => 4 * (N + 1)}),
    storm:check(Got =:= 4 * (N + 1), "module socket: the end of a stream at ~p of ~p", [Got, 4 * (N + 1)]),
    ok = socket:close(S),
    ok = socket:close(L),
    receive {'DOWN', M, process, Sender, Why} -> storm:check(Why =:= normal, "who sends by module socket ended by ~0p", [Why]) after ?LATE -> storm:fault("who sends by module socket hangs", []) end.

accept(L) ->
    case socket:accept(L, storm:choice([nowait, 0, 1, ?LATE])) of
        {ok, S} -> {ok, S};
        {error, timeout} -> accept(L);
        {select, Info} -> selected(L, Info), accept(L)
    end.

%% Waits for the message, or takes the request back; then there is none.
selected(S, {select_info, _, Handle} = Info) ->
    case storm:chance(2) of
        true ->
            receive {'$socket', S, select, Handle} -> ok
            after ?LATE -> storm:fault("no message for a request to be told", []), exit(wrong)
            end;
        false ->
            storm:wait(1),
            case socket:cancel(S, Info) of
                %% In some releases it is on its way all the same.
                ok -> receive {'$socket', S, select, Handle} -> ok after 2 -> ok end;
                {error, _} -> receive {'$socket', S, select, Handle} -> ok after ?LATE -> storm:fault("cancel finds nothing, and no message is there", []) end
            end
    end.

native(S, M) ->
    %% Stock of OTP 27 damages what comes in parts.
    {Length, Time} = storm:choice([{0, nowait}, {0, nowait}, {0, 0}, {0, 1}, {0, ?LATE}]
                                  ++ [{L, T} || release() =/= 27, L <- [1, 7, 64], T <- [0, 1, ?LATE]]),
    case socket:recv(S, Length, [], Time) of
        {ok, D} -> native(S, data(D, M));
        {select, Info} -> selected(S, Info), native(S, M);
        {error, timeout} -> native(S, M);
        {error, {timeout, D}} -> native(S, data(D, M));
        {error, {closed, D}} -> #{at := At, rest := R} = data(D, M), At + byte_size(R);
        {error, closed} -> #{at := At, rest := R} = M, At + byte_size(R)
    end.
