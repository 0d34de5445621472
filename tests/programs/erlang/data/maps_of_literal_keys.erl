%% Builds maps whose keys are literals of every kind, in one instruction. They equal maps that are
%% built step by step, and outlive their module. @stress @fence
-module(maps_of_literal_keys).
-export([main/0]).

main() ->
    [check(I, make(I, x), steps(I, x)) || I <- lists:seq(1, 9)],
    check(update, update(old, new), maps:put({a, 1}, new, #{{a, 1} => old, "s" => old})),
    check(twice, twice(first, second), maps:put("k", second, #{})),
    check(thirty_three, map_size(many(1)), 33),
    gone().

make(1, V) -> #{"text" => V, <<"bytes">> => V, {a, 1} => V};
make(2, V) -> #{1.5 => V, 1 => V, 1.0 => V, -0.0 => V};
make(3, V) -> #{16#ffffffffffffffffffff => V, -16#ffffffffffffffffffff => V, 7 => V};
make(4, V) -> #{[] => V, [[]] => V, {} => V, {{}} => V, #{} => V, #{a => 1} => V};
make(5, V) -> #{<<1:3>> => V, <<1:4>> => V, <<>> => V};
make(6, V) -> #{"text" => [V], b => {V}, {z, "deep", [<<"x">>]} => "literal"};
make(7, V) -> #{{n, 3} => 3, {n, 1} => V, {n, 2} => 2};
make(8, V) -> #{#{k => "inner"} => V, #{k => "other"} => V};
make(9, V) -> #{fun lists:map/2 => V, "f" => V, <<"a binary that is longer than sixty-four bytes, so that it is counted and shared">> => V}.

%% The same, key by key; the keys are made while the program runs.
steps(I, V) ->
    lists:foldl(fun({K, W}, M) -> M#{fresh(K) => W} end, #{}, maps:to_list(make(I, V))).

fresh(K) -> binary_to_term(term_to_binary(K)).

update(A, B) -> M = #{{a, 1} => A, "s" => A}, M#{{a, 1} => B}.

twice(A, B) -> M = #{"k" => A}, M#{"k" => B}.

many(V) ->
    #{{1} => V, {2} => V, {3} => V, {4} => V, {5} => V, {6} => V, {7} => V, {8} => V, {9} => V,
      {10} => V, {11} => V, {12} => V, {13} => V, {14} => V, {15} => V, {16} => V, {17} => V,
      {18} => V, {19} => V, {20} => V, {21} => V, {22} => V, {23} => V, {24} => V, {25} => V,
      {26} => V, {27} => V, {28} => V, {29} => V, {30} => V, {31} => V, {32} => V, {33} => V}.

check(Name, A, B) ->
    Same = A =:= B andalso A == B andalso phash(A) =:= phash(B)
        andalso term_to_binary(A, [deterministic]) =:= term_to_binary(B, [deterministic]),
    io:format("~p ~p ~p~n", [Name, Same, size_of(A)]),
    is_map(A) andalso [maps:get(fresh(K), A) =:= V orelse io:format("lost ~p~n", [K]) || {K, V} <- maps:to_list(A)].

phash(T) -> erlang:phash2(T).
size_of(M) when is_map(M) -> {map_size(M), lists:sort(maps:to_list(M))};
size_of(N) -> N.

%% A process keeps a map whose keys lie in a module that is purged.
gone() ->
    Forms = [{attribute, 1, module, literal_keys_gone}, {attribute, 1, export, [{f, 1}]},
             {function, 1, f, 1, [{clause, 1, [{var, 1, 'V'}], [],
                [{map, 1, [{map_field_assoc, 1, {string, 1, "key"}, {var, 1, 'V'}},
                           {map_field_assoc, 1, {tuple, 1, [{atom, 1, k}, {string, 1, "two"}]}, {var, 1, 'V'}}]}]}]}],
    {ok, M, Code} = compile:forms(Forms, []),
    {module, M} = code:load_binary(M, "gone", Code),
    Self = self(),
    {P, Ref} = spawn_monitor(fun() ->
        Map = M:f([1, 2]),
        Self ! {self(), ready},
        receive check -> ok end,
        erlang:garbage_collect(),
        Self ! {self(), Map, Map =:= #{"key" => [1, 2], {k, "two"} => [1, 2]}}
    end),
    receive {P, ready} -> ok end,
    true = code:delete(M),
    Purged = code:soft_purge(M),
    [list_to_tuple(lists:seq(1, 1000)) || _ <- lists:seq(1, 100)],
    P ! check,
    receive {P, Map, Same} -> io:format("~p ~p ~p~n", [Purged, Same, lists:sort(maps:to_list(Map))]) end,
    receive {'DOWN', Ref, process, P, R} -> io:format("~p~n", [R]) end.
