%% Reads and updates maps by literal keys, and calls natives on maps in guards and bodies: small
%% maps with immediate keys, which are scanned word by word, and all others. @stress @shared @fence
-module(maps_with_literal_keys).
-export([main/0, id/1]).

id(X) -> X.

main() ->
    %% Of many results a hash is told, beside the first ones.
    [case is_list(R) andalso length(R) > 8 of true -> io:format("~p ~p ~p ~p~n", [F, length(R), lists:sublist(R, 5, 12), erlang:phash2(R)]); false -> io:format("~p ~p~n", [F, R]) end || {F, R} <- [
        {one, [one(id(M)) || M <- maps()]}, {several, [several(id(M)) || M <- maps()]}, {variable, [variable(id(M), id(K)) || M <- maps(), K <- keys()]},
        {same_register, [same_register(id(M), id(K)) || M <- maps(), K <- keys()]}, {has, [has(id(M), id(K)) || M <- maps(), K <- keys()]},
        {guards, [guards(id(M), id(K)) || M <- maps() ++ [a, [], {}], K <- keys()]},
        {bodies, [catches(fun() -> bodies(id(M), id(K)) end) || M <- maps() ++ [a, [], {}], K <- keys()]},
        {updates, [told(catches(fun() -> updates(id(M), id(V)) end)) || M <- maps() ++ [a], V <- [1, x, [1], 1.0]]},
        {puts, [told(catches(fun() -> puts(id(M), id(V)) end)) || M <- maps() ++ [a], V <- [1, x]]},
        {news, [told(catches(fun() -> news(id(M), id(V)) end)) || M <- maps() ++ [a | [maps:from_list([{I, I} || I <- lists:seq(10, N)]) || N <- lists:seq(30, 42)]], V <- [1, [x]]]},
        {nothing, [nothing(id(M)) || M <- [#{a => 1, b => 2}, #{a => 1, b => [2], c => 3}]]},
        {binaries, binaries()}, {again, again(id(#{a => 1, b => 2}))}, {loop, loop(20000, #{count => 0, sum => 0, last => none, list => [], a => 1})},
        {many, many(3000, #{n => 0, kept => []}, [])}, {shared, shared(id(#{n => 0, list => lists:seq(1, 300), map => big(50)}), 60)}]],
    ok.

%% Keys that are bytes: on a heap, in the middle of another binary, not at a byte, and no whole
%% number of them.
binaries() ->
    Keys = [<<>>, <<0>>, <<"a">>, <<"ab">>, <<"abc">>, <<"b">>, <<255>>, <<5:3>>, <<"a", 1:1>>, <<"ab", 0:4>>, binary:copy(<<"long">>, 40)],
    Part = fun(B) -> <<_, R/bits>> = <<"x", B/bits>>, id(R) end,
    Off = fun(B) -> <<_:3, R/bits>> = <<5:3, B/bits>>, id(R) end,
    Forms = [fun id/1, Part, Off],
    [begin
        M = lists:foldl(fun(K, A) -> maps:put(F(K), bit_size(K), A) end, #{}, Ks),
        {erlang:phash2(maps:keys(M)), [maps:get(G(K), M, none) || G <- Forms, K <- Keys ++ [<<"c">>, <<"abd">>, <<6:3>>, <<"a", 0:1>>]],
         [map_size(lists:foldl(fun(K, A) -> A#{G(K) => new} end, M, Keys)) || G <- Forms]}
    end || F <- Forms, Ks <- [Keys, lists:reverse(Keys)]].

%% The order of many keys is the runtime's own.
told(T) -> case erts_debug:flat_size(T) > 200 of true -> {size, erlang:phash2(T)}; false -> T end.
big(N) -> maps:from_list([{I, {I}} || I <- lists:seq(1, N)] ++ [{a, large}, {[], nil}]).
maps() ->
    [#{}, #{a => 1}, #{a => 1, b => 2}, #{a => {1}, b => [2], c => <<"3">>, [] => 4, 1 => one, 1.0 => float, <<"k">> => bin, {t} => tuple, (1 bsl 70) => big},
     maps:from_list([{I, I} || I <- lists:seq(1, 32)]), maps:from_list([{I, I} || I <- lists:seq(1, 33)]), big(40), big(500)].
keys() -> [a, b, zz, [], 1, 33, 1.0, -1, <<"k">>, {t}, "s", 1 bsl 70].

one(#{a := A}) -> {a, A};
one(#{[] := A}) -> {nil, A};
one(#{1 := A}) -> {one, A};
one(#{}) -> none.
several(#{a := A, b := B, c := C}) -> {A, B, C};
several(#{b := B, a := A}) -> {A, B};
several(#{1 := A, 32 := B}) -> {A, B};
several(#{1 := A, 1.0 := B, <<"k">> := C}) -> {A, B, C};
several(#{a := A, <<"k">> := B}) -> {A, B};
several(_) -> none.
variable(M, K) -> case M of #{K := V, a := A} -> {V, A}; #{K := V} -> V; _ -> none end.
same_register(M, K) -> case M of #{K := K1} -> case M of #{K1 := V} -> V; _ -> {no, K1} end; _ -> none end.
has(M, K) -> case M of #{a := _, K := _} -> both; #{K := _} -> one; #{a := _} -> a; _ -> none end.
guards(M, K) when is_map_key(K, M), map_get(K, M) =:= 1 -> first;
guards(M, K) when is_map_key(a, M), map_get(a, M) == map_get(K, M) -> same;
guards(M, K) when map_get(K, M) > 0 -> more;
guards(M, K) when not is_map_key(K, M) -> none;
guards(M, a) when map_size(M) > 3 -> size;
guards(_, _) -> failed.
bodies(M, K) -> {is_map_key(K, M), is_map_key(a, M), catches(fun() -> map_get(K, M) end), maps:get(K, M, default), catches(fun() -> maps:get(a, M) end), catches(fun() -> {maps:get(K, M), map_get([], M)} end)}.

updates(M, V) -> {catches(fun() -> M#{a := V} end), catches(fun() -> M#{a := V, b := {V}} end), catches(fun() -> M#{1 := V, a := V} end), catches(fun() -> M#{[] := V} end), catches(fun() -> M#{V := V} end)}.
puts(M, V) -> {M#{a => V}, M#{a => V, b => {V}}, M#{1 => V, <<"k">> => V}, M#{b => V, new => V}, M#{V => V, a => 0}}.
%% Nothing changes, and the same key twice.
nothing(M) -> {M#{a := 1}, M#{a := 1, b := maps:get(b, M)}, M#{a => 1}, M}.
again(M) -> {M#{id(a) := 2, a := 1}, M#{a := id(1), id(b) := id(3), id(a) := id(4)}, M#{a => 2, id(a) => id(1)}}.

loop(0, M) -> M;
loop(N, #{count := C, sum := S, list := L} = M) -> loop(N - 1, M#{count := C + 1, sum := S + N, last => {N}, list := case L of [_, _, _ | _] -> [N]; _ -> [N | L] end}).
many(0, M, L) -> {M, length(L), erlang:phash2(L)};
many(N, #{n := C} = M, L) -> M1 = M#{n := C + 1, kept := [integer_to_binary(N)]}, many(N - 1, M1, [M1 | lists:sublist(L, 100)]).
%% Updates of maps whose parts lie elsewhere.
shared(M, N) -> P = spawn_link(fun() -> answer() end), shared(P, M, N).
shared(P, M, 0) -> P ! stop, {maps:get(n, M), erlang:phash2(M)};
shared(P, M, N) -> P ! {self(), M}, X = M#{n := N}, receive {P, Y} -> shared(P, case N rem 2 of 0 -> X; _ -> Y#{n => maps:get(n, Y) + 1} end, N - 1) end.
answer() -> receive {From, #{n := N, list := [H | T]} = M} -> From ! {self(), M#{list := T ++ [H], n := N + 1}}, answer(); stop -> ok end.

catches(F) -> try F() catch C:R -> {C, R} end.

%% Several keys, of which some are new, or all: up to what a small map holds, and over that.
news(M, V) ->
    N = M#{zz => V, a => V, aa => [V], '' => 1},
    O = N#{2 => V, {t} => V, <<"new">> => 1, [] => V, 2.5 => V, (1 bsl 70) => V},
    P = O#{a := 2, {t} := 3, <<"new">> := [V]},
    {N, O, P, maps:size(P), maps:keys(N) =:= lists:sort(maps:keys(N)) orelse maps:size(N) > 32, P =:= maps:from_list(maps:to_list(P)),
     catch M#{zz := 1, a := 2}}.
