%% Runs all operations on tables that were never written, existing and deleted, and then inserts a
%% first object. @stress @fence
-module(tables_that_nothing_was_put_in).
-export([main/0]).

main() ->
    Kinds = [set, ordered_set, bag, duplicate_bag],
    Options = [[], [private], [public], [public, {write_concurrency, true}], [public, {read_concurrency, true}]],
    [[one(K, O) || O <- Options] || K <- Kinds],
    [fixed(K, O) || K <- Kinds, O <- Options],
    races(),
    many().

one(K, O) ->
    io:format("~w ~w~n", [K, O]),
    T = ets:new(t, [K | O]),
    [io:format("  ~w: ~w~n", [N, run(F, T)]) || {N, F} <- reads()],
    io:format("  still: ~w~n", [{ets:info(T, size), ets:tab2list(T)}]),
    [begin
         T1 = ets:new(t, [K | O]),
         R = run(F, T1),
         io:format("  ~w: ~w ~w~n", [N, R, catch ets:tab2list(T1)]),
         catch ets:delete(T1)
     end || {N, F} <- writes()],
    ets:delete(T),
    io:format("  deleted: ~w~n", [lists:usort([run(F, T) || {_, F} <- reads() ++ writes()])]).

run(F, T) ->
    try F(T) of
        R -> R
    catch C:E -> {C, E}
    end.

reads() ->
    [{lookup, fun(T) -> ets:lookup(T, k) end},
     {element, fun(T) -> ets:lookup_element(T, k, 2) end},
     {member, fun(T) -> ets:member(T, k) end},
     {first, fun(T) -> {ets:first(T), ets:last(T)} end},
     {next, fun(T) -> ets:next(T, k) end},
     {slots, fun(T) -> ordered(T) orelse [ets:slot(T, I) || I <- [0, 1, 17, 255, 256]] end},
     {beyond, fun(T) -> ordered(T) orelse ets:slot(T, 257) end},
     {match, fun(T) -> [ets:match(T, '$1'), ets:match_object(T, '_', 3), ets:select(T, [{{k, '_'}, [], ['$_']}], 1)] end},
     {count, fun(T) -> ets:select_count(T, [{'_', [], [true]}]) end},
     {fold, fun(T) -> ets:foldl(fun(_, N) -> N + 1 end, 0, T) end},
     {reverse, fun(T) -> ets:select_reverse(T, [{'_', [], ['$_']}]) end},
     {take, fun(T) -> ets:take(T, k) end},
     {delete, fun(T) -> [ets:delete(T, k), ets:delete_object(T, {k, 1}), ets:match_delete(T, {k, '_'})] end},
     {select_delete, fun(T) -> ets:select_delete(T, [{{k, '_'}, [], [true]}, {'_', [], [true]}]) end},
     {clear, fun(T) -> ets:delete_all_objects(T) end},
     {update, fun(T) -> ets:update_element(T, k, {2, v}) end},
     {counter, fun(T) -> ets:update_counter(T, k, 1) end},
     {nothing, fun(T) -> [ets:insert(T, []), ets:insert_new(T, [])] end},
     {fix, fun(T) -> [ets:safe_fixtable(T, true), ets:first(T), ets:safe_fixtable(T, false)] end},
     {info, fun(T) -> [ets:info(T, I) || I <- [size, type, keypos, protection, fixed]] end}].

ordered(T) -> case ets:info(T, type) of ordered_set -> true; undefined -> error(badarg); _ -> false end.

writes() ->
    [{insert, fun(T) -> ets:insert(T, {k, 1}) end},
     {insert_new, fun(T) -> [ets:insert_new(T, {k, 1}), ets:insert_new(T, {k, 2})] end},
     {list, fun(T) -> ets:insert(T, [{I, a} || I <- [3, 1, 2]]) end},
     {new_list, fun(T) -> ets:insert_new(T, [{I, a} || I <- [3, 1, 2]]) end},
     {counter, fun(T) -> ets:update_counter(T, k, {2, 1}, {k, 5}) end},
     {cleared, fun(T) -> ets:insert(T, {k, 1}), ets:delete_all_objects(T), ets:insert(T, {l, 1}) end}].

%% Fixed before anything is there: what is put in and deleted then.
fixed(K, O) ->
    T = ets:new(t, [K | O]),
    ets:safe_fixtable(T, true),
    [ets:insert(T, {I, I}) || I <- lists:seq(1, 600)],
    [ets:delete(T, I) || I <- lists:seq(1, 600), I rem 2 =:= 0],
    A = ets:info(T, size),
    ets:safe_fixtable(T, false),
    B = {ets:info(T, size), lists:sum([X || {X, _} <- ets:tab2list(T)])},
    ets:delete_all_objects(T),
    C = {ets:info(T, size), ets:first(T), ets:lookup(T, 1)},
    [ets:insert(T, {I, I}) || I <- lists:seq(1, 5000)],
    [ets:delete(T, I) || I <- lists:seq(1, 4990)],
    D = lists:sort(ets:tab2list(T)),
    io:format("~w ~w: ~w~n", [K, O, {A, B, C, D}]),
    ets:delete(T).

%% Many processes use, or delete, a table that is new.
races() ->
    R = [begin
             T = ets:new(t, [K, public, {write_concurrency, W}]),
             Me = self(),
             Ps = [spawn(fun() -> receive go -> ok end, Me ! {self(), catch act(T, I)} end) || I <- lists:seq(1, 6)],
             [P ! go || P <- Ps],
             N = length([x || P <- Ps, receive {P, A} -> A =:= true end]),
             L = catch length(ets:tab2list(T)),
             true = case L of N -> true; _ when is_integer(L) -> false; {'EXIT', {badarg, _}} -> true end,
             catch ets:delete(T)
         end || K <- [set, bag], W <- [true, false], _ <- lists:seq(1, 50)],
    io:format("~w races~n", [length(R)]).
act(T, 6) -> case erlang:phash2(T, 2) of 0 -> ets:delete(T), deleted; 1 -> ets:insert(T, {6}) end;
act(T, I) -> ets:insert(T, {I}).

%% One process owns and fixes many tables, and many fix one.
many() ->
    Me = self(),
    P = spawn(fun() ->
                  Ts = [ets:new(t, [public]) || _ <- lists:seq(1, 500)],
                  [ets:safe_fixtable(T, true) || T <- Ts, _ <- [1, 2]],
                  Me ! {self(), Ts},
                  receive {give, L} -> [ets:give_away(T, Me, gift) || T <- L] end,
                  Me ! {self(), given},
                  receive {delete, M} -> [ets:delete(T) || T <- M] end,
                  Me ! {self(), deleted},
                  receive {unfix, U} -> [ets:safe_fixtable(T, false) || T <- U] end,
                  Me ! {self(), unfixed},
                  receive stop -> ok end
              end),
    Ts = receive {P, L} -> L end,
    Kind = fun(K) -> [T || {I, T} <- lists:enumerate(Ts), I rem 5 =:= K] end,
    P ! {give, Kind(0)}, receive {P, given} -> ok end,
    P ! {delete, lists:reverse(Kind(1))}, receive {P, deleted} -> ok end,
    P ! {unfix, Kind(2) ++ Kind(3)}, receive {P, unfixed} -> ok end,
    Fixed = fun() -> [case ets:info(hd(Kind(K)), safe_fixed_monotonic_time) of {_, [{P, N}]} -> N; X -> X end || K <- lists:seq(0, 4)] end,
    io:format("~w~n", [Fixed()]),
    [ets:delete(T) || T <- Kind(4)],
    io:format("~w~n", [[length([T || T <- Kind(K), ets:info(T, owner) =:= P]) || K <- lists:seq(0, 4)]]),
    R = monitor(process, P), P ! stop, receive {'DOWN', R, _, _, _} -> ok end,
    Alive = fun() -> [length([T || T <- Kind(K), ets:info(T, owner) =:= Me]) || K <- lists:seq(0, 4)] end,
    (fun Wait() -> case [T || K <- [2, 3], T <- Kind(K), ets:info(T, owner) =/= undefined] of [] -> ok; _ -> Wait() end end)(),
    io:format("~w ~w~n", [Alive(), lists:usort([ets:info(T, fixed) || T <- Kind(0)])]),
    T0 = hd(Kind(0)),
    Ks = [spawn(fun() -> [ets:safe_fixtable(T0, true) || _ <- lists:seq(1, 1 + I rem 2)], Me ! {self(), did}, receive undo -> ets:safe_fixtable(T0, false), Me ! {self(), undid}, receive never -> ok end end end)
          || I <- lists:seq(1, 60)],
    [receive {K, did} -> ok end || K <- Ks],
    {_, F} = ets:info(T0, safe_fixed_monotonic_time),
    io:format("~w fix it, ~w times~n", [length(F), lists:sum([N || {_, N} <- F])]),
    [begin K ! undo, receive {K, undid} -> ok end end || K <- lists:reverse(Ks)],
    {_, F2} = ets:info(T0, safe_fixed_monotonic_time),
    io:format("~w fix it, ~w times~n", [length(F2), lists:sum([N || {_, N} <- F2])]),
    [begin M = monitor(process, K), exit(K, kill), receive {'DOWN', M, _, _, _} -> ok end end || K <- Ks],
    (fun Wait() -> case ets:info(T0, safe_fixed_monotonic_time) of false -> ok; _ -> Wait() end end)(),
    io:format("~w~n", [ets:info(T0, fixed)]),
    %% New elements at many positions, some of them twice.
    ets:insert(T0, list_to_tuple([k | lists:duplicate(99, 0)])),
    true = ets:update_element(T0, k, [{I, {new, I}} || I <- lists:seq(2, 60)] ++ [{I, {newer, I}} || I <- lists:seq(40, 100)] ++ [{2, last}]),
    [Object] = ets:lookup(T0, k),
    io:format("~w~n", [erlang:phash2(Object)]),
    io:format("~w ~w ~w~n", [element(2, Object), element(39, Object), element(40, Object)]),
    ets:insert(T0, list_to_tuple([c | lists:duplicate(49, 0)])),
    Counted = ets:update_counter(T0, c, [{2 + I rem 49, I} || I <- lists:seq(1, 200)]),
    io:format("~w ~w~n", [erlang:phash2(Counted), ets:lookup(T0, c)]).
