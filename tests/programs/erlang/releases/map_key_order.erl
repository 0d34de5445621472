%% Checks the order of small-map keys: by name up to OTP 25, then by the index of the atom, so that
%% it shows the order of creation. The order of maps themselves stays that of terms.
%% @stress @shared @seconds 240
-module(map_key_order).
-export([main/0, id/1]).

id(X) -> X.

%% These atoms are of this program alone: nobody has made them before it is loaded.
lit() -> #{zq_last => 1, aq_first => 2, mq_middle => 3}.
mixed() -> #{zq_last => 1, 7 => 2, aq_first => 3, 1.5 => 4, {a} => 5, [] => 6, "s" => 7, <<"b">> => 8, mq_middle => 9, -3 => 10}.

main() ->
    made(),
    Ms = [lit(), mixed(), put_in(id(3)), maps:from_list([{made_z, 1}, {made_a, 2}]), maps:from_list([{N, N} || N <- made()]), lists:foldl(fun(N, M) -> M#{N => 1} end, #{}, lists:reverse(made())),
          maps:merge(lit(), #{bq_new => 1, zz_new => 2}), maps:remove(aq_first, mixed()), (lit())#{aq_first := 9, zq_last := 8}, maps:with([mq_middle, aq_first], lit()),
          maps:map(fun(_, V) -> V + 1 end, lit()), maps:filter(fun(K, _) -> is_atom(K) end, mixed()), wide()],
    [io:format("~w~n~w ~w~n~w~n~p~n", [M, maps:keys(M), maps:values(M), walk(maps:next(maps:iterator(M))), erlang:phash2(M)]) || M <- Ms],
    [io:format("~w~n", [term_to_binary(M)]) || M <- Ms, map_size(M) < 4],
    [io:format("~w~n", [binary_to_term(term_to_binary(M)) =:= M]) || M <- Ms],
    [io:format("~w ", [{A < B, A =:= B, A == B, A =< B}]) || A <- pairs(), B <- pairs()],
    io:format("~n~w~n", [lists:sort(pairs())]),
    io:format("~p~n~w~n", [lit(), maps:fold(fun(K, V, A) -> [{K, V} | A] end, [], mixed())]),
    #{aq_first := X, zq_last := Y} = id(lit()),
    io:format("~w ~w ~w~n", [X, Y, [maps:is_key(K, mixed()) || K <- [zq_last, aq_first, "s", 1.5, 1, nope]]]),
    [io:format("~w~n", [try maps:get(K, lit()) catch C:R -> {C, R} end]) || K <- [aq_first, zq_last, mq_middle, bq_new]],
    io:format("~w~n", [[lists:sort(maps:to_list(M)) =:= lists:sort(maps:to_list(maps:from_list(lists:reverse(maps:to_list(M))))) andalso maps:from_list(lists:reverse(maps:to_list(M))) =:= M || M <- Ms]]),
    T = ets:new(t, [ordered_set]),
    ets:insert(T, [{M} || M <- pairs()]),
    io:format("~w~n~w~n", [ets:tab2list(T), [ets:member(T, {M}) || M <- pairs()]]).

walk({K, V, I}) -> [{K, V} | walk(maps:next(I))];
walk(none) -> [].

put_in(N) -> (id(#{}))#{zq_last => N, bq_put => N, aq_first => N}.

made() -> [list_to_atom(N) || N <- ["made_z", "made_a", "made_q", "made_b"]].

%% Differ in keys or values, at places that are other ones by name than by number.
pairs() ->
    [#{zq_last => 1, aq_first => 2}, #{zq_last => 2, aq_first => 1}, #{zq_last => 1, aq_first => 1}, #{zq_last => 1, mq_middle => 1}, #{mq_middle => 1, aq_first => 1}, #{aq_first => 1.0, zq_last => 1},
     #{made_z => 1, made_a => 2}, #{made_z => 2, made_a => 1}, #{made_a => 1, 1 => 2}, #{made_a => 1, {} => 2}, lit(), (lit())#{zq_last => 0}, (lit())#{aq_first => 0, zq_last => 9}, #{zq_last => #{zq_last => 1, aq_first => 2}, aq_first => 1},
     #{zq_last => #{zq_last => 2, aq_first => 1}, aq_first => 1}].

wide() -> maps:from_list([{list_to_atom("wide_" ++ [C]), C} || C <- lists:reverse(lists:seq($a, $z))]).
