%% Loops of one kind each, whose executed instructions scripts/instructions.sh counts. main([TIMES,
%% NAME...]) runs each loop once, so that all code is there. Then it warms one loop after the other
%% up, and runs it for 1, 2 and 2 times its rounds, times TIMES, with a call of the kernel's getcwd
%% before each and after the last, which the counter takes as a mark. It prints names and numbers of
%% steps.
-module(kinds).
-export([main/1, names/0, run/2]).

-record(state, {count = 0, last, list = [], name}).

names() ->
    [N || {N, _} <- all()].

%% Kinds, and rounds.
all() ->
    [{fib, 1}, {tak, 1}, {ackermann, 1}, {reverse, 300}, {append, 300}, {map_fun, 300}, {member, 500},
     {map_read, 20000}, {map_update, 10000}, {bytes, 20000}, {fields, 3000}, {build, 3000}, {utf8, 10000},
     {products, 20000}, {divisions, 20000}, {masks, 20000}, {fold, 300}, {fold_map, 300}, {floats, 20000},
     {float_list, 300}, {records, 20000}, {select, 20000}, {select_atoms, 20000}, {tuples, 20000},
     {catches, 5000}, {ets, 5000}, {messages, 2000}].

main([Times | Names]) ->
    Loops = [{N, R * list_to_integer(Times)} || Name <- Names, {N, R} <- all(), atom_to_list(N) =:= Name],
    [run(N, 1) || {N, _} <- Loops],
    [counted(N, R) || {N, R} <- Loops],
    halt(0).

counted(N, Rounds) ->
    warm(N, Rounds, erlang:monotonic_time(millisecond) + 4000, 0),
    erlang:garbage_collect(),
    mark(),
    run(N, Rounds),
    mark(),
    run(N, 2 * Rounds),
    mark(),
    run(N, 2 * Rounds),
    mark(),
    io:format("~s ~b~n", [N, steps(N, Rounds)]).

mark() ->
    {ok, _} = file:get_cwd().

warm(N, Rounds, Until, K) ->
    run(N, Rounds),
    case K < 3 orelse erlang:monotonic_time(millisecond) < Until of
        true -> warm(N, Rounds, Until, K + 1);
        false -> ok
    end.

%% Number of calls, elements or rounds of the loop for which a difference of counts stands.
steps(fib, Rounds) -> Rounds * calls(18);
steps(tak, Rounds) -> Rounds * 6193;
steps(ackermann, Rounds) -> Rounds * 10307;
steps(N, Rounds) when N =:= reverse; N =:= append; N =:= map_fun; N =:= fold; N =:= fold_map; N =:= float_list ->
    Rounds * 100;
steps(member, Rounds) -> Rounds * 50;
steps(_, Rounds) -> Rounds.

calls(N) when N < 2 -> 1;
calls(N) -> 1 + calls(N - 1) + calls(N - 2).

run(fib, N) -> times(N, fun() -> fib(18) end);
run(tak, N) -> times(N, fun() -> tak(14, 9, 4) end);
run(ackermann, N) -> times(N, fun() -> ackermann(2, 48) end);
run(reverse, N) -> L = lists:seq(1, 100), times(N, fun() -> reverse(L, []) end);
run(append, N) -> L = lists:seq(1, 100), times(N, fun() -> joined(L, [z]) end);
run(map_fun, N) -> L = lists:seq(1, 100), times(N, fun() -> mapped(fun(X) -> X + 1 end, L) end);
run(member, N) -> L = lists:seq(1, 100), times(N, fun() -> found(50, L) end);
run(map_read, N) -> map_read(N, #{a => 1, b => 2, c => 3, d => 4}, 0);
run(map_update, N) -> map_update(N, #{a => 1, b => 2, c => 3, d => 4});
run(bytes, N) -> bytes(binary:copy(<<7>>, N), 0);
run(fields, N) -> fields(binary:copy(<<1:16, 2:8, 3:32, 4:24/little>>, N), 0);
run(build, N) -> build(N, <<>>);
run(utf8, N) -> characters(binary:copy(<<"ab", 228/utf8, 8364/utf8>>, N div 4), 0);
run(products, N) -> products(N, 1);
run(divisions, N) -> divisions(N, 0);
run(masks, N) -> masks(N, 1, 0);
run(fold, N) -> L = lists:seq(1, 100), times(N, fun() -> lists:foldl(fun(X, A) -> X + A end, 0, L) end);
run(fold_map, N) ->
    M = maps:from_list([{K, K} || K <- lists:seq(1, 100)]),
    times(N, fun() -> maps:fold(fun(_, V, A) -> V + A end, 0, M) end);
run(floats, N) -> floats(N, 1.5, 0.0);
run(float_list, N) -> L = [X * 1.0 || X <- lists:seq(1, 100)], times(N, fun() -> dot(L, L, 0.0) end);
run(records, N) -> records(N, #state{name = a});
run(select, N) -> select(N, 0);
run(select_atoms, N) -> select_atoms(N, a, 0);
run(tuples, N) -> tuples(N, {1, 2, 3});
run(catches, N) -> catches(N, 0);
run(ets, N) ->
    T = ets:new(t, []),
    ets:insert(T, [{K, K} || K <- lists:seq(0, 63)]),
    lookups(N, T, 0),
    ets:delete(T);
run(messages, N) ->
    Me = self(),
    P = spawn_link(fun() -> echo(Me) end),
    exchange(N, P),
    unlink(P),
    exit(P, kill).

times(0, _) -> ok;
times(N, F) -> F(), times(N - 1, F).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

tak(X, Y, Z) when Y >= X -> Z;
tak(X, Y, Z) -> tak(tak(X - 1, Y, Z), tak(Y - 1, Z, X), tak(Z - 1, X, Y)).

ackermann(0, N) -> N + 1;
ackermann(M, 0) -> ackermann(M - 1, 1);
ackermann(M, N) -> ackermann(M - 1, ackermann(M, N - 1)).

reverse([], R) -> R;
reverse([H | T], R) -> reverse(T, [H | R]).

joined([], B) -> B;
joined([H | T], B) -> [H | joined(T, B)].

mapped(_, []) -> [];
mapped(F, [H | T]) -> [F(H) | mapped(F, T)].

found(X, [X | _]) -> true;
found(X, [_ | T]) -> found(X, T);
found(_, []) -> false.

map_read(0, _, S) -> S;
map_read(N, #{a := A, c := C} = M, S) -> map_read(N - 1, M, (S + A + C) band 16#ffff).

map_update(0, M) -> M;
map_update(N, #{a := A} = M) -> map_update(N - 1, M#{a := A + 1, d := N}).

bytes(<<B, R/binary>>, S) -> bytes(R, (S + B) band 16#ffff);
bytes(<<>>, S) -> S.

fields(<<A:16, B:8, C:32, D:24/little, R/binary>>, S) -> fields(R, (S + A + B + C + D) band 16#ffff);
fields(<<>>, S) -> S.

build(0, B) -> byte_size(B);
build(N, B) -> build(N - 1, <<B/binary, N:8, 1:8, N:8>>).

characters(<<C/utf8, R/binary>>, S) -> characters(R, (S + C) band 16#ffff);
characters(<<>>, S) -> S.

products(0, S) -> S;
products(N, S) -> products(N - 1, ((S * 31 + N) bsr 1) rem 1000003).

divisions(0, S) -> S;
divisions(N, S) -> divisions(N - 1, S + N div 7 + N rem 10).

masks(0, _, S) -> S;
masks(N, X, S) -> masks(N - 1, ((X bsl 3) bxor N) band 16#ffffff, (S bor X) band 16#ffff).

floats(0, _, S) -> S;
floats(N, X, S) -> floats(N - 1, X * 1.0000001, S + X * 2.0 - 1.0).

dot([A | As], [B | Bs], S) -> dot(As, Bs, S + A * B);
dot([], [], S) -> S.

records(0, R) -> R;
records(N, #state{count = C} = R) -> records(N - 1, R#state{count = C + 1, last = N}).

select(0, S) -> S;
select(N, S) -> select(N - 1, (S + kind(N band 7)) band 16#ffff).

kind(0) -> 3;
kind(1) -> 17;
kind(2) -> 29;
kind(3) -> 5;
kind(4) -> 99;
kind(5) -> 2;
kind(6) -> 7;
kind(7) -> 1.

select_atoms(0, _, S) -> S;
select_atoms(N, A, S) -> B = following(A), select_atoms(N - 1, B, S + 1).

following(a) -> b;
following(b) -> c;
following(c) -> d;
following(d) -> e;
following(e) -> a.

tuples(0, T) -> T;
tuples(N, {A, B, C}) -> tuples(N - 1, {B, C, A}).

catches(0, S) -> S;
catches(N, S) ->
    X = try thrown(N) catch throw:{v, V} -> V end,
    catches(N - 1, (S + X) band 16#ffff).

thrown(N) -> throw({v, N}).

lookups(0, _, S) -> S;
lookups(N, T, S) -> [{_, V}] = ets:lookup(T, N band 63), lookups(N - 1, T, S + V).

echo(To) ->
    receive
        {From, X} -> From ! {self(), X}, echo(To)
    end.

exchange(0, _) -> ok;
exchange(N, P) ->
    P ! {self(), N},
    receive
        {P, N} -> exchange(N - 1, P)
    end.
