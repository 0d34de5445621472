%% Comparison, order and hashes of compound terms, and what is made of them: searches in lists, keys
%% of maps, tables by key, natives on lists, tuples and maps, large integers, the external format,
%% and receives that pass many messages.
%% See `bench.erl` for how one is run.
-module(terms).
-compile([export_all, nowarn_export_all]).

names() ->
    [member_tuples, member_lists, member_maps, member_binaries, equal_tuples, equal_lists, equal_maps, equal_deep, order_tuples,
     order_lists, order_maps, order_binaries, order_mixed,
     key_tuples, key_lists, key_strings, key_binaries, key_tree_tuples, key_tree_lists, key_tree_binaries,
     hash_tuples, hash_lists, hash_maps, hash_binaries, match_part, table_tuples, ordered_integers, ordered_tuples, ordered_lists,
     ordered_binaries, ordered_range,
     put_key, put_new_key, change_key, put_tree_key, get_tree_key, find, get_default, put_native, remove_native, merge_native, is_key,
     append_lists, reverse_onto, set_element, tuple_list, integer_binary, sizes, selfs, dictionary_get,
     digits, remainders, to_external, of_external, string_functions,
     receive_by_reference, receive_by_tag, receive_by_guard, receive_by_map].

%% Results that stock gives.
expected(Name) -> maps:get(Name, results()).
results() ->
    #{member_tuples => false, member_lists => false, member_maps => false, member_binaries => false, equal_tuples => 2000000,
      equal_lists => 1000000, equal_maps => 1500000, equal_deep => 30000, order_tuples => 5000, order_lists => 5000, order_maps => 5000,
      order_binaries => 5000, order_mixed => 5000, key_tuples => 12, key_lists => 12, key_strings => 12, key_binaries => 9,
      key_tree_tuples => 1000, key_tree_lists => 1000, key_tree_binaries => 1000, hash_tuples => 49206251, hash_lists => 42962980,
      hash_maps => 1287392, hash_binaries => 117145722, match_part => 100, table_tuples => 5000, ordered_integers => 5000,
      ordered_tuples => 5000, ordered_lists => 5000, ordered_binaries => 5000, ordered_range => 5000, put_key => 5,
      put_new_key => 3500000, change_key => 5, put_tree_key => 1000, get_tree_key => 1001000000, find => 6000000, get_default => 2000000,
      put_native => 1, remove_native => 2500000, merge_native => 2100000, is_key => 2000000, append_lists => 5000000,
      reverse_onto => 5000000, set_element => 2, tuple_list => 4000000, integer_binary => 5888896, sizes => 81000000, selfs => true,
      dictionary_get => 3000000, digits => 700, remainders => 249278028903, to_external => 117, of_external => 6,
      string_functions => 259, receive_by_reference => 80200, receive_by_tag => 400, receive_by_guard => 80200, receive_by_map => 80200}.

%% The result of F, which is called N times.
repeat(0, _, R) -> R;
repeat(N, F, _) -> repeat(N - 1, F, F()).

%% A copy that shares nothing.
fresh(T) -> binary_to_term(term_to_binary(T)).

searched(L, X, N) -> repeat(N, fun() -> lists:member(X, L) end, ok).
member_tuples() -> searched([{I, a, <<"x">>} || I <- lists:seq(1, 100)], fresh({100, b, <<"x">>}), 100000).
member_lists() -> searched([[x, I, b] || I <- lists:seq(1, 100)], fresh([x, 200, b]), 60000).
member_maps() -> searched([#{id => I, name => a} || I <- lists:seq(1, 100)], fresh(#{id => 200, name => a}), 20000).
member_binaries() -> searched([integer_to_binary(I) || I <- lists:seq(1001, 1100)], fresh(<<"2000">>), 60000).

compared(T, N) -> compared(N, fresh(T), fresh(T), 0).
compared(0, _, _, S) -> S;
compared(N, A, B, S) ->
    case A =:= B of
        true -> compared(N - 1, A, B, S + 1);
        false -> compared(N - 1, A, B, S)
    end.
equal_tuples() -> compared({request, 17, <<"name">>, {1, 2, 3}, [a, b]}, 2000000).
equal_lists() -> compared("a string of some forty characters, say..", 1000000).
equal_maps() -> compared(#{id => 17, name => <<"name">>, at => {1, 2}, flag => true}, 1500000).
equal_deep() -> compared([{I, [{a, I}, {b, <<"b">>}], #{x => I}} || I <- lists:seq(1, 50)], 30000).

mixed(I) -> (I * 7919) rem 10007.
sorted(L, N) -> repeat(N, fun() -> length(lists:sort(L)) end, ok).
order_tuples() -> sorted([{mixed(I) rem 10, mixed(I), a} || I <- lists:seq(1, 5000)], 20).
order_lists() -> sorted([[x, mixed(I) rem 100 | integer_to_list(mixed(I))] || I <- lists:seq(1, 5000)], 20).
order_maps() -> sorted([#{a => mixed(I) rem 10, b => mixed(I)} || I <- lists:seq(1, 5000)], 20).
order_binaries() -> sorted([<<"name", (integer_to_binary(mixed(I)))/binary>> || I <- lists:seq(1, 5000)], 20).
order_mixed() -> sorted([element(1 + I rem 4, {mixed(I), {mixed(I)}, [mixed(I)], <<(mixed(I)):32>>}) || I <- lists:seq(1, 5000)], 20).

%% Look-ups in a map of 12 keys, or of 1,000.
looked_up(Keys, N) ->
    M = maps:from_list([{K, true} || K <- Keys]),
    Again = [fresh(K) || K <- Keys],
    repeat(N, fun() -> found(Again, M, 0) end, ok).
found([K | T], M, S) -> case M of #{K := true} -> found(T, M, S + 1); _ -> found(T, M, S) end;
found([], _, S) -> S.
key_tuples() -> looked_up([{key, I} || I <- lists:seq(1, 12)], 60000).
key_lists() -> looked_up([[key, I] || I <- lists:seq(1, 12)], 60000).
key_strings() -> looked_up(["name", "size", "colour", "x", "y", "width", "height", "title", "body", "time", "user", "id"], 60000).
key_binaries() -> looked_up([<<"name">>, <<"size">>, <<"colour">>, <<"x">>, <<"y">>, <<"width">>, <<"height">>, <<"title">>, <<"id">>], 60000).
key_tree_tuples() -> looked_up([{key, I} || I <- lists:seq(1, 1000)], 1000).
key_tree_lists() -> looked_up([integer_to_list(I) || I <- lists:seq(1001, 2000)], 1000).
key_tree_binaries() -> looked_up([integer_to_binary(I) || I <- lists:seq(1001, 2000)], 1000).

hashed(T, N) -> repeat(N, fun() -> erlang:phash2(T) end, ok).
hash_tuples() -> hashed({request, 17, {a, b, 3}, [x, y]}, 1000000).
hash_lists() -> hashed("a string of some forty characters, say..", 500000).
hash_maps() -> hashed(#{id => 17, name => <<"name">>, at => {1, 2}}, 500000).
hash_binaries() -> hashed(<<"a string of some forty characters, say..">>, 1000000).

match_part() ->
    T = ets:new(t, [set]),
    ets:insert(T, [{{user, I}, I rem 10, [a, I]} || I <- lists:seq(1, 1000)]),
    N = repeat(200, fun() -> length(ets:match_object(T, {'_', 3, '_'})) end, ok),
    ets:delete(T),
    N.
kept(Type, Keys, N) ->
    T = ets:new(t, [Type]),
    S = repeat(N, fun() ->
        [ets:insert(T, {K, 1}) || K <- Keys],
        R = lists:sum([ets:lookup_element(T, K, 2) || K <- Keys]),
        ets:delete_all_objects(T),
        R
    end, ok),
    ets:delete(T),
    S.
table_tuples() -> kept(set, [{user, mixed(I)} || I <- lists:seq(1, 5000)], 20).
ordered_integers() -> kept(ordered_set, [mixed(I) || I <- lists:seq(1, 5000)], 20).
ordered_tuples() -> kept(ordered_set, [{user, mixed(I)} || I <- lists:seq(1, 5000)], 20).
ordered_lists() -> kept(ordered_set, ["user" ++ integer_to_list(mixed(I)) || I <- lists:seq(1, 5000)], 20).
ordered_binaries() -> kept(ordered_set, [<<"user", (integer_to_binary(mixed(I)))/binary>> || I <- lists:seq(1, 5000)], 20).
ordered_range() ->
    T = ets:new(t, [ordered_set]),
    ets:insert(T, [{{I rem 50, I}, I} || I <- lists:seq(1, 5000)]),
    N = repeat(20, fun() -> through(T, ets:first(T), 0) end, ok),
    ets:delete(T),
    N.
through(_, '$end_of_table', N) -> N;
through(T, K, N) -> through(T, ets:next(T, K), N + 1).

small() -> #{name => 1, size => 2, colour => 3, x => 4, y => 5, width => 6}.
keys() -> [name, size, colour, x, y, width].
put_key() -> maps:get(x, put_key(500000, keys(), keys(), small())).
put_key(0, _, _, M) -> M;
put_key(N, [], Keys, M) -> put_key(N, Keys, Keys, M);
put_key(N, [K | T], Keys, M) -> put_key(N - 1, T, Keys, M#{K => N}).
change_key() -> maps:get(x, change_key(500000, keys(), keys(), small())).
change_key(0, _, _, M) -> M;
change_key(N, [], Keys, M) -> change_key(N, Keys, Keys, M);
change_key(N, [K | T], Keys, M) -> change_key(N - 1, T, Keys, M#{K := N}).
put_new_key() -> put_new_key(500000, small(), 0).
put_new_key(0, _, S) -> S;
put_new_key(N, M, S) -> put_new_key(N - 1, M, S + map_size(M#{height => N})).
tree() -> maps:from_list([{I, I} || I <- lists:seq(1, 1000)]).
put_tree_key() -> put_tree_key(200000, tree()).
put_tree_key(0, M) -> map_size(M);
put_tree_key(N, M) -> put_tree_key(N - 1, M#{N rem 1000 + 1 => N}).
get_tree_key() -> get_tree_key(2000000, tree(), 0).
get_tree_key(0, _, S) -> S;
get_tree_key(N, M, S) -> K = N rem 1000 + 1, #{K := V} = M, get_tree_key(N - 1, M, S + V).

find() -> find(2000000, small(), 0).
find(0, _, S) -> S;
find(N, M, S) -> case maps:find(colour, M) of {ok, V} -> find(N - 1, M, S + V); error -> S end.
get_default() -> get_default(2000000, small(), 0).
get_default(0, _, S) -> S;
get_default(N, M, S) -> get_default(N - 1, M, S + maps:get(none, M, 1)).
is_key() -> is_key(2000000, small(), 0).
is_key(0, _, S) -> S;
is_key(N, M, S) -> case maps:is_key(none, M) of true -> S; false -> is_key(N - 1, M, S + 1) end.
put_native() -> maps:get(x, put_native(500000, small())).
put_native(0, M) -> M;
put_native(N, M) -> put_native(N - 1, maps:put(x, N, M)).
remove_native() -> remove_native(500000, small(), 0).
remove_native(0, _, S) -> S;
remove_native(N, M, S) -> remove_native(N - 1, M, S + map_size(maps:remove(x, M))).
merge_native() -> merge_native(300000, small(), #{x => 1, height => 2}, 0).
merge_native(0, _, _, S) -> S;
merge_native(N, A, B, S) -> merge_native(N - 1, A, B, S + map_size(maps:merge(A, B))).

append_lists() -> append_lists(1000000, [a, b, c, d], [e], 0).
append_lists(0, _, _, S) -> S;
append_lists(N, A, B, S) -> append_lists(N - 1, A, B, S + length(A ++ B)).
reverse_onto() -> reverse_onto(1000000, [a, b, c, d], [e], 0).
reverse_onto(0, _, _, S) -> S;
reverse_onto(N, A, B, S) -> reverse_onto(N - 1, A, B, S + length(lists:reverse(A, B))).
set_element() -> element(3, set_element(2000000, {a, b, c, d, e, f})).
set_element(0, T) -> T;
set_element(N, T) -> set_element(N - 1, setelement(N rem 6 + 1, T, N)).
tuple_list() -> tuple_list(1000000, {a, b, c, d}, 0).
tuple_list(0, _, S) -> S;
tuple_list(N, T, S) -> tuple_list(N - 1, T, S + length(tuple_to_list(T))).
integer_binary() -> integer_binary(1000000, 0).
integer_binary(0, S) -> S;
integer_binary(N, S) -> integer_binary(N - 1, S + byte_size(integer_to_binary(N))).
sizes() -> sizes(3000000, <<"abc">>, 0).
sizes(0, _, S) -> S;
sizes(N, B, S) -> sizes(N - 1, B, S + byte_size(B) + bit_size(B)).
selfs() -> is_pid(selfs(5000000, none)).
selfs(0, P) -> P;
selfs(N, _) -> selfs(N - 1, self()).
dictionary_get() ->
    put(colour, 1),
    put(size, 2),
    dictionary_get(3000000, 0).
dictionary_get(0, S) -> S;
dictionary_get(N, S) -> dictionary_get(N - 1, S + get(colour)).

big() -> binary_to_integer(binary:copy(<<"7">>, 100)).
digits() -> repeat(4000, fun() -> all_digits(big(), 0) end, ok).
all_digits(0, S) -> S;
all_digits(N, S) -> all_digits(N div 10, S + N rem 10).
remainders() -> remainders(1000000, big(), 0).
remainders(0, _, S) -> S;
remainders(N, B, S) -> remainders(N - 1, B, S + B rem (N + 17)).

value() -> #{id => 17, name => <<"some name">>, tags => [one, two, three], at => {1, 2.5}, rest => "text", list => [1, 2, 300, 70000]}.
to_external() -> T = value(), repeat(200000, fun() -> byte_size(term_to_binary(T)) end, ok).
of_external() -> B = term_to_binary(value()), repeat(200000, fun() -> map_size(binary_to_term(B)) end, ok).
string_functions() ->
    T = <<"  Some Words, of which there are several: some in Capitals  ">>,
    repeat(3000, fun() ->
        byte_size(string:trim(T)) + byte_size(string:lowercase(T)) + string:length(T) + length(string:split(T, <<" ">>, all)) +
            byte_size(iolist_to_binary(string:replace(T, <<"some">>, <<"any">>, all))) + length(string:tokens(binary_to_list(T), " ,"))
    end, ok).

%% 400 messages that are received from the last to the first.
receive_by_reference() -> repeat(100, fun() -> by_reference([begin R = make_ref(), self() ! {reply, R, I}, R end || I <- lists:seq(1, 400)]) end, ok).
by_reference(Refs) -> lists:sum([receive {reply, R, I} -> I end || R <- lists:reverse(Refs)]).
filled() -> [self() ! {item, I, I} || I <- lists:seq(1, 400)].
receive_by_tag() ->
    repeat(400, fun() ->
        filled(),
        self() ! {last, 1, 1},
        receive {last, _, _} -> ok end,
        emptied(0)
    end, ok).
emptied(N) -> receive {item, _, _} -> emptied(N + 1) after 0 -> N end.
receive_by_guard() -> repeat(100, fun() -> filled(), by_guard(400, 0) end, ok).
by_guard(0, S) -> S;
by_guard(N, S) -> receive {item, I, V} when I >= N -> by_guard(N - 1, S + V) end.
receive_by_map() -> repeat(100, fun() -> [self() ! {item, #{id => I}} || I <- lists:seq(1, 400)], by_map(400, 0) end, ok).
by_map(0, S) -> S;
by_map(N, S) -> receive {item, #{id := N}} -> by_map(N - 1, S + N) end.
