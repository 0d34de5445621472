%% Lists, tuples, records and maps.
-module(data).
-export([cons/2, walk/2, ends/1, pair/2, triple/3, many/4, element_of/1, fields/1, set/2, new_map/2, known_keys/2, put_map/3,
         put_exact/2, get_map/1, has_keys/1, literal/0]).
-record(r, {a, b, c, d}).

cons(X, Y) -> [X, Y | []].
walk([X | T], A) -> walk(T, [{X, A} | A]);
walk([], A) -> A.
ends([X | _] = L) -> {X, tl(L)}.
pair(X, Y) -> {X, Y}.
triple(X, Y, Z) -> {Z, Y, X}.
many(A, B, C, D) -> {A, B, C, D, 1, x, []}.
element_of(T) -> element(2, T).
fields(#r{a = A, b = B, d = D}) -> {A, B, D}.
set(R, X) -> R#r{b = X, d = 1}.
new_map(K, V) -> #{K => V, a => 1}.
known_keys(A, B) -> #{z => A, b => B, a => 1}.
put_map(M, K, V) -> M#{K => V, b => 2}.
put_exact(M, V) -> M#{a := V}.
get_map(#{a := A, b := B}) -> [A | B].
has_keys(#{a := _, b := _}) -> true;
has_keys(_) -> false.
literal() -> {[1, 2, 3], <<"text">>, #{k => 1.5}}.
