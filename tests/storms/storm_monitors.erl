%% Monitors and links: each end is told exactly once to each who has asked, with its reason, and to
%% nobody who has withdrawn.
-module(storm_monitors).
-export([round/0]).

-define(LATE, (storm:late(15000))).

round() ->
    storm:run([{watched, 3, fun watched/0}, {linked, 2, fun linked/0}, {aliased, 2, fun aliased/0}, {spawned, 1, fun spawned/0}, {names, 1, fun names/0}]).

%% Watchers of the same processes, which end sooner or later.
watched() ->
    Victims = victims(6),
    storm:all(fun(_) -> watcher(Victims) end, lists:seq(1, 4)),
    [exit(P, kill) || {P, _} <- Victims].

%% Processes with the reasons for which they end.
victims(N) ->
    [begin
         Why = storm:choice([normal, kill, {a, term, [I]}, shutdown]),
         T = storm:random(6),
         P = spawn(fun() -> receive after T -> die(Why) end end),
         Why =:= kill andalso storm:chance(2) andalso exit(P, kill),
         {P, case Why of kill -> killed; _ -> Why end}
     end || I <- lists:seq(1, N)].

die(kill) -> exit(self(), kill), receive after infinity -> ok end;
die(Why) -> exit(Why).

watcher(Victims) ->
    Live = lists:foldl(
        fun(_, Refs) ->
            storm:chance(3) andalso storm:wait(2),
            case storm:random(5) of
                N when N < 3 ->
                    {P, Why} = storm:choice(Victims),
                    {R, Tag} =
                        case storm:random(3) of
                            0 -> {monitor(process, P), 'DOWN'};
                            1 -> {monitor(process, P, []), 'DOWN'};
                            2 -> {monitor(process, P, [{tag, {down, P}}]), {down, P}}
                        end,
                    Refs#{R => {P, Why, Tag}};
                3 when map_size(Refs) > 0 ->
                    R = storm:choice(maps:keys(Refs)),
                    withdraw(R, maps:get(R, Refs)),
                    maps:remove(R, Refs);
                _ when map_size(Refs) > 0 ->
                    R = storm:choice(maps:keys(Refs)),
                    case down(R, maps:get(R, Refs), 0) of
                        true -> maps:remove(R, Refs);
                        false -> Refs
                    end;
                _ -> Refs
            end
        end, #{}, lists:seq(1, 60)),
    maps:foreach(fun(R, V) -> down(R, V, ?LATE) orelse storm:fault("a process ended, and a watcher is not told: ~0p", [V]) end, Live),
    over("watcher").

over(Who) ->
    receive after 10 -> ok end,
    case storm:flush() of
        [] -> ok;
        More -> storm:fault("~s: more than was asked for, or twice: ~0p", [Who, More])
    end.

down(R, {P, Why, Tag}, Wait) ->
    receive
        {Tag, R, process, P, Why} -> true;
        {Tag, R, process, P, noproc} -> true;
        {_, R, _, _, _} = Other -> storm:fault("~0p came for ~0p", [Other, {Tag, R, process, P, Why}]), true
    after Wait -> false
    end.

withdraw(R, {_, _, _} = V) ->
    case storm:random(4) of
        0 ->
            true = demonitor(R, [flush]),
            down(R, V, 0) andalso storm:fault("told after demonitor with flush: ~0p", [V]);
        1 ->
            case demonitor(R, [info, flush]) of
                true -> ok;
                false -> ok
            end,
            down(R, V, 0) andalso storm:fault("told after demonitor with flush: ~0p", [V]);
        2 ->
            %% It says whether it was there: if not, the message is.
            case {demonitor(R, [info]), down(R, V, 0)} of
                {true, false} -> ok;
                {false, true} -> ok;
                Other -> storm:fault("demonitor with info, and whether there was a message: ~0p", [Other])
            end;
        3 ->
            true = demonitor(R),
            _ = down(R, V, 0)
    end.

%% Links go both ways, and break once.
linked() ->
    Me = self(),
    process_flag(trap_exit, true),
    [begin
         Why = storm:choice([normal, kill, {reason, I}]),
         Told = case Why of kill -> killed; _ -> Why end,
         P = case storm:chance(2) of
                 true -> spawn_link(fun() -> other_side(Me) end);
                 false ->
                     Q = spawn(fun() -> other_side(Me) end),
                     link(Q),
                     Q
             end,
         receive {traps, P} -> ok end,
         [storm:chance(3) andalso link(P) || _ <- [1, 2]],
         case storm:random(4) of
             0 ->
                 P ! {die, Why},
                 receive {'EXIT', P, Told} -> ok
                 after ?LATE -> storm:fault("no exit signal of a link: ~0p", [{Why, storm:flush()}])
                 end;
             1 ->
                 P ! {die, Why},
                 storm:chance(2) andalso storm:wait(1),
                 unlink(P),
                 receive {'EXIT', P, _} -> ok after 0 -> ok end;
             2 ->
                 %% The other side hears of the end of this one's proxy.
                 {Proxy, M} = spawn_monitor(fun() -> link(P), exit({broken, I}) end),
                 receive {'DOWN', M, process, Proxy, _} -> ok end,
                 P ! {told, Me, Proxy},
                 receive
                     {told, P, [{broken, I}]} -> ok;
                     {told, P, Other} -> storm:fault("the other side of a link was told ~0p", [Other])
                 after ?LATE -> storm:fault("the other side of a link does not answer", [])
                 end,
                 unlink(P),
                 exit(P, kill);
             3 ->
                 %% Links and unlinks in turn while it ends.
                 P ! {die, Why},
                 catch [begin unlink(P), receive {'EXIT', P, _} -> ok after 0 -> ok end, link(P) end || _ <- lists:seq(1, 5)],
                 receive {'EXIT', P, _} -> ok
                 after ?LATE -> storm:fault("a link that was made again and again is told nothing", [])
                 end
         end,
         receive {'EXIT', P, Again} -> storm:fault("told after unlink, or twice: ~0p", [Again]) after 0 -> ok end
     end || I <- lists:seq(1, 25)],
    receive after 10 -> ok end,
    case [M || {'EXIT', _, _} = M <- storm:flush()] of
        [] -> ok;
        More -> storm:fault("exit signals of links that were broken or taken away: ~0p", [More])
    end,
    process_flag(trap_exit, false).

other_side(Me) ->
    process_flag(trap_exit, true),
    M = monitor(process, Me),
    Me ! {traps, self()},
    other_side(Me, M, []).
other_side(Me, M, Exits) ->
    receive
        {die, Why} -> die(Why);
        {told, Me, Proxy} ->
            %% The signal was sent before the proxy's end was told, but to another process.
            Got = receive {'EXIT', Proxy, Why} -> [Why] after ?LATE -> [] end,
            receive after 2 -> ok end,
            Twice = receive {'EXIT', Proxy, Why1} -> [Why1] after 0 -> [] end,
            Me ! {told, self(), [W || {P, W} <- Exits, P =:= Proxy] ++ Got ++ Twice},
            other_side(Me, M, Exits);
        {'DOWN', M, process, Me, _} -> ok
    end.

%% Aliases: messages come while they are active, and not after.
aliased() ->
    Me = self(),
    Server = spawn(fun() -> M = monitor(process, Me), server(M) end),
    [begin
         Mode = storm:choice([explicit_unalias, demonitor, reply_demonitor]),
         A = monitor(process, Server, [{alias, Mode}]),
         case storm:random(5) of
             0 ->
                 Server ! {answer, A, 1},
                 receive {A, 1} -> ok after ?LATE -> storm:fault("no answer by an alias of ~p", [Mode]) end,
                 storm:check(demonitor(A, [info]) =:= (Mode =/= reply_demonitor), "the monitor of an alias of ~p", [Mode]),
                 unalias(A);
             1 ->
                 Server ! {answer, A, 2},
                 receive {A, 1} -> ok after ?LATE -> storm:fault("no first answer by an alias of ~p", [Mode]) end,
                 %% The second answer: only if the alias is there still.
                 Server ! {ping, Me},
                 receive pong -> ok end,
                 Second = receive {A, 2} -> true after 0 -> false end,
                 storm:check(Second =:= (Mode =/= reply_demonitor), "a second answer by an alias of ~p: ~p", [Mode, Second]),
                 demonitor(A, [flush]), unalias(A);
             2 ->
                 %% Gone before anybody answers.
                 case Mode of explicit_unalias -> unalias(A); _ -> demonitor(A, [flush]) end,
                 Server ! {answer, A, 1},
                 Server ! {ping, Me},
                 receive pong -> ok end,
                 receive {A, _} -> storm:fault("an answer by an alias of ~p that was taken away", [Mode]) after 0 -> ok end,
                 demonitor(A, [flush]);
             3 ->
                 %% In a race.
                 Server ! {answer, A, 1},
                 storm:chance(2) andalso storm:wait(1),
                 case unalias(A) of
                     true -> ok;
                     false -> storm:check(Mode =:= reply_demonitor, "unalias finds no alias of ~p", [Mode])
                 end,
                 receive {A, 1} -> ok after 0 -> ok end,
                 Server ! {ping, Me},
                 receive pong -> ok end,
                 receive {A, _} -> storm:fault("an answer after unalias (~p)", [Mode]) after 0 -> ok end,
                 demonitor(A, [flush]);
             4 ->
                 B = alias([reply]),
                 Server ! {answer, B, 2},
                 Server ! {ping, Me},
                 receive pong -> ok end,
                 storm:check(lists:sort([X || {C, X} <- messages(), C =:= B]) =:= [1], "answers by an alias for one reply", []),
                 receive {B, _} -> ok after 0 -> ok end,
                 demonitor(A, [flush]), unalias(A)
         end
     end || _ <- lists:seq(1, 30)],
    exit(Server, kill),
    over("aliases").

messages() -> element(2, process_info(self(), messages)).

server(M) ->
    receive
        {answer, A, N} -> [A ! {A, I} || I <- lists:seq(1, N)], server(M);
        {ping, P} -> P ! pong, server(M);
        {'DOWN', M, process, _, _} -> ok
    end.

%% Processes that are monitored from their first moment on.
spawned() ->
    All = [begin
               Why = storm:choice([normal, {w, I}, I]),
               case storm:random(3) of
                   0 -> {P, R} = spawn_monitor(fun() -> exit(Why) end), {R, {P, Why, 'DOWN'}};
                   1 -> {P, R} = spawn_opt(fun() -> exit(Why) end, [{monitor, [{tag, {t, I}}]}]), {R, {P, Why, {t, I}}};
                   2 ->
                       Q = spawn_request(fun() -> exit(Why) end, [{reply_tag, {r, I}}, monitor]),
                       receive {{r, I}, Q, ok, P} -> {Q, {P, Why, 'DOWN'}}
                       after ?LATE -> storm:fault("no reply of spawn_request", []), {Q, none}
                       end
               end
           end || I <- lists:seq(1, 40)],
    [receive
         {Tag, R, process, P, Why} -> ok
     after ?LATE -> storm:fault("a process that was made with a monitor is not told of: ~0p", [V])
     end || {R, {P, Why, Tag} = V} <- All],
    over("spawn_monitor").

%% Monitors by name.
names() ->
    Name = list_to_atom("storm_watched_" ++ integer_to_list(storm:random(1000000))),
    [begin
         P = spawn(fun() -> catch register(Name, self()), receive {go, Why} -> exit(Why) end end),
         storm:chance(2) andalso storm:wait(1),
         Refs = [monitor(process, Name) || _ <- [1, 2, 3]],
         P ! {go, {n, I}},
         [receive
              {'DOWN', R, process, {Name, _}, {n, I}} -> ok;
              {'DOWN', R, process, {Name, _}, noproc} -> ok;
              {'DOWN', R, _, _, _} = Other -> storm:fault("a monitor by name is told ~0p", [Other])
          after ?LATE -> storm:fault("a monitor by name is not told", [])
          end || R <- Refs],
         M = monitor(process, P),
         receive {'DOWN', M, _, _, _} -> ok end,
         storm:check(whereis(Name) =/= P, "a process that has ended has a name", [])
     end || I <- lists:seq(1, 25)],
    over("monitors by name").
