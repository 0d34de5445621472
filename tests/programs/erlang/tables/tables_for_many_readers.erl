%% Tables with `read_concurrency`: processes look keys up while others write, walk, and delete the
%% table. A reader sees whole objects, and never an older one than before. @stress @fence
-module(tables_for_many_readers).
-export([main/0]).

-define(KEYS, 32).
-define(ROUNDS, 400).

main() ->
    [io:format("~p: ~p~n", [Options, used(Options)])
     || Type <- [set, ordered_set, bag, duplicate_bag],
        More <- [[], [{write_concurrency, true}]],
        Options <- [[Type, {read_concurrency, true} | More]]],
    [io:format("deleted ~p: ~p~n", [Type, deleted(Type)]) || Type <- [set, ordered_set]],
    [io:format("many ~p: ~p~n", [Type, many(Type)]) || Type <- [set, ordered_set]].

%% Readers look up while writers replace objects.
used(Options) ->
    T = ets:new(t, [public | Options]),
    [true = ets:insert(T, {K, 0, 0}) || K <- lists:seq(1, ?KEYS)],
    Me = self(),
    Unique = lists:member(hd(Options), [set, ordered_set]),
    Reader = fun() -> read(T, Unique, #{}), Me ! {self(), read} end,
    Readers = [spawn_link(Reader) || _ <- [1, 2, 3]],
    Writer = fun(W) -> fun() -> write(T, Unique, W, ?ROUNDS), Me ! {self(), written} end end,
    Writers = [spawn_link(Writer(W)) || W <- [1, 2]],
    [receive {P, written} -> ok end || P <- Writers],
    true = ets:insert(T, {stop, 0, 0}),
    [receive {P, read} -> ok end || P <- Readers],
    Size = ets:info(T, size),
    Sum = lists:sum([N || {K, N, N} <- ets:tab2list(T), K =/= stop]),
    ets:delete(T),
    {Size, Sum}.

%% Each writer has the keys of its remainder.
write(_, _, _, 0) -> ok;
write(T, Unique, W, N) ->
    Round = ?ROUNDS - N + 1,
    [begin
         Unique orelse ets:delete(T, K),
         true = ets:insert(T, {K, Round, Round})
     end || K <- lists:seq(W, ?KEYS, 2)],
    write(T, Unique, W, N - 1).

read(T, Unique, Seen) ->
    New = lists:foldl(fun(K, Acc) -> look(T, K, Unique, Acc) end, Seen, lists:seq(1, ?KEYS)),
    Walked = ets:foldl(fun({_, N, N}, Sum) -> N + Sum end, 0, T),
    true = is_integer(Walked),
    ets:member(T, stop) orelse read(T, Unique, New).

look(T, K, Unique, Seen) ->
    Before = maps:get(K, Seen, 0),
    case ets:lookup(T, K) of
        [{K, N, N}] when N >= Before -> Seen#{K => N};
        [] when not Unique -> Seen
    end.

%% The table goes away while processes look up in it.
deleted(Type) ->
    lists:usort([deleted_once(Type, N) || N <- lists:seq(1, 50)]).

deleted_once(Type, N) ->
    T = ets:new(t, [public, {read_concurrency, true}, Type]),
    true = ets:insert(T, [{K, K} || K <- lists:seq(1, 100)]),
    Me = self(),
    Reader = fun() -> Me ! {self(), up}, Me ! {self(), until_it_is_gone(T)} end,
    Readers = [spawn_link(Reader) || _ <- [1, 2]],
    [receive {P, up} -> ok end || P <- Readers],
    [ets:lookup(T, K) || K <- lists:seq(1, N)],
    true = ets:delete(T),
    [receive {P, Result} -> Result end || P <- Readers].

until_it_is_gone(T) ->
    try ets:lookup(T, 7) of
        [{7, 7}] -> until_it_is_gone(T)
    catch
        error:badarg -> gone
    end.

%% More processes than the runtime has threads, and rare writes: a counter that all read.
many(Type) ->
    T = ets:new(t, [public, {read_concurrency, true}, Type]),
    true = ets:insert(T, {n, 0}),
    Me = self(),
    All = [spawn_link(fun() -> count(T, 200), Me ! {self(), done} end) || _ <- lists:seq(1, 40)],
    [receive {P, done} -> ok end || P <- All],
    ets:lookup(T, n).

count(_, 0) -> ok;
count(T, N) ->
    [{n, Before}] = ets:lookup(T, n),
    case N rem 10 of
        0 -> true = ets:update_counter(T, n, 1) > Before;
        _ -> ok
    end,
    count(T, N - 1).
