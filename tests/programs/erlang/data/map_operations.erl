%% Checks small and large maps: order of keys, updates, conversion through lists, and comparison.
%% @stress @shared @fence
-module(map_operations).
-export([main/0]).

main() ->
    M = #{a => 1, "b" => 2, <<"c">> => 3, 4 => four, 4.0 => fourf, {t} => [], [] => nil, #{} => map},
    io:format("~p~n~w~n", [M, M]),
    io:format("~p~n", [maps:keys(M)]),
    Big = maps:from_list([{I, I * I} || I <- lists:seq(1, 1000)]),
    io:format("~p ~p~n", [maps:size(Big), lists:sum(maps:values(Big))]),
    io:format("~w~n", [lists:sublist(maps:keys(Big), 40)]),
    io:format("~w~n", [lists:sublist(maps:keys(maps:from_list([{{1, I}, I} || I <- lists:seq(1, 100)])), 20)]),
    io:format("~w~n", [lists:sublist(maps:keys(maps:from_list([{integer_to_binary(I), I} || I <- lists:seq(1, 100)])), 20)]),
    B2 = lists:foldl(fun(K, A) -> maps:remove(K, A) end, Big, lists:seq(1, 1000, 2)),
    io:format("~p ~p~n", [maps:size(B2), maps:is_key(3, B2)]),
    io:format("~p~n", [lists:foldl(fun(K, A) -> maps:remove(K, A) end, Big, lists:seq(11, 1000))]),
    io:format("~p~n", [maps:get(17, Big#{17 := x})]),
    io:format("~p~n", [maps:fold(fun(K, V, A) -> K + V + A end, 0, Big)]),
    io:format("~p~n", [maps:size(maps:filter(fun(K, _) -> K rem 7 =:= 0 end, Big))]),
    io:format("~p~n", [maps:merge(#{a => 1, b => 2}, #{b => 3, c => 4})]),
    io:format("~p~n", [maps:merge_with(fun(_, X, Y) -> X + Y end, #{a => 1, b => 2}, #{b => 3, c => 4})]),
    io:format("~p~n", [maps:update_with(a, fun(X) -> X + 1 end, #{a => 1})]),
    io:format("~p~n", [maps:groups_from_list(fun(X) -> X rem 3 end, lists:seq(1, 10))]),
    io:format("~p~n", [[maps:take(a, #{a => 1}), maps:take(z, #{}), maps:find(a, #{a => 1}), maps:find(z, #{})]]),
    io:format("~p~n", [lists:sort([#{a => 1}, #{}, #{b => 0}, #{a => 0, b => 0}, [], {}, x, 1, 1.0, <<>>])]),
    io:format("~p ~p~n", [#{1 => a} == #{1.0 => a}, #{a => 1} == #{a => 1.0}]),
    io:format("~p ~p~n", [#{a => 1} =:= #{a => 1.0}, Big =:= maps:from_list(lists:reverse(maps:to_list(Big)))]),
    #{a := X, 4 := Y} = M,
    io:format("~p ~p~n", [X, Y]),
    I = maps:iterator(Big),
    io:format("~p~n", [count(maps:next(I), 0)]),
    io:format("~p~n", [maps:intersect(#{a => 1, b => 2}, #{b => x})]),
    io:format("~p~n", [maps:without([a], maps:with([a, b, z], #{a => 1, b => 2}))]),
    io:format("~p~n", [erlang:phash2(Big)]),
    io:format("~p~n", [erlang:phash2(M)]),
    io:format("~p~n", [erts_debug:flat_size(Big)]),
    [io:format("~p~n", [catch erts_debug:map_info(maps:from_list([{K(N), N} || N <- lists:seq(1, Size)]))])
     || K <- [fun(N) -> N end, fun(N) -> {N, -N} end, fun(N) -> <<N:16>> end, fun(N) -> N / 7 end], Size <- [33, 34, 100, 1000, 5000]],
    io:format("~p~n", [[element(1, catch_info(X)) || X <- [#{}, M, x]]]),
    io:format("~p~n", [byte_size(term_to_binary(Big))]),
    io:format("~p~n", [binary_to_term(term_to_binary(Big)) =:= Big]),
    Atoms = maps:from_list([{list_to_atom("k" ++ integer_to_list(N)), N} || N <- lists:seq(1, 100)]),
    io:format("~p~n", [lists:sort(maps:to_list(Atoms)) =:= lists:sort([{list_to_atom("k" ++ integer_to_list(N)), N} || N <- lists:seq(1, 100)])]).

count(none, N) -> N;
count({_, _, I}, N) -> count(maps:next(I), N + 1).

catch_info(X) -> try erts_debug:map_info(X) of _ -> {told} catch error:badarg -> {badarg}; error:{badmap, X} -> {badmap} end.
