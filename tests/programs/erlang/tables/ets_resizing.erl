%% ETS tables shrink during a traversal that yields, or grow while the end of a fixation cleans up.
-module(ets_resizing).
-export([main/0]).

main() ->
    [shrinks(K) || K <- [set, bag]],
    [shrinks(K, Options) || K <- [set, duplicate_bag], Options <- [[], [{write_concurrency, true}]]],
    [cleans_up(K) || K <- [set, bag, duplicate_bag]].

%% Deleting a key by a walk over all objects; 4000 objects need buckets that 1000 don't.
shrinks(K) ->
    T = ets:new(t, [K]),
    [ets:insert(T, {N, N}) || N <- lists:seq(1, 4000)],
    [ets:delete(T, N) || N <- lists:seq(1, 2990)],
    L = [ets:select_delete(T, [{{'$1', '_'}, [], [{'==', '$1', N}]}]) || N <- lists:seq(2991, 3990)],
    io:format("~p: ~p ~p~n", [K, lists:usort(L), ets:info(T, size)]).

%% One walk that deletes most.
shrinks(K, Options) ->
    T = ets:new(t, [K | Options]),
    [ets:insert(T, {N, N}) || N <- lists:seq(1, 20000)],
    Gone = ets:select_delete(T, [{{'$1', '_'}, [{'>', '$1', 10}], [true]}]),
    io:format("~p ~p: ~p ~p~n", [K, Options, Gone, lists:sort(ets:tab2list(T))]).

cleans_up(K) ->
    T = ets:new(t, [K, public, {write_concurrency, true}]),
    ets:insert(T, [{N, N} || N <- lists:seq(1, 20000)]),
    ets:safe_fixtable(T, true),
    Gone = ets:select_delete(T, [{{'$1', '_'}, [{'=:=', {'rem', '$1', 2}, 0}], [true]}]),
    {P, M} = spawn_monitor(fun() -> receive go -> [ets:insert(T, {-N, N}) || N <- lists:seq(1, 20000)] end end),
    P ! go,
    ets:safe_fixtable(T, false),
    receive {'DOWN', M, process, P, R} -> R end,
    io:format("~p: ~p ~p ~p ~p~n", [K, Gone, ets:info(T, size), element(7, ets:info(T, stats)), R =:= normal orelse is_list(R)]).
