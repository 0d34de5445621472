%% Checks ETS tables of all four types: matching, folding, updates, errors. @stress @shared @fence
-module(ets_tables).
-export([main/0]).

main() ->
    [kind(K) || K <- [set, ordered_set, bag, duplicate_bag]],
    T = ets:new(t, [named_table, public, {keypos, 2}, {read_concurrency, true}]),
    true = ets:insert(t, [{r, K, K rem 3, [K]} || K <- lists:seq(1, 50)]),
    io:format("~p~n", [lists:sort(ets:match(t, {'_', '$1', 0, '_'}))]),
    io:format("~p~n", [lists:sort(ets:select(t, [{{'_', '$1', '$2', '_'}, [{'<', '$1', 10}, {'=:=', '$2', 1}], [{{'$2', '$1'}}]}]))]),
    io:format("~p~n", [ets:select_count(t, [{{'_', '$1', '_', '_'}, [{'>=', '$1', 40}], [true]}])]),
    io:format("~p~n", [ets:select_delete(t, [{{'_', '$1', 2, '_'}, [], [true]}])]),
    io:format("~p~n", [ets:select_replace(t, [{{r, '$1', 1, '_'}, [], [{{r, '$1', one, '$1'}}]}])]),
    io:format("~p~n", [lists:sort(ets:tab2list(t))]),
    io:format("~p~n", [ets:update_counter(t, 3, {3, 5})]),
    io:format("~p~n", [ets:update_counter(t, 3, [{3, -2}, {3, 100, 50, 7}])]),
    io:format("~p~n", [ets:update_counter(t, new, {3, 1}, {r, new, 10, x})]),
    io:format("~p~n", [ets:update_element(t, new, [{3, a}, {4, b}])]),
    io:format("~p ~p~n", [ets:lookup(t, new), ets:lookup_element(t, new, 4)]),
    io:format("~p ~p~n", [ets:insert_new(t, {r, new, 1, 1}), ets:insert_new(t, {r, newer, 1, 1})]),
    io:format("~p ~p~n", [ets:member(t, newer), ets:take(t, newer)]),
    io:format("~p~n", [lists:sum(ets:foldl(fun({_, K, _, _}, A) when is_integer(K) -> [K | A]; (_, A) -> A end, [], t))]),
    {L1, C} = ets:select(t, [{{'_', '$1', '_', '_'}, [], ['$1']}], 10),
    io:format("~p~n", [length(L1) >= 1 andalso length(L1 ++ rest(C)) =:= ets:info(t, size)]),
    [io:format("~p ~p~n", [I, ets:info(t, I)]) || I <- [name, keypos, type, protection, size, named_table, read_concurrency, write_concurrency, compressed, decentralized_counters]],
    io:format("~p~n", [ets:info(t, owner) =:= self()]),
    true = ets:delete_all_objects(T),
    io:format("~p~n", [ets:info(t, size)]),
    true = ets:delete(t),
    io:format("~p ~p~n", [ets:info(t), ets:whereis(t)]),
    P = fun(F) -> try F() catch Cl:R:St -> [{M, Fn, _, I} | _] = St, {Cl, R, M, Fn, proplists:get_value(error_info, I)} end end,
    io:format("~p~n", [P(fun() -> ets:lookup(t, 1) end)]),
    io:format("~p~n", [P(fun() -> ets:new(t, [bad_option]) end)]),
    T2 = ets:new(x, [private]),
    io:format("~p~n", [is_reference(T2)]),
    io:format("~p~n", [P(fun() -> ets:insert(T2, {}) end)]),
    io:format("~p~n", [P(fun() -> ets:insert(T2, not_tuple) end)]),
    Self = self(),
    spawn(fun() -> Self ! P(fun() -> ets:lookup(T2, 1) end) end),
    receive A -> io:format("~p~n", [A]) end,
    %% give away and heir
    T3 = ets:new(y, [{heir, self(), data}, public]),
    O = spawn(fun() -> receive {'ETS-TRANSFER', Tab, _, gift} -> ets:insert(Tab, {from, child}) end end),
    true = ets:give_away(T3, O, gift),
    receive {'ETS-TRANSFER', T3, O, data} -> io:format("~p~n", [ets:tab2list(T3)]) end,
    T4 = ets:new(z, [compressed]),
    ets:insert(T4, [{K, lists:duplicate(100, K)} || K <- lists:seq(1, 100)]),
    io:format("~p~n", [ets:lookup(T4, 7) =:= [{7, lists:duplicate(100, 7)}]]),
    ets:safe_fixtable(T4, true),
    F = walk(T4, ets:first(T4), 0),
    ets:safe_fixtable(T4, false),
    io:format("~p ~p~n", [F, ets:info(T4, size)]),
    [io:format("~p ~p~n", [K, binaries(K)]) || K <- [set, bag, duplicate_bag, ordered_set]].

%% What info tells of binaries whose objects are deleted while the table is fixed.
binaries(K) ->
    T = ets:new(b, [K]),
    B = binary:copy(<<"x">>, 100),
    ets:insert(T, [{N, B} || N <- lists:seq(1, 600)] ++ [{1, B, again}, {1, B, more}]),
    Count = fun() -> {length(ets:info(T, binary)), lists:usort([S || {_, S, _} <- ets:info(T, binary)])} end,
    C1 = Count(),
    ets:safe_fixtable(T, true),
    [ets:delete(T, N) || N <- lists:seq(1, 300)],
    {C2, M2} = {Count(), ets:first(T) =:= '$end_of_table'},
    ets:delete_all_objects(T),
    {C3, M3} = {Count(), ets:first(T)},
    ets:safe_fixtable(T, false),
    {C1, C2, M2, C3, M3, Count(), byte_size(B)}.

walk(_, '$end_of_table', N) -> N;
walk(T, K, N) -> ets:delete(T, K), walk(T, ets:next(T, K), N + 1).

rest('$end_of_table') -> [];
rest(C) -> case ets:select(C) of {L, C2} -> L ++ rest(C2); E -> rest(E) end.

kind(K) ->
    T = ets:new(kind, [K]),
    ets:insert(T, [{1, a}, {2, b}, {1, a}, {1, c}, {1.0, d}, {"str", e}, {<<"bin">>, f}, {{t, 1}, g}]),
    io:format("~p ~p~n", [K, ets:info(T, size)]),
    io:format("~p~n", [lists:sort(ets:lookup(T, 1))]),
    io:format("~p~n", [lists:sort(ets:lookup(T, 1.0))]),
    ets:delete_object(T, {1, a}),
    io:format("~p~n", [lists:sort(ets:tab2list(T))]),
    K =:= ordered_set andalso io:format("~p ~p ~p ~p~n", [ets:first(T), ets:last(T), ets:next(T, 2), ets:prev(T, 2)]),
    io:format("~p~n", [lists:sort(ets:match_object(T, {'_', '_'}))]),
    ets:match_delete(T, {'_', b}),
    io:format("~p~n", [ets:member(T, 2)]),
    ets:delete(T).
