%% Checks ops that replace natives, and ops that make maps at once: small maps of known keys,
%% updates of several keys, elements by a variable index, comparisons as values. Covers the simple
%% case of each and the others. @stress @shared @fence
-module(ops_in_place_of_natives).
-export([main/0, id/1]).

id(X) -> X.

main() ->
    [io:format("~p ~p~n", [F, R]) || {F, R} <- [
        {made, made(1, <<"two">>, [3.0])}, {mixed, mixed(a, 2)}, {twice, twice(id(1), id(2))}, {numbers, numbers(id(x))},
        {boxed, boxed(id(1))}, {full, full(id(0))}, {beyond, beyond(id(0))}, {onto, onto(id(5), id(6))},
        {updates, updates(#{a => 1, b => 2, c => {3}})}, {same, same(#{a => 1, b => [2], c => 3})},
        {missing, catches(fun() -> exact(#{a => 1, b => 2}) end)}, {none, catches(fun() -> exact(id(none)) end)},
        {elements, [catches(fun() -> element(id(I), T) end) || T <- [id({}), id({x}), id({x, <<"y">>, [z]}), id(no), id([])], I <- [0, 1, 2, 3, 4, -1, 1 bsl 59, 1 bsl 70, a, 1.0]]},
        {guards, [guard(I, T) || T <- [{}, {x, y}, no], I <- [0, 1, 2, 3, -1, 1.0, 1 bsl 64]]},
        {compared, [compared(id(A), id(B)) || A <- values(), B <- values()]},
        {many, many(2000, [])}]],
    [begin spawn_link(sender(self(), I)), receive {made, M} -> io:format("~p~n", [M]) end end || I <- [1, 2, 3]],
    ok.

%% Keys in and out of order, values of all kinds.
made(A, B, C) -> #{z => A, a => B, m => {C, A}, q => [B | C]}.
mixed(A, B) -> #{one => 1, two => A, three => <<"three">>, four => B, five => [5]}.
twice(A, B) -> #{k => A, j => 0, k => B}.
numbers(X) -> #{1 => X, 0 => {X}, -1 => X, [] => X, b => X, true => X}.
boxed(X) -> #{{a} => X, "b" => X, <<"c">> => X, d => X, 1.0 => X, (1 bsl 70) => X}.
full(X) ->
    #{a1 => X, a2 => X, a3 => X, a4 => X, a5 => X, a6 => X, a7 => X, a8 => X, b1 => X, b2 => X, b3 => X, b4 => X, b5 => X, b6 => X, b7 => X, b8 => X,
      c1 => X, c2 => X, c3 => X, c4 => X, c5 => X, c6 => X, c7 => X, c8 => X, d1 => X, d2 => X, d3 => X, d4 => X, d5 => X, d6 => X, d7 => X, d8 => X}.
beyond(X) -> M = (full(X))#{e1 => X, e2 => [X]}, {map_size(M), maps:get(e2, M), maps:get(a1, M)}.
onto(A, B) -> (id(#{a => 0, c => 0}))#{b => A, d => B, a => {A}}.
updates(M) -> {M#{a := x, c := [y]}, M#{b => 1, a => 2}, M#{a := 1, zz => 2, c => 3}, M}.
%% Nothing changes.
same(M) -> M#{a := 1, b := maps:get(b, M), c => 3}.
exact(M) -> M#{a := 5, c := 6, b := 7, d := 8}.

guard(I, T) when element(I, T) =:= x -> x;
guard(I, T) when element(I, T) =/= x -> other;
guard(_, _) -> failed.

values() -> [0, 1, -1, 1.0, 0.0, a, b, [], [1], [1.0], {1}, {1, a}, 1 bsl 70, -(1 bsl 70), <<"b">>, <<1:3>>, #{}, #{a => 1}, "ab"].
compared(A, B) -> bits([A =:= B, A =/= B, A == B, A /= B, A < B, A >= B, A > B, A =< B], 0).
bits([true | T], N) -> bits(T, N * 2 + 1);
bits([false | T], N) -> bits(T, N * 2);
bits([], N) -> N.

catches(F) -> try F() catch C:R:S -> {C, R, hd([{M, Fn, A} || {M, Fn, A, _} <- S])} end.

%% Maps made while the heap is full of others, kept and compared.
many(0, L) -> {length(L), lists:sum([V || #{n := V} <- L]), hd(L), lists:last(L)};
many(N, L) -> M = #{n => N, text => integer_to_binary(N), more => [N | case L of [P | _] -> [maps:get(text, P)]; [] -> [] end]}, many(N - 1, [M#{n := N + 1, text := <<"t", (integer_to_binary(N))/binary>>} | L]).

sender(To, I) -> fun() -> To ! {made, made(I, I, lists:seq(1, I))} end.
