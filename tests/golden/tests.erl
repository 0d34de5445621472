%% Guards, comparisons, selections.
-module(tests).
-export([type/1, chain/1, order/2, same/2, range/1, atoms/1, smalls/1, sparse/1, mixed/1, arity/1, tagged/1, fun_of/2,
         booleans/2, char/1, size_is/1]).

type(X) when is_integer(X) -> integer;
type(X) when is_list(X) -> list.
chain(X) when is_atom(X) -> a;
chain(X) when is_integer(X) -> i;
chain(X) when is_float(X) -> f;
chain(X) when is_binary(X) -> b;
chain(X) when is_pid(X) -> p;
chain(X) when is_map(X) -> m;
chain(X) when is_tuple(X) -> t;
chain(_) -> other.
order(X, Y) when X < Y -> less;
order(X, Y) when X >= Y -> more.
same(X, Y) -> {X == Y, X /= Y, X =:= Y, X =/= Y, X =:= a, X =/= 1.5}.
range(X) when X >= $a, X =< $z -> lower;
range(_) -> other.
atoms(a) -> 1;
atoms(b) -> 2;
atoms(c) -> 3;
atoms(d) -> 4;
atoms(_) -> 5.
smalls(1) -> a;
smalls(2) -> b;
smalls(3) -> c;
smalls(5) -> d.
sparse(1) -> a;
sparse(1000) -> b;
sparse(1000000) -> c;
sparse(_) -> d.
mixed(1.5) -> a;
mixed(2.5) -> b;
mixed(12345678901234567890) -> c;
mixed(_) -> d.
arity({_}) -> 1;
arity({_, _}) -> 2;
arity({_, _, _}) -> 3.
tagged({ok, X}) -> X;
tagged({error, _} = E) -> E.
fun_of(F, N) when is_function(F, N) -> yes;
fun_of(F, _) when is_function(F) -> other.
booleans(X, Y) when is_boolean(X), is_reference(Y); is_port(Y) -> X and Y.
char(C) when is_number(C), is_bitstring(C) -> never;
char(C) when C =:= []; is_list(C) -> list.
size_is(X) when tuple_size(X) =:= 2; map_size(X) > 1; byte_size(X) =:= 0; length(X) < 3; hd(X) =:= 1 -> X.
