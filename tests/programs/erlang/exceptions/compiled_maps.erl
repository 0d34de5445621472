%% Machine code reads, updates and makes small and large maps with keys of all kinds, and fails on
%% terms that are not maps. @stress @fence
-module(compiled_maps).
-export([main/0]).

main() ->
    Small = #{a => 1, b => 2, {c} => 3, 4 => four, "s" => s, 1.5 => f},
    Large = maps:from_list([{I, I * I} || I <- lists:seq(1, 100)] ++ [{a, large}, {b, 2}]),
    Wide = maps:from_list([{list_to_atom("k" ++ integer_to_list(I)), I} || I <- lists:seq(1, 30)] ++ [{a, 1}, {b, 2}]),
    [io:format("~p~n", [rounds(M, 300)]) || M <- [Small, Large, Wide, #{}, #{a => 0, b => 0}, no_map, [], 17, {a, b}]].

rounds(M, 0) -> all(M);
rounds(M, N) -> R = all(M), R = all(M), rounds(M, N - 1).

all(M) ->
    Keys = [a, b, {c}, 4, "s", 1.5, 50, <<"none">>, 1 bsl 70],
    {[two(M), fields(M), guards(M), shape(catch set_a(M, 9)), shape(catch set_ab(M, {x}, "y")), shape(catch exact_a(M, 5)),
      shape(catch exact_same(M)), shape(catch exact_ab(M, 1, 2)), shape(catch put_new(M))],
     [{shape(catch get(K, M)), shape(catch key(K, M)), has(K, M), shape(catch maps:get(K, M))} || K <- Keys],
     made(M, 1, 2.0, [x]), made_large(M)}.

two(#{a := A, b := B}) -> {A, B};
two(#{a := A}) -> A;
two(_) -> none.
fields(#{a := _, b := _, {c} := _}) -> three;
fields(#{4 := _}) -> four;
fields(#{b := _}) -> b;
fields(_) -> none.
guards(M) when map_get(a, M) =:= 1, is_map_key(b, M), map_size(M) > 2 -> yes;
guards(M) when is_map_key(a, M) -> key;
guards(M) when map_size(M) =:= 0 -> empty;
guards(_) -> no.
get(K, M) -> map_get(K, M).
key(K, M) -> is_map_key(K, M).
has(K, M) -> case M of #{K := V} -> {v, V}; _ -> no end.
set_a(M, V) -> map_size(M#{a => V}) + map_get(a, M#{a => V}).
set_ab(M, V, W) -> N = M#{a => V, b => W}, {map_get(a, N), map_get(b, N), map_size(N)}.
exact_a(M, V) -> map_get(a, M#{a := V}).
exact_same(M = #{a := A}) -> erts_debug:same(M, M#{a := A}) orelse M =:= M#{a := A}.
exact_ab(M, V, W) -> N = M#{a := V, b := W}, {map_get(a, N), map_get(b, N)}.
put_new(M) -> N = M#{new_key => M, "other" => 1}, map_size(N).
made(A, B, C, D) ->
    M = #{x => A, y => B, z => {C}, w => D},
    {map_get(x, M) =:= A, map_get(y, M), map_get(z, M), map_get(w, M), map_size(M)}.
made_large(A) -> map_size(#{a1 => A, a2 => [A], a3 => 3, a4 => 4, a5 => 5, a6 => 6, a7 => A, a8 => 8, a9 => {A}, a10 => 1}).

shape({'EXIT', {R, [{M, F, A, _} | _]}}) when is_list(A) -> {error, R, M, F, length(A)};
shape({'EXIT', {R, [{M, F, A, _} | _]}}) -> {error, R, M, F, A};
shape(V) -> V.
