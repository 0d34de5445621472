%% Ports: programs echo what they are sent, whole, once and in order, whoever owns the port; what
%% was closed is silent, and each end of a program is told once.
-module(storm_ports).
-export([round/0]).

-define(LATE, (storm:late(20000))).

round() ->
    storm:run([{packets, 2, fun packets/0}, {stream, 2, fun stream/0}, {lines, 1, fun lines/0}, {several, 1, fun several/0}, {closed, 1, fun closed/0},
               {statuses, 1, fun statuses/0}, {killed, 1, fun killed/0}, {busy, 1, fun busy/0}]).

%% It says nothing when nobody reads any more what it writes.
cat(Options) -> open_port({spawn_executable, "/bin/sh"}, [binary, use_stdio, {args, ["-c", "exec cat 2>/dev/null"]} | Options]).
sh(Script) -> open_port({spawn_executable, "/bin/sh"}, [binary, exit_status, use_stdio, {args, ["-c", Script]}]).

%% Gives a port to the next owner, who goes on where this one was. What this one has got already
%% goes along.
hand_over(Port, F) ->
    Me = self(),
    {P, M} = spawn_monitor(fun() -> receive {go, Old} -> exit({returned, F(Old)}) end end),
    Way = case storm:random(2) of
        0 -> true = port_connect(Port, P);
        1 -> Port ! {Me, {connect, P}}, receive {Port, connected} -> ok after ?LATE -> storm:fault("a port is not connected", []) end
    end,
    P ! {go, old(Port)},
    unlink(Port),
    receive
        {'DOWN', M, process, P, {returned, V}} ->
            receive {Port, What} -> storm:fault("a port's old owner gets ~0P (~p)", [What, 10, Way]) after 0 -> V end;
        {'DOWN', M, process, P, Why} -> exit(Why)
    end.

old(Port) ->
    receive {Port, {data, D}} -> [D | old(Port)]
    after 0 -> []
    end.

next(Port, [D | Old]) -> {D, Port, Old};
next(Port, []) ->
    receive
        {Port, {data, D}} -> {D, Port, []};
        {Port, Other} -> storm:fault("a port says ~0P", [Other, 10]), exit(ended)
    after ?LATE ->
        storm:fault("nothing comes from a port that was sent something: ~0p", [erlang:port_info(Port)]),
        exit(ended)
    end.

close(Port) ->
    catch unlink(Port),
    true = port_close(Port),
    receive {Port, X} -> storm:fault("a port says ~0P that was not asked for", [X, 10]) after 3 -> ok end.

%% Packets with numbers. The port changes its owner from time to time.
packets() ->
    Length = storm:choice([1, 2, 4]),
    Port = cat([{packet, Length}]),
    Most = case Length of 1 -> 240; _ -> 3000 end,
    Packets = [<<I:32, (binary:copy(<<I>>, storm:random(Most)))/binary>> || I <- lists:seq(1, 60)],
    echo(Port, Packets, [], 0, []).

echo(Port, [], [], _, Old) ->
    storm:check(Old =:= [], "packets too many: ~0P", [Old, 10]),
    close(Port);
echo(Port, Send, Wait, N, Old) ->
    case storm:random(12) of
        0 when N < 6 -> hand_over(Port, fun(O) -> echo(Port, Send, Wait, N + 1, Old ++ O) end);
        1 -> storm:wait(1), echo(Port, Send, Wait, N, Old);
        X when X < 7, Send =/= [] ->
            [P | Rest] = Send,
            case storm:chance(2) of
                true -> true = port_command(Port, P);
                false -> Port ! {self(), {command, [P]}}
            end,
            echo(Port, Rest, Wait ++ [P], N, Old);
        _ when Wait =/= [] ->
            {D, _, More} = next(Port, Old),
            case Wait of
                [D | Rest] -> echo(Port, Send, Rest, N, More);
                [<<I:32, _/binary>> | _] ->
                    storm:fault("packet ~p was expected, and ~0P came", [I, D, 10]),
                    exit(ended)
            end;
        _ -> echo(Port, Send, Wait, N, Old)
    end.

%% Bytes: a counter.
stream() ->
    Port = cat([stream]),
    Total = 4 * (2000 + storm:random(20000)),
    bytes(Port, 0, 0, Total, <<>>, 0, []).

bytes(Port, _, Got, Total, Rest, _, Old) when Got =:= Total ->
    storm:check(Rest =:= <<>> andalso Old =:= [], "bytes too many", []),
    close(Port);
bytes(Port, Sent, Got, Total, Rest, N, Old) ->
    case storm:random(10) of
        0 when N < 6 -> hand_over(Port, fun(O) -> bytes(Port, Sent, Got, Total, Rest, N + 1, Old ++ O) end);
        X when X < 5, Sent < Total ->
            K = min(4 * (1 + storm:random(3000)), Total - Sent),
            true = port_command(Port, << <<I:32>> || I <- lists:seq(Sent div 4, (Sent + K) div 4 - 1) >>),
            bytes(Port, Sent + K, Got, Total, Rest, N, Old);
        _ when Sent > Got ->
            {D, _, More} = next(Port, Old),
            {NewGot, NewRest} = numbers(<<Rest/binary, D/binary>>, Got - byte_size(Rest)),
            bytes(Port, Sent, NewGot, Total, NewRest, N, More);
        _ -> bytes(Port, Sent, Got, Total, Rest, N, Old)
    end.

%% Checks the numbers from that place on; the place behind all that has come, and what is no whole
%% number.
numbers(<<I:32, R/binary>>, At) ->
    case I =:= At div 4 of
        true -> numbers(R, At + 4);
        false -> storm:fault("at byte ~p of a stream from a port there is ~p in place of ~p", [At, I, At div 4]), exit(ended)
    end;
numbers(R, At) -> {At + byte_size(R), R}.

%% Lines, some longer than the port takes at once.
lines() ->
    Port = cat([{line, 50}]),
    Ls = [list_to_binary([integer_to_list(I), lists:duplicate(storm:random(120), $x)]) || I <- lists:seq(1, 50)],
    [begin true = port_command(Port, [L, $\n]), storm:chance(10) andalso storm:wait(1) end || L <- Ls],
    [begin
         Got = line(Port, []),
         storm:check(Got =:= L, "a line from a port is ~0p, not ~0p", [Got, L])
     end || L <- Ls],
    close(Port).

line(Port, Parts) ->
    case next(Port, []) of
        {{noeol, B}, _, _} -> line(Port, [Parts, B]);
        {{eol, B}, _, _} -> iolist_to_binary([Parts, B])
    end.

%% Several send to one port; what each has sent comes back in its order.
several() ->
    Port = cat([{packet, 4}]),
    {Sender, M} = spawn_monitor(fun() ->
        storm:all(
            fun(W) ->
                [begin
                     storm:chance(8) andalso storm:wait(1),
                     true = port_command(Port, <<W, I:32, (binary:copy(<<W>>, storm:random(2000)))/binary>>)
                 end || I <- lists:seq(1, 40)]
            end, [1, 2, 3, 4]),
        exit(sent)
    end),
    Got = [begin {<<W, I:32, _/binary>>, _, _} = next(Port, []), {W, I} end || _ <- lists:seq(1, 160)],
    [storm:check([I || {X, I} <- Got, X =:= W] =:= lists:seq(1, 40), "what one of several has sent to a port changed its order", []) || W <- [1, 2, 3, 4]],
    receive {'DOWN', M, process, Sender, sent} -> ok after ?LATE -> storm:fault("who sends to a port hangs", []) end,
    close(Port).

%% Closed while data are under way: nothing comes after that, and `close` is answered once.
closed() ->
    [begin
         Port = cat([{packet, 2}]),
         [true = port_command(Port, <<I:32>>) || I <- lists:seq(1, 1 + storm:random(30))],
         storm:wait(1),
         case storm:random(3) of
             0 ->
                 unlink(Port),
                 true = port_close(Port),
                 flush(Port),
                 receive {Port, X} -> storm:fault("~0p came after port_close", [X]) after 5 -> ok end;
             1 ->
                 Port ! {self(), close},
                 receive {Port, closed} -> ok after ?LATE -> storm:fault("close is not answered", []) end,
                 flush(Port),
                 receive {Port, X} -> storm:fault("~0p came after closed", [X]) after 5 -> ok end;
             2 ->
                 %% The owner ends, and the port with it.
                 M = monitor(port, Port),
                 {P, M1} = spawn_monitor(fun() -> receive go -> ok end, storm:wait(1), exit(kill_it) end),
                 true = port_connect(Port, P),
                 unlink(Port),
                 P ! go,
                 receive {'DOWN', M1, process, P, _} -> ok after ?LATE -> storm:fault("an owner does not end", []) end,
                 receive {'DOWN', M, port, Port, _} -> ok after ?LATE -> storm:fault("a port outlives its owner", []) end,
                 flush(Port)
         end,
         storm:check(erlang:port_info(Port) =:= undefined, "a port is there after it was closed", [])
     end || _ <- lists:seq(1, 8)].

flush(Port) ->
    receive {Port, {data, _}} -> flush(Port)
    after 0 -> ok
    end.

%% Programs that end by themselves: all that they have written comes, and their status, once.
statuses() ->
    [begin
         S = storm:random(4),
         N = storm:random(20000),
         Port = sh("head -c " ++ integer_to_list(N) ++ " /dev/zero; exit " ++ integer_to_list(S)),
         {Bytes, Statuses} = till_status(Port, 0, []),
         storm:check({Bytes, Statuses} =:= {N, [S]}, "a program wrote ~p bytes and ended by ~p; told were ~p and ~p", [N, S, Bytes, Statuses]),
         storm:check(gone(Port, ?LATE), "the port of a program that has ended is there", [])
     end || _ <- lists:seq(1, 6)].

till_status(Port, N, S) ->
    receive
        {Port, {data, D}} -> till_status(Port, N + byte_size(D), S);
        {Port, {exit_status, X}} -> till_status(Port, N, [X | S]);
        {Port, Other} -> storm:fault("a port says ~0p", [Other]), till_status(Port, N, S)
    after case S of [] -> ?LATE; _ -> 20 end -> {N, S}
    end.

gone(Port, Left) ->
    case erlang:port_info(Port) of
        undefined -> true;
        _ when Left < 0 -> false;
        _ -> receive after 5 -> ok end, gone(Port, Left - 5)
    end.

%% Programs that are killed from outside.
killed() ->
    [begin
         Port = sh("echo a; exec cat"),
         receive {Port, {data, <<"a\n">>}} -> ok after ?LATE -> storm:fault("a program says nothing", []) end,
         {os_pid, Pid} = erlang:port_info(Port, os_pid),
         storm:chance(2) andalso port_command(Port, <<"b">>),
         Killer = sh("kill -9 " ++ integer_to_list(Pid)),
         {_, [0]} = till_status(Killer, 0, []),
         {Bytes, Statuses} = till_status(Port, 0, []),
         storm:check(Statuses =:= [137] andalso Bytes =< 1, "a program was killed; told were ~p bytes and status ~p", [Bytes, Statuses]),
         storm:check(gone(Port, ?LATE), "the port of a program that was killed is there", [])
     end || _ <- lists:seq(1, 4)].

%% A program that does not read for a while: who sends waits, or hears that the port is busy, or
%% sends all the same.
busy() ->
    Port = open_port({spawn_executable, "/bin/sh"}, [binary, {packet, 4}, use_stdio, {args, ["-c", "sleep 0.1; exec cat 2>/dev/null"]}]),
    Me = self(),
    Senders = [spawn_monitor(fun() ->
        Sent = [I || I <- lists:seq(1, 30), begin storm:chance(5) andalso storm:wait(1), send(Port, <<W, I:32, 0:(8 * 4000)>>) end],
        Me ! {sent, self(), W, Sent}
    end) || W <- [1, 2, 3]],
    Sent = collect(Port, Senders, [], []),
    close(Port),
    Sent.

send(Port, B) ->
    case storm:random(2) of
        0 -> port_command(Port, B, [nosuspend]);
        1 -> port_command(Port, B)
    end.

%% What was sent by now is known when all senders have ended, and comes until then and after.
collect(Port, [], Sent, Got) ->
    Wanted = lists:sort([{W, I} || {W, L} <- Sent, I <- L]),
    case length(Got) < length(Wanted) of
        true ->
            {<<W, I:32, _/binary>>, _, _} = next(Port, []),
            collect(Port, [], Sent, [{W, I} | Got]);
        false ->
            storm:check(lists:sort(Got) =:= Wanted, "a busy port lost ~0p, and sent ~0p too many", [Wanted -- Got, Got -- Wanted]),
            [storm:check([I || {X, I} <- lists:reverse(Got), X =:= W] =:= L, "a busy port changed the order", []) || {W, L} <- Sent]
    end;
collect(Port, [{P, M} | Rest] = Senders, Sent, Got) ->
    receive
        {Port, {data, <<W, I:32, _/binary>>}} -> collect(Port, Senders, Sent, [{W, I} | Got]);
        {sent, P, W, L} ->
            receive {'DOWN', M, process, P, _} -> collect(Port, Rest, [{W, L} | Sent], Got) end
    after ?LATE ->
        storm:fault("who sends to a busy port hangs: ~0p", [process_info(P, [status, current_stacktrace])]),
        exit(P, kill)
    end.
