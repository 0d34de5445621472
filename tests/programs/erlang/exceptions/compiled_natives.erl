%% Machine code calls natives that have a template, with operands that the template does not handle.
%% @stress
-module(compiled_natives).
-export([main/0]).

-define(LEAST, -576460752303423488).

main() ->
    Values = [0, 1, -1, 7, -7, ?LEAST, -?LEAST, ?LEAST - 1, 1 bsl 80, -(1 bsl 80), 1.5, -0.0, true, false, a, [], [1 | 2], [1, 2],
              lists:seq(1, 255), lists:seq(1, 256), lists:seq(1, 300), {}, {1}, <<>>, <<1, 2, 3>>, <<1:3>>, tail(<<0:800>>, 10), part(<<5:13>>),
              #{}, #{a => 1}, maps:from_list([{I, I} || I <- lists:seq(1, 40)]), fun() -> 1 end, fun(_, _) -> 2 end, fun lists:map/2],
    rounds(Values, 20),
    [io:format("~P ~P~n", [V, 8, one(V), 40]) || V <- Values],
    Some = [0, -5, ?LEAST, -?LEAST, 1.5, true, false, b, [], <<"x">>],
    rounds2(Some, 20),
    [io:format("~p ~p ~p~n", [A, B, two(A, B)]) || A <- Some, B <- Some].

tail(<<_, R/binary>>, N) when N > 0 -> tail(R, N - 1);
tail(R, _) -> R.
part(<<_:2, R/bits>>) -> R.

rounds(_, 0) -> ok;
rounds(L, N) -> [one(V) || V <- L], rounds(L, N - 1).
rounds2(_, 0) -> ok;
rounds2(L, N) -> [two(A, B) || A <- L, B <- L], rounds2(L, N - 1).

one(V) ->
    [t(fun() -> abs(V) end), t(fun() -> not V end), t(fun() -> length(V) end), t(fun() -> byte_size(V) end),
     t(fun() -> map_size(V) end), t(fun() -> tuple_size(V) end), t(fun() -> hd(V) end), t(fun() -> tl(V) end),
     guard_abs(V), guard_not(V), guard_length(V), guard_size(V), guard_fun(V), is_function(V, 2), is_function(V, 0)].
two(A, B) ->
    [t(fun() -> A and B end), t(fun() -> A or B end), t(fun() -> A xor B end), min(A, B), max(A, B), guard_and(A, B), guard_or(A, B)].

guard_abs(V) when abs(V) > 5 -> yes;
guard_abs(_) -> no.
guard_not(V) when not V -> yes;
guard_not(_) -> no.
guard_length(V) when length(V) =:= 256 -> 256;
guard_length(V) when length(V) > 256 -> more;
guard_length(_) -> no.
guard_size(V) when byte_size(V) > 1 -> bytes;
guard_size(V) when map_size(V) > 1 -> keys;
guard_size(V) when map_size(V) =:= 0 -> none;
guard_size(_) -> no.
guard_fun(V) when is_function(V, 0) -> 0;
guard_fun(V) when is_function(V, 2) -> 2;
guard_fun(_) -> no.
guard_and(A, B) when A and B -> yes;
guard_and(_, _) -> no.
guard_or(A, B) when A or B -> yes;
guard_or(_, _) -> no.

t(F) -> try F() catch C:R -> {C, R} end.
