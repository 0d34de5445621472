%% Tables and who has them: objects are there exactly once, whoever gives a table away, inherits it,
%% renames it or ends.
-module(storm_tables).
-export([round/0]).

-define(LATE, (storm:late(15000))).

round() ->
    storm:run([{gifts, 2, fun gifts/0}, {heirs, 2, fun heirs/0}, {pool, 1, fun pool/0}, {counters, 1, fun counters/0}, {walks, 1, fun walks/0},
               {names, 1, fun names/0}, {fixed, 1, fun fixed/0}, {deleted, 1, fun deleted/0}]).

kind() -> storm:choice([set, ordered_set, bag, duplicate_bag]).
options() -> [O || O <- [{write_concurrency, true}, {read_concurrency, true}, compressed], storm:chance(3)].

objects(N) -> [{I, I * I, <<I:64>>} || I <- lists:seq(1, N)].

has(T, N, Who) ->
    case catch lists:sort(ets:tab2list(T)) of
        L when is_list(L) ->
            Wanted = objects(N),
            storm:check(L =:= Wanted, "~s: objects lost ~0P, too many ~0P", [Who, Wanted -- L, 20, L -- Wanted, 20]),
            storm:check(ets:info(T, size) =:= N, "~s: the size is ~p, not ~p", [Who, ets:info(T, size), N]),
            storm:check(ets:info(T, owner) =:= self(), "~s: the owner is another", [Who]);
        Error ->
            storm:fault("~s: ~0p", [Who, Error])
    end.

%% A table goes round; some who get it end before or after they have given it on.
gifts() ->
    Me = self(),
    [begin
         N = storm:random(200),
         T = ets:new(gift, [kind() | options()]),
         ets:insert(T, storm:shuffle(objects(N))),
         ets:setopts(T, {heir, Me, back}),
         P = spawn(fun() -> keeper(T, N, 1 + storm:random(5)) end),
         true = ets:give_away(T, P, {go, 1}),
         receive
             {'ETS-TRANSFER', T, From, back} ->
                 storm:check(is_pid(From), "a table comes from ~p", [From]),
                 has(T, N, "heir of a table that went round"),
                 receive {'ETS-TRANSFER', T, _, _} -> storm:fault("a table came back twice", []) after 0 -> ok end,
                 ets:delete(T)
         after ?LATE -> storm:fault("a table did not come back: ~0p", [ets:info(T)])
         end
     end || _ <- lists:seq(1, 10)].

keeper(T, N, Left) ->
    receive
        {'ETS-TRANSFER', T, From, {go, _}} when is_pid(From) ->
            has(T, N, "who was given a table"),
            case Left of
                0 -> end_somehow();
                _ ->
                    P = spawn(fun() -> keeper(T, N, Left - 1) end),
                    storm:chance(4) andalso storm:wait(1),
                    true = ets:give_away(T, P, {go, Left})
            end
    after ?LATE -> storm:fault("a table that was given away doesn't come", [])
    end.

end_somehow() ->
    case storm:random(3) of
        0 -> ok;
        1 -> exit(self(), kill), receive after ?LATE -> ok end;
        2 -> exit(why)
    end.

%% Owners that end: the heir has the table, with all objects, or nobody has it.
heirs() ->
    [begin
         N = storm:random(300),
         Me = self(),
         Ends = storm:chance(4),
         Heir = case Ends of
                    false -> Me;
                    true -> spawn(fun() -> storm:wait(1) end)
                end,
         Named = storm:chance(2),
         Name = list_to_atom("storm_heir_" ++ integer_to_list(storm:random(1000000))),
         {P, M} = spawn_monitor(fun() ->
             T = ets:new(Name, [kind(), public, {heir, Heir, {gift, I}} | [named_table || Named] ++ options()]),
             ets:insert(T, objects(N)),
             Me ! {table, self(), T},
             receive go -> end_somehow() end
         end),
         T = receive {table, P, X} -> X end,
         storm:chance(3) andalso storm:wait(1),
         case storm:chance(2) of true -> exit(P, kill); false -> P ! go end,
         receive {'DOWN', M, process, P, _} -> ok after ?LATE -> storm:fault("an owner does not end", []) end,
         case Ends of
             false ->
                 receive
                     {'ETS-TRANSFER', T, P, {gift, I}} ->
                         has(T, N, "heir"),
                         case storm:chance(2) of
                             true -> ets:delete(T);
                             false ->
                                 %% It ends with another one, which has no heir but this.
                                 ets:setopts(T, {heir, none}),
                                 {Q, M1} = spawn_monitor(fun() -> receive {'ETS-TRANSFER', T, _, _} -> has(T, N, "second owner") after ?LATE -> storm:fault("no second owner", []) end end),
                                 ets:give_away(T, Q, x),
                                 receive {'DOWN', M1, process, Q, _} -> ok end,
                                 storm:check(gone(T, 1000), "a table without heir outlives its owner", [])
                         end
                 after ?LATE -> storm:fault("the heir of ~0p gets nothing: ~0p", [T, ets:info(T)])
                 end;
             true ->
                 %% The heir may have ended first.
                 storm:check(gone(T, ?LATE), "a table whose owner and heir have ended is there: ~0p", [ets:info(T)])
         end
     end || I <- lists:seq(1, 12)],
    receive {'ETS-TRANSFER', T, _, _} -> storm:fault("a table came twice: ~0p", [T]) after 5 -> ok end.

gone(T, Left) when Left < 0 -> ets:info(T) =:= undefined;
gone(T, Left) ->
    case ets:info(T) of
        undefined -> true;
        _ -> receive after 5 -> ok end, gone(T, Left - 5)
    end.

%% Objects that several put in and several take out: each comes out once.
pool() ->
    T = ets:new(pool, [set, public | options()]),
    N = 400,
    Got = storm:all(
        fun({put, From}) ->
                [begin
                     storm:chance(60) andalso storm:wait(1),
                     true = ets:insert_new(T, {I, <<I:32>>}),
                     storm:check(not ets:insert_new(T, {{kept, I rem 7}, other}) orelse I =< From + 7, "insert_new replaced an object", [])
                 end || I <- lists:seq(From, From + N - 1)],
                [];
           (take) -> take(T, 3 * N, []);
           (match) -> lists:append([[I || {I, _} <- take_one(T)] || _ <- lists:seq(1, 60)])
        end, [{put, 1}, {put, 1 + N}, {put, 1 + 2 * N}, take, take, match]),
    Rest = [I || {I, <<_:32>>} <- ets:tab2list(T)],
    All = lists:sort(lists:append(Got) ++ Rest),
    Wanted = lists:seq(1, 3 * N),
    storm:check(All =:= Wanted, "objects taken twice ~0p, lost ~0p", [All -- Wanted, Wanted -- All]),
    ets:delete(T).

take(_, 0, L) -> L;
take(T, N, L) ->
    I = 1 + storm:random(1200),
    case ets:take(T, I) of
        [{I, <<I:32>>}] -> take(T, N - 1, [I | L]);
        [] -> take(T, N - 1, L)
    end.

%% By a match: an object that select_delete has counted was this one's.
take_one(T) ->
    I = 1 + storm:random(1200),
    case ets:select_delete(T, [{{I, '_'}, [], [true]}]) of
        1 -> [{I, x}];
        0 -> []
    end.

%% Sums: no increment is lost.
counters() ->
    T = ets:new(counters, [storm:choice([set, ordered_set]), public | options()]),
    ets:insert(T, [{I, 0} || I <- lists:seq(1, 5)]),
    Sums = storm:all(
        fun(_) ->
            lists:foldl(fun(_, M) ->
                K = 1 + storm:random(5),
                storm:chance(50) andalso storm:wait(1),
                ets:update_counter(T, K, 1),
                M#{K => maps:get(K, M, 0) + 1}
            end, #{}, lists:seq(1, 300))
        end, lists:seq(1, 5)),
    [begin
         Sum = lists:sum([maps:get(K, M, 0) || M <- Sums]),
         storm:check(ets:lookup(T, K) =:= [{K, Sum}], "a counter is ~0p, not ~p", [ets:lookup(T, K), Sum])
     end || K <- lists:seq(1, 5)],
    ets:delete(T).

%% Who walks through a table sees what stays there exactly once, whatever comes and goes meanwhile.
walks() ->
    Kind = storm:choice([set, ordered_set]),
    T = ets:new(walks, [Kind, public | options()]),
    N = 300,
    ets:insert(T, [{{stays, I}, I} || I <- lists:seq(1, N)]),
    Wanted = lists:seq(1, N),
    storm:all(
        fun(change) ->
                [begin
                     K = {goes, storm:random(600)},
                     case storm:chance(2) of true -> ets:insert(T, {K, x}); false -> ets:delete(T, K) end,
                     storm:chance(100) andalso storm:wait(1)
                 end || _ <- lists:seq(1, 2000)];
           (walk) ->
                ets:safe_fixtable(T, true),
                L = walk(T, ets:first(T), []),
                ets:safe_fixtable(T, false),
                storm:check(lists:sort(L) =:= Wanted, "first and next of a ~p miss ~0p, have twice ~0p", [Kind, Wanted -- L, L -- Wanted]);
           (select) ->
                ets:safe_fixtable(T, true),
                L = select(ets:select(T, [{{{stays, '$1'}, '_'}, [], ['$1']}], 1 + storm:random(50))),
                ets:safe_fixtable(T, false),
                storm:check(lists:sort(L) =:= Wanted, "select of a ~p misses ~0p, has twice ~0p", [Kind, Wanted -- L, L -- Wanted]);
           (whole) ->
                L = ets:select(T, [{{{stays, '$1'}, '_'}, [], ['$1']}]),
                storm:check(lists:sort(L) =:= Wanted, "one select of a ~p misses ~0p, has twice ~0p", [Kind, Wanted -- L, L -- Wanted])
        end, [change, change, walk, select, walk, select, whole]),
    ets:delete(T).

walk(_, '$end_of_table', L) -> L;
walk(T, {stays, I} = K, L) -> storm:chance(200) andalso storm:wait(1), walk(T, ets:next(T, K), [I | L]);
walk(T, K, L) -> walk(T, ets:next(T, K), L).

select('$end_of_table') -> [];
select({L, C}) -> L ++ select(ets:select(C)).

%% Named tables whose owners end: the name is free for the next one, and leads to one table at most.
names() ->
    Tag = integer_to_list(storm:random(1000000)),
    Names = [list_to_atom("storm_table_" ++ Tag ++ "_" ++ integer_to_list(I)) || I <- [1, 2]],
    Held = atomics:new(2, []),
    storm:all(
        fun(_) ->
            [begin
                 I = 1 + storm:random(2),
                 Name = lists:nth(I, Names),
                 storm:all(fun(_) -> owner(Names, Name, I, Held) end, [1])
             end || _ <- lists:seq(1, 25)]
        end, [1, 2, 3, 4]),
    [storm:check(ets:whereis(N) =:= undefined, "~p is left", [N]) || N <- Names].

%% What it makes ends with it. While it counts itself as the holder, nobody else is one.
owner(Names, Name, I, Held) ->
    case catch ets:new(Name, [named_table, public]) of
        Name ->
            storm:check(atomics:add_get(Held, I, 1) =:= 1, "~p is the name of two tables", [Name]),
            ets:insert(Name, {me, self()}),
            storm:chance(2) andalso storm:wait(1),
            storm:check(ets:lookup(Name, me) =:= [{me, self()}], "~p is another's table", [Name]),
            storm:check(ets:info(Name, owner) =:= self(), "~p has another owner", [Name]),
            Other = lists:nth(3 - I, Names),
            %% Who counts itself out still has the name.
            atomics:sub(Held, I, 1),
            case storm:chance(3) andalso (catch ets:rename(Name, Other)) of
                Other ->
                    storm:check(atomics:add_get(Held, 3 - I, 1) =:= 1, "~p is the name of two tables after rename", [Other]),
                    storm:check(ets:lookup(Other, me) =:= [{me, self()}], "~p is another's table after rename", [Other]),
                    atomics:sub(Held, 3 - I, 1);
                _ ->
                    storm:check(ets:lookup(Name, me) =:= [{me, self()}], "~p is another's table", [Name])
            end,
            case storm:chance(2) of
                true -> ets:delete(case ets:info(Name, owner) =:= self() of true -> Name; false -> Other end);
                false -> ok
            end;
        {'EXIT', {badarg, _}} -> storm:chance(2) andalso storm:wait(1)
    end.

%% Fixations end with those who fixed.
fixed() ->
    T = ets:new(fixed, [set, public | options()]),
    ets:insert(T, objects(100)),
    [begin
         Fixers = [spawn_monitor(fun() ->
             [ets:safe_fixtable(T, true) || _ <- lists:seq(1, 1 + storm:random(3))],
             [ets:delete(T, storm:random(100)) || _ <- lists:seq(1, 10)],
             storm:wait(1),
             storm:chance(2) andalso ets:safe_fixtable(T, false),
             end_somehow()
         end) || _ <- [1, 2, 3]],
         storm:wait(2),
         [exit(P, kill) || {P, _} <- Fixers, storm:chance(2)],
         [receive {'DOWN', M, process, P, _} -> ok after ?LATE -> storm:fault("one that has fixed a table does not end", []) end || {P, M} <- Fixers],
         storm:check(unfixed(T, ?LATE), "a table is fixed by processes that have ended: ~0p", [ets:info(T, safe_fixed)]),
         ets:insert(T, objects(100)),
         has(T, 100, "a table that was fixed")
     end || _ <- lists:seq(1, 8)],
    ets:delete(T).

unfixed(T, Left) ->
    case ets:info(T, safe_fixed) of
        false -> true;
        _ when Left < 0 -> false;
        _ -> receive after 5 -> ok end, unfixed(T, Left - 5)
    end.

%% Tables that are deleted while others use them: who gets an answer gets the right one.
deleted() ->
    [begin
         N = 50 + storm:random(2000),
         T = ets:new(deleted, [storm:choice([set, ordered_set]), public | options()]),
         ets:insert(T, [{I, I} || I <- lists:seq(1, N)]),
         Me = self(),
         Users = [spawn_monitor(fun() -> Me ! {ready, self()}, user(T, N) end) || _ <- [1, 2, 3]],
         [receive {ready, P} -> ok end || {P, _} <- Users],
         storm:wait(3),
         true = ets:delete(T),
         storm:check(ets:info(T) =:= undefined, "a table is there after delete", []),
         storm:check(case catch ets:lookup(T, 1) of {'EXIT', {badarg, _}} -> true; _ -> false end, "a table that was deleted answers", []),
         [receive {'DOWN', M, process, P, _} -> ok after ?LATE -> storm:fault("one that uses a deleted table does not end", []) end || {P, M} <- Users]
     end || _ <- lists:seq(1, 8)].

user(T, N) ->
    I = 1 + storm:random(N),
    case catch case storm:random(4) of
                   0 -> ets:lookup(T, I) =:= [{I, I}];
                   1 -> ets:select_count(T, [{{'$1', '$1'}, [], [true]}]) =:= N;
                   2 -> ets:insert(T, {I, I});
                   3 -> ets:member(T, I)
               end of
        true -> user(T, N);
        %% A traversal of a table that is being deleted may see less.
        {'EXIT', {badarg, _}} -> ok;
        Other -> storm:fault("a table that is about to be deleted says ~0p", [Other])
    end.
