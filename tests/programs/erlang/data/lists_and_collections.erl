%% Checks lists, queues, sets, dicts and arrays with small and large data: sorting, folding and
%% keys. @stress
-module(lists_and_collections).
-export([main/0]).

main() ->
    rand:seed(exsss, {1, 2, 3}),
    L = [rand:uniform(1000) || _ <- lists:seq(1, 3000)],
    io:format("~p~n", [lists:sublist(L, 20)]),
    S = lists:sort(L),
    io:format("~p ~p ~p~n", [hd(S), lists:last(S), erlang:phash2(S)]),
    io:format("~p~n", [length(lists:usort(L))]),
    io:format("~p~n", [lists:sort(fun(A, B) -> A >= B end, [3, 1, 2])]),
    io:format("~p~n", [lists:keysort(2, [{a, 3}, {b, 1}, {c, 2}, {d, 1}])]),
    io:format("~p~n", [[lists:keyfind(b, 1, [{a, 1}, {b, 2}]), lists:keymember(z, 1, []), lists:keytake(a, 1, [{a, 1}]), lists:keystore(a, 1, [], {a, 2}), lists:keyreplace(a, 1, [{a, 1}], {a, x})]]),
    io:format("~p~n", [[lists:reverse([1, 2, 3]), lists:append([[1], [2]]), lists:flatten([1, [2, [3, []]]]), lists:zip([1, 2], [a, b]), lists:unzip3([{1, 2, 3}]), lists:nth(2, [a, b]), lists:nthtail(1, [a, b]), lists:split(1, [a, b, c])]]),
    io:format("~p~n", [[lists:foldl(fun(X, A) -> [X | A] end, [], [1, 2]), lists:foldr(fun(X, A) -> [X | A] end, [], [1, 2]), lists:mapfoldl(fun(X, A) -> {X * 2, A + X} end, 0, [1, 2, 3])]]),
    io:format("~p~n", [[lists:partition(fun(X) -> X > 2 end, [1, 2, 3, 4]), lists:takewhile(fun(X) -> X < 3 end, [1, 2, 3]), lists:dropwhile(fun(X) -> X < 3 end, [1, 2, 3]), lists:splitwith(fun(X) -> X < 2 end, [1, 2])]]),
    io:format("~p~n", [[lists:max([1, 3, 2]), lists:min([b, a]), lists:sum([1, 2.5]), lists:seq(10, 1, -3), lists:duplicate(3, x), lists:delete(b, [a, b, c, b]), [1, 2, 3, 2] -- [2, 3]]]),
    io:format("~p~n", [[lists:merge([1, 3], [2, 4]), lists:umerge([[1, 2], [2, 3]]), lists:prefix("ab", "abc"), lists:suffix("bc", "abc"), lists:any(fun is_atom/1, [1, a]), lists:all(fun is_atom/1, [1, a]), lists:concat([a, 1, "x", 1.5])]]),
    io:format("~p~n", [length(lists:seq(1, 100000) -- lists:seq(2, 100000, 2))]),
    Q = lists:foldl(fun queue:in/2, queue:new(), lists:seq(1, 10)),
    io:format("~p~n", [{queue:out(Q), queue:len(Q), queue:to_list(queue:reverse(Q))}]),
    io:format("~p~n", [ordsets:union([1, 3], [2, 3])]),
    io:format("~p~n", [lists:sort(sets:to_list(sets:intersection(sets:from_list([1, 2, 3]), sets:from_list([2, 3, 4], [{version, 2}]))))]),
    io:format("~p~n", [gb_trees:to_list(lists:foldl(fun(X, T) -> gb_trees:enter(X, X * X, T) end, gb_trees:empty(), [5, 3, 8, 1]))]),
    io:format("~p~n", [gb_sets:to_list(gb_sets:from_list([c, a, b, a]))]),
    io:format("~p~n", [lists:sort(dict:to_list(dict:append(k, 2, dict:from_list([{k, [1]}, {j, []}]))))]),
    io:format("~p~n", [array:to_list(array:set(3, x, array:new([{default, 0}])))]),
    io:format("~p~n", [orddict:store(b, 2, orddict:from_list([{a, 1}, {c, 3}]))]),
    io:format("~p~n", [proplists:get_all_values(a, [{a, 1}, a, {b, 2}, {a, 3}])]),
    G = digraph:new(), [digraph:add_vertex(G, V) || V <- [a, b, c]], digraph:add_edge(G, a, b), digraph:add_edge(G, b, c),
    io:format("~p ~p~n", [digraph:get_path(G, a, c), digraph_utils:topsort(G)]),
    io:format("~p~n", [catch lists:nth(5, [1])]),
    io:format("~p~n", [element(1, element(2, catch lists:map(not_fun, [1])))]),
    io:format("~p~n", [rand:uniform()]),
    io:format("~p~n", [[rand:uniform(100) || _ <- lists:seq(1, 10)]]).
