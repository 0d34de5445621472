%% Compares and sorts pairs of keys of every shape, and uses them as keys of an `ordered_set`, where
%% an equal key replaces the one before. @stress @shared @fence
-module(ordered_keys).
-export([main/0]).

main() ->
    rand:seed(exsss, {1, 2, 3}),
    Terms = [term(rand:uniform(4)) || _ <- lists:seq(1, 400)],
    Signs = [{X < Y, X == Y, X =:= Y, X > Y} || X <- Terms, Y <- Terms],
    say(pairs, erlang:phash2(Signs)),
    say(sorted, erlang:phash2(lists:sort(Terms))),
    say(unique, erlang:phash2(lists:usort(Terms))),
    T = ets:new(t, [ordered_set]),
    _ = [ets:insert(T, {K, N}) || {K, N} <- lists:zip(Terms, lists:seq(1, 400))],
    say(table, erlang:phash2(ets:tab2list(T))),
    say(found, erlang:phash2([ets:lookup(T, K) || K <- Terms])),
    say(walked, erlang:phash2(walk(T, ets:first(T)))),
    replaced(),
    prefixes().

say(What, Value) -> io:format("~p: ~p~n", [What, Value]).

walk(_, '$end_of_table') -> [];
walk(T, K) -> [K | walk(T, ets:next(T, K))].

%% Few of each kind, so that many are equal, or in part.
term(0) -> leaf();
term(D) ->
    Next = D - rand:uniform(D),
    case rand:uniform(9) of
        1 -> leaf();
        2 -> [term(Next) || _ <- lists:seq(1, rand:uniform(3))];
        3 -> [term(Next) | leaf()];
        4 -> maps:from_list([{key(), term(Next)} || _ <- lists:seq(1, rand:uniform(3) - 1)]);
        5 -> maps:from_list([{I, term(Next)} || I <- lists:seq(1, 34 - rand:uniform(3))]);
        6 -> {leaf(), leaf(), term(Next)};
        7 -> {leaf(), term(Next), leaf()};
        8 -> {term(Next)};
        9 -> list_to_tuple([leaf() || _ <- lists:seq(1, rand:uniform(4) - 1)])
    end.

key() -> element(rand:uniform(6), {a, b, 1, 1.0, <<"k">>, {c}}).
leaf() ->
    element(rand:uniform(20),
            {a, b, 'a b', 0, 1, 1.0, -1, 0.5, 1 bsl 70, -(1 bsl 70), float(1 bsl 70), [], <<>>, <<"ab">>, <<"abc">>, <<5:3>>,
             {}, #{}, binary:copy(<<"x">>, 70), fun erlang:abs/1}).

replaced() ->
    T = ets:new(t, [ordered_set]),
    [true = ets:insert(T, {K, V}) || {K, V} <- [{{a, 1}, x}, {{a, 1.0}, y}, {[1], z}, {[1.0], u}, {1, v}, {1.0, w}, {#{k => 1}, m}, {#{k => 1.0}, n}]],
    say(replaced, ets:tab2list(T)),
    true = ets:update_element(T, {a, 1}, {2, changed}),
    3 = ets:update_counter(T, {c, 1}, 3, {{c, 1.0}, 0}),
    5 = ets:update_counter(T, {c, 1.0}, 2),
    false = ets:insert_new(T, {{c, 1}, other}),
    say(updated, ets:tab2list(T)),
    say(taken, [ets:take(T, {a, 1}), ets:take(T, {a, 1}), ets:lookup(T, {c, 1})]),
    true = ets:delete_object(T, {{c, 1}, 5}),
    say(stays, ets:lookup(T, {c, 1})),
    true = ets:delete_object(T, {{c, 1.0}, 5}),
    true = ets:delete(T, 1),
    say(rest, {ets:info(T, size), ets:tab2list(T)}),
    %% Large objects take each other's place again and again.
    [true = ets:insert(T, {{big, N rem 7, <<"k">>}, lists:seq(1, N)}) || N <- lists:seq(1, 500)],
    say(big, {ets:info(T, size), erlang:phash2(ets:tab2list(T))}),
    Memory = ets:info(T, memory),
    [true = ets:insert(T, {{big, N rem 7, <<"k">>}, []}) || N <- lists:seq(1, 7)],
    say(smaller, ets:info(T, memory) < Memory).

prefixes() ->
    T = ets:new(t, [ordered_set]),
    [ets:insert(T, {{A, B, C}, A}) || A <- [1, 1.5, x, <<"b">>, {n, 1}, [1, 2]], B <- [<<"p">>, q, {r, 2}, #{s => 1}], C <- lists:seq(1, 3)],
    Patterns = [{1, '_', '_'}, {1, q, '_'}, {'_', q, 1}, {x, {r, '_'}, '_'}, {x, {r, 2}, '$1'}, {<<"b">>, <<"p">>, '_'}, {{n, '_'}, q, '_'},
                {[1 | '_'], '_', 2}, {1.0, q, '$2'}, {x, #{s => 1}, '_'}, {x, #{}, '$1'}, {1, q}, '_', '$1', {{n, 1}, #{s => 1}, 3}],
    say(objects, [length(ets:match_object(T, {P, '_'})) || P <- Patterns]),
    say(hash, erlang:phash2([ets:match_object(T, {P, '_'}) || P <- Patterns])),
    say(selected, erlang:phash2([ets:select(T, [{{P, '$9'}, [{'=/=', '$9', x}], ['$_']}, {{P, x}, [], ['$$']}]) || P <- Patterns])),
    say(counted, [ets:select_count(T, [{{P, '_'}, [], [true]}]) || P <- Patterns]),
    say(reverse, erlang:phash2([ets:select_reverse(T, [{{P, '_'}, [], ['$_']}]) || P <- Patterns])),
    say(deleted, [ets:select_delete(T, [{{P, '_'}, [], [true]}]) || P <- Patterns]).
