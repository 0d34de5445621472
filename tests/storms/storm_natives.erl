%% Processes in long natives, which others kill, suspend, look at and collect meanwhile: who
%% survives has the right result, who is killed ends, and each request is answered once.
-module(storm_natives).
-export([round/0]).

-define(LATE, (storm:late(30000))).

round() ->
    Works = works(),
    storm:run([{victim, 4, fun() -> victim(Works) end}, {killed, 2, fun() -> killed(Works) end}, {suspended, 1, fun suspended/0}, {held, 1, fun held/0}]).

%% Long natives, each with what it must give.
works() ->
    N = 1 + storm:random(3),
    Bin = binary:copy(<<"abcdefghijklmnopqrstuvwxyz,">>, 1500 * N),
    List = lists:seq(1, 20000 * N),
    Map = maps:from_list([{I, I} || I <- lists:seq(1, 3000 * N)]),
    Big = 1 bsl (20000 * N) + 12345,
    Subject = binary:copy(<<"a">>, 22 + storm:random(2)),
    Fs = [fun() -> byte_size(term_to_binary(Bin, [{compressed, 9}])) end,
          fun() -> erlang:phash2(binary_to_term(term_to_binary(List, [compressed]))) end,
          fun() -> length(binary:split(Bin, <<",">>, [global])) end,
          fun() -> length(binary:matches(Bin, [<<"xyz">>, <<"mno">>, <<"q">>])) end,
          fun() -> re:run(Subject, <<"^(a+)+$b">>, [{match_limit, 200000}]) end,
          fun() -> {match, L} = re:run(Bin, <<"[a-z]+">>, [global]), length(L) end,
          fun() -> (Big * Big) rem 1000007 end,
          fun() -> byte_size(integer_to_binary(Big)) end,
          fun() -> erlang:md5(Bin) end,
          fun() -> erlang:crc32(lists:duplicate(20, Bin)) end,
          fun() -> length(lists:reverse(List ++ List)) end,
          fun() -> lists:member(nothing, List) end,
          fun() -> length(List -- lists:reverse(List)) end,
          fun() -> erlang:phash2(unicode:characters_to_list(Bin)) end,
          fun() -> maps:size(maps:merge(Map, maps:from_list([{-I, I} || I <- lists:seq(1, 3000)]))) end,
          fun() -> byte_size(iolist_to_binary(lists:duplicate(50, [Bin, "x"]))) end,
          fun() -> erlang:phash2(List) end,
          fun() -> byte_size(base64:encode(Bin)) end,
          fun() -> length(erlang:binary_to_list(Bin)) end],
    Some = lists:sublist(storm:shuffle(lists:seq(1, length(Fs))), 4),
    [{I, F, catch F()} || I <- Some, F <- [lists:nth(I, Fs)]].

%% Works, while others do to it whatever does no harm.
victim(Works) ->
    {Victim, M} = spawn_monitor(fun() ->
        [begin
             Got = (catch F()),
             storm:check(Got =:= Wanted, "work ~p gives ~0P, not ~0P", [I, Got, 8, Wanted, 8])
         end || _ <- [1, 2], {I, F, Wanted} <- Works],
        %% It takes no message that it was not sent.
        storm:check(storm:flush() =:= [], "somebody who was looked at got messages", []),
        exit(done)
    end),
    ask(Victim, M, 40).

ask(Victim, M, 0) ->
    receive {'DOWN', M, process, Victim, Why} -> storm:check(Why =:= done, "a victim that nobody killed ended: ~0P", [Why, 10])
    after ?LATE -> storm:fault("a victim does not end: ~0p", [process_info(Victim, [current_stacktrace, status])]), exit(Victim, kill)
    end;
ask(Victim, M, N) ->
    storm:wait(2),
    case storm:random(8) of
        0 -> info(process_info(Victim), Victim);
        1 -> info(process_info(Victim, [status, current_stacktrace, total_heap_size, messages, dictionary, registered_name]), Victim);
        2 -> info(process_info(Victim, storm:choice([memory, binary, links, monitors, garbage_collection_info, reductions])), Victim);
        3 -> storm:check(is_boolean(erlang:garbage_collect(Victim)), "garbage_collect", []);
        4 ->
            R = make_ref(),
            async = erlang:garbage_collect(Victim, [{async, R}, {type, storm:choice([minor, major])}]),
            receive {garbage_collect, R, B} when is_boolean(B) -> ok after ?LATE -> storm:fault("a collection is not answered", []) end,
            receive {garbage_collect, R, _} -> storm:fault("a collection is answered twice", []) after 0 -> ok end;
        5 ->
            case catch erlang:suspend_process(Victim) of
                true ->
                    storm:check(lists:member(process_info(Victim, status), [{status, suspended}, undefined]), "a suspended process is ~0p", [process_info(Victim, status)]),
                    {reductions, A} = reductions(Victim),
                    storm:wait(3),
                    {reductions, B} = reductions(Victim),
                    %% What was asked of it counts as work.
                    storm:check(B - A < 100000, "a suspended process runs on: ~p reductions", [B - A]),
                    catch erlang:resume_process(Victim);
                {'EXIT', {badarg, _}} -> ok;
                %% Stock says so of one that is about to end, now and then, and has suspended it.
                {'EXIT', {internal_error, _}} -> catch erlang:resume_process(Victim)
            end;
        6 ->
            case erlang:check_process_code(Victim, storm_none) of
                B when is_boolean(B) -> ok;
                Other -> storm:fault("check_process_code says ~0p", [Other])
            end;
        7 ->
            %% Exit signals that end nobody.
            exit(Victim, normal)
    end,
    ask(Victim, M, N - 1).

reductions(P) ->
    case process_info(P, reductions) of
        undefined -> {reductions, 0};
        R -> R
    end.

info(undefined, Victim) -> storm:check(not is_process_alive(Victim), "process_info says that a living process is none", []);
info([], _) -> ok;
info(L, _) when is_list(L) -> storm:check(lists:all(fun({_, _}) -> true end, L), "process_info says ~0p", [L]);
info({_, _}, _) -> ok.

%% Killed, by a signal that can or that can't be caught, at any moment: it ends, and is told of
%% once.
killed(Works) ->
    [begin
         {_, F, _} = storm:choice(Works),
         Why = storm:choice([kill, {some, reason}]),
         Trap = storm:chance(3),
         {P, M} = spawn_monitor(fun() -> process_flag(trap_exit, Trap), forever(F) end),
         storm:wait(8),
         storm:chance(3) andalso storm:wait(20),
         %% While it is suspended it takes no signal but kill.
         Suspended = Why =:= kill andalso storm:chance(3) andalso (catch erlang:suspend_process(P)),
         R = make_ref(),
         erlang:garbage_collect(P, [{async, R}]),
         exit(P, Why),
         storm:check(is_boolean(is_process_alive(P)), "is_process_alive", []),
         Told = case Why of kill -> killed; _ -> Why end,
         receive
             {'DOWN', M, process, P, Told} -> ok;
             {'DOWN', M, process, P, Other} -> storm:fault("killed by ~0p, ended by ~0P", [Why, Other, 10])
         after ?LATE ->
             storm:fault("a process in a native is not killed by ~0p (suspended: ~0p): ~0p", [Why, Suspended, process_info(P, [current_stacktrace, status])]),
             exit(P, kill)
         end,
         storm:check(process_info(P, status) =:= undefined, "process_info shows one that has ended", []),
         receive {garbage_collect, R, _} -> ok after ?LATE -> storm:fault("a collection of one that is killed is not answered", []) end,
         receive {'DOWN', M, _, _, _} -> storm:fault("DOWN came twice", []) after 0 -> ok end
     end || _ <- lists:seq(1, 8)].

forever(F) ->
    _ = (catch F()),
    receive {'EXIT', _, Why} -> exit(Why) after 0 -> forever(F) end.

%% As many as there are threads for it compute what takes a minute or more, and are killed: nothing
%% of it goes on. Who needs such a thread then has one.
held() ->
    Subject = binary:copy(<<"a">>, 1120),
    Ps = [spawn_monitor(fun() -> re:run(Subject, <<"(a*a*)*b|(a|aa)+$c">>, [{match_limit, 2000000000}]) end)
          || _ <- lists:seq(1, erlang:system_info(dirty_cpu_schedulers_online))],
    receive after 20 + storm:random(50) -> ok end,
    [begin
         exit(P, kill),
         receive {'DOWN', M, process, P, _} -> ok after ?LATE -> storm:fault("a process in a regular expression is not killed", []) end
     end || {P, M} <- Ps],
    {Next, M1} = spawn_monitor(fun() -> {match, _} = re:run(binary:copy(<<"ab">>, 100000), <<"b+$">>) end),
    receive {'DOWN', M1, process, Next, Why} -> storm:check(Why =:= normal, "a regular expression ends by ~0p", [Why])
    after ?LATE div 2 -> storm:fault("natives of processes that were killed hold the threads", [])
    end.

%% One that is suspended does nothing; as often as it was suspended it has to be resumed.
suspended() ->
    P = spawn_link(fun() -> count(0) end),
    [begin
         K = 1 + storm:random(3),
         [true = erlang:suspend_process(P) || _ <- lists:seq(1, K)],
         A = counted(P),
         storm:wait(3),
         B = counted(P),
         storm:check(A =:= B, "a suspended process has counted on, from ~p to ~p", [A, B]),
         %% What it is sent waits.
         R = make_ref(),
         P ! {R, self()},
         [true = erlang:resume_process(P) || _ <- lists:seq(1, K - 1)],
         storm:wait(2),
         receive R -> storm:fault("a suspended process answers", []) after 0 -> ok end,
         %% Another one suspends it too, and ends: that counts no longer.
         storm:chance(2) andalso storm:all(fun(_) -> erlang:suspend_process(P) end, [1]),
         true = erlang:resume_process(P),
         receive R -> ok after ?LATE -> storm:fault("a process that was resumed does not answer: ~0p", [process_info(P, status)]) end,
         case storm:chance(2) of
             true ->
                 %% Asynchronously.
                 Ref = make_ref(),
                 true = erlang:suspend_process(P, [{asynchronous, Ref}]),
                 receive {Ref, suspended} -> ok after ?LATE -> storm:fault("no answer to an asynchronous suspend", []) end,
                 C = counted(P),
                 storm:wait(2),
                 storm:check(counted(P) =:= C, "it counts on after an asynchronous suspend", []),
                 true = erlang:resume_process(P);
             false -> ok
         end
     end || _ <- lists:seq(1, 15)],
    unlink(P),
    exit(P, kill).

counted(P) ->
    {dictionary, D} = process_info(P, dictionary),
    proplists:get_value(n, D, 0).

count(N) ->
    put(n, N),
    receive {R, From} -> From ! R, count(N + 1)
    after 0 -> count(N + 1)
    end.
