%% Runs match specifications of several clauses on ordered tables, whose scanned range must include
%% all results. Keys contain numbers that are equal but of different types, tuples of different
%% sizes, and maps. @stress @shared
-module(ets_specs_of_several_clauses).
-export([main/0]).

main() ->
    Keys = keys(),
    Patterns = Keys ++ patterns(),
    [io:format("~w: ~w~n", [A, [found(Keys, [A, B | C]) || B <- Patterns, C <- [[], [{1.0, '_'}], [{{a}, 2, '_'}]]]]) || A <- Patterns],
    [io:format("~w~n", [maps(Ps)]) || Ps <- [
        [{1, #{}}, {1.0, '_'}], [{1.0, '_'}, {1, #{}}], [{1, #{}}, {1, '_'}], [{1, #{x => 1}}, {1.0, '_'}], [{1, #{x => '_'}}, {1.0, '_'}],
        [{1.0, '_'}, {1, #{x => '_'}}], [{1, #{}}, {2.0, '_'}], [{1, #{}}, {1, #{}}], [{1, #{}}, {0, '_'}], [{1, #{}}, '_']]].

keys() ->
    [{1, a}, {1.0, b}, {1, b}, {1.0, a}, {{a}, 2, x}, {{a, b}, 1, x}, {{a, b}, 1, y}, {{a}, 2, y}, {{a}, 3, z}, [1, a], [1.0, b], [1.0], [1],
     {1, [1.0], q}, {1, [1, 2], q}, {1, [1], z}, 1, 2, 3.0, {<<"abc">>, a}, {<<"abc">>, b}, {1 bsl 70, a}, {float(1 bsl 70), b}].

patterns() ->
    [{1, '_'}, {1.0, '_'}, {{a}, '_', x}, {{a, b}, '_', y}, {{a}, 2, '_'}, {{a, b}, 1, '_'}, [1 | '_'], [1.0 | '_'], [1, '_'], [1.0, '_'],
     {1, ['_'], q}, {1, [1 | '_'], '_'}, {'_', a}, {1, '$1'}, {2.0, '_'}, {<<"abc">>, '_'}, {1 bsl 70, '_'}, {float(1 bsl 70), '_'}].

%% Numbers of the keys that are found: places in the list.
found(Keys, Patterns) ->
    T = ets:new(t, [ordered_set]),
    Places = lists:zip(Keys, lists:seq(1, length(Keys))),
    % One takes the place of an equal one: one by one, as a list goes in in no order.
    [true = ets:insert(T, P) || P <- Places],
    All = ets:select(T, [{{P, '$9'}, [], ['$9']} || P <- Patterns]),
    All = lists:reverse(ets:select_reverse(T, [{{P, '$9'}, [], ['$9']} || P <- Patterns])),
    N = length(All),
    N = ets:select_count(T, [{{P, '_'}, [], [true]} || P <- Patterns]),
    N = ets:select_delete(T, [{{P, '_'}, [], [true]} || P <- Patterns]),
    true = ets:delete(T),
    All.

maps(Patterns) ->
    T = ets:new(t, [ordered_set]),
    true = ets:insert(T, [{{1, #{}}, a}, {{1, #{x => 1, y => 2}}, b}, {{1.0, z}, c}, {{2, #{}}, d}, {{1, #{y => 2}}, e}, {{0, 0}, f}]),
    Match = [{{P, '$1'}, [], ['$1']} || P <- Patterns],
    True = [{{P, '_'}, [], [true]} || P <- Patterns],
    R = {ets:select(T, Match), ets:select_reverse(T, Match), all(ets:select(T, Match, 1)), ets:select_count(T, True), ets:select_delete(T, True), ets:tab2list(T)},
    true = ets:delete(T),
    R.

all('$end_of_table') -> [];
all({L, C}) -> L ++ all(ets:select(C)).
