%% Checks instructions that the loader fuses, or that have a fast path, in their rare cases.
%% @stress @shared
-module(fused_instructions).
-export([main/0, opaque/1]).

main() ->
    bytes(),
    selects(),
    tuples(),
    compared(),
    sums(),
    sizes(),
    chains(),
    loops(),
    funs(),
    caught(),
    queue().

opaque(X) -> X.
safe(F) -> try F() catch C:R -> {C, R} end.
show(Name, X) -> io:format("~s ~p~n", [Name, X]).

%% Bytes one by one, from places that are and aren't those of whole bytes.
bytes() ->
    All = << <<I>> || I <- lists:seq(0, 255) >>,
    Bins = [All, <<>>, <<1>>, binary:part(All, 3, 40)] ++
        [bits(N, All) || N <- lists:seq(1, 9)],
    show("list", [erlang:phash2(to_list(?MODULE:opaque(B), [])) || B <- Bins]),
    show("marked", [numbers(?MODULE:opaque(B), 0, []) || B <- [<<"12,7\n33,,4">>, <<"1x">>, <<>>, <<"9">>]]),
    show("kept", [kept(B) || B <- Bins]),
    show("short", [safe(fun() -> to_list(?MODULE:opaque(B), []) end) || B <- [<<1:3>>, <<1, 2:7>>, a, 1, [], {}]]),
    show("marked short", [safe(fun() -> numbers(?MODULE:opaque(B), 0, []) end) || B <- [<<1:3>>, <<"1", 2:7>>, a, 1.0]]),
    show("optional", [optional(?MODULE:opaque(B)) || B <- [<<5, 6>>, <<5>>, <<>>, a, 7, <<1:1>>, #{}]]),
    show("signed", [signed(B, []) || B <- [All, bits(3, All)]]),
    show("three", [three(B) || B <- [<<1, 2, 3>>, <<1, 2, 3, 4>>, <<1, 2>>, bits(5, All)]]).
%% The bytes of a binary that don't start where a byte does.
bits(N, B) -> <<_:N, R:(byte_size(B))/binary, _/bitstring>> = <<16#A5:N, B/binary, 1:N>>, R.
to_list(<<B, R/bitstring>>, L) -> to_list(R, [B | L]);
to_list(<<>>, L) -> lists:reverse(L).
numbers(<<D, R/binary>>, N, L) when D >= $0, D =< $9 -> numbers(R, N * 10 + D - $0, L);
numbers(<<$,, R/binary>>, N, L) -> numbers(R, 0, [N | L]);
numbers(<<$\n, R/binary>>, N, L) -> numbers(R, 0, [line, N | L]);
numbers(<<>>, N, L) -> lists:reverse(L, [N]);
numbers(R, N, L) -> {rest, R, N, L}.
%% The context lasts over a call.
kept(<<A, B, R/bitstring>>) -> X = ?MODULE:opaque({A, B}), {X, kept(R, 0)};
kept(B) -> {short, B}.
kept(<<A, R/bitstring>>, S) -> ?MODULE:opaque(A), kept(R, S + A);
kept(R, S) -> {R, S}.
optional(<<A, B>>) -> {two, A, B};
optional(<<A>>) -> {one, A};
optional(<<R/bitstring>>) -> {bits, R};
optional(X) -> {none, X}.
signed(<<A:8/signed, B:8/little, R/bitstring>>, L) -> signed(R, [A - B | L]);
signed(R, L) -> {R, erlang:phash2(L)}.
three(<<A:24>>) -> A;
three(<<A:5, B:12, R/bitstring>>) -> {A, B, bit_size(R)};
three(B) -> B.

%% Few and many values, near to each other and not.
selects() ->
    Values = [-1, 0, 1, 33, 34, 35, 38, 60, 61, 62, 63, 100, 1 bsl 59, 1 bsl 70, a, b, c, 1.0, <<"a">>, []],
    show("few", [few(?MODULE:opaque(V)) || V <- Values]),
    show("characters", [characters(?MODULE:opaque(V)) || V <- Values]),
    show("far", [far(?MODULE:opaque(V)) || V <- Values]),
    show("atoms", [atoms(?MODULE:opaque(V)) || V <- Values]).
few(34) -> x; few(62) -> y; few(a) -> z; few(_) -> no.
characters($") -> quote; characters($&) -> amp; characters($<) -> lt; characters($>) -> gt; characters(_) -> no.
far(-1) -> 1; far(34) -> 2; far(100) -> 3; far(1000000) -> 4; far(62) -> 5; far(0) -> 6; far(_) -> no.
atoms(a) -> 1; atoms(b) -> 2; atoms(d) -> 3; atoms(e) -> 4; atoms(f) -> 5; atoms(c) -> 6; atoms(_) -> no.

%% Tuples of registers and constants, into registers that are read for them.
tuples() ->
    A = ?MODULE:opaque(1), B = ?MODULE:opaque([b]),
    show("tuples", [{A, B}, {B, A}, {ok, A}, {B, x}, {A, A}, {A, B, A}, {ok, A, B}, {A, 2, B}, {B, A, [x]}, {1, A, y},
                    {A, B, A, B}, {x, {A, {B, {A, B, {A, B}}}}}]),
    show("turned", turned({A, B}, 5)),
    show("turned", turned3({A, B, c}, 5)).
turned(T, 0) -> T;
turned({X, Y}, N) -> turned({Y, {X, N}}, N - 1).
turned3(T, 0) -> T;
turned3({X, Y, Z}, N) -> turned3({Z, X, {Y, N}}, N - 1).

compared() ->
    Big = 1 bsl 70,
    Vs = [0, -1, 1, 1.0, 0.0, -0.0, Big, Big + 1, -Big, float(1 bsl 60), 1 bsl 60, a, b, [], [1], [1.0], {1}, {1.0}, <<"a">>,
          <<"a", 0:1>>, #{}, #{1 => 2}, #{1 => 2.0}, self(), make_ref()],
    show("compared", [[order(?MODULE:opaque(X), ?MODULE:opaque(Y)) || Y <- Vs] || X <- Vs]),
    show("in range", [in_range(?MODULE:opaque(X)) || X <- Vs ++ [9, 10, 20, 21, 9.9, 10.0, 20.5]]).
order(X, Y) ->
    b(X < Y) bor (b(X >= Y) bsl 1) bor (b(X == Y) bsl 2) bor (b(X /= Y) bsl 3) bor (b(X =:= Y) bsl 4) bor
        (b(X =/= Y) bsl 5) bor (guarded(X, Y) bsl 6).
b(true) -> 1; b(false) -> 0.
guarded(X, Y) when X < Y -> 1;
guarded(X, Y) when X == Y, X =/= Y -> 2;
guarded(X, Y) when X =:= Y -> 3;
guarded(X, Y) when X > Y, X /= Y -> 4.
in_range(X) when X >= 10, X =< 20 -> yes;
in_range(_) -> no.

sums() ->
    Max = (1 bsl 59) - 1,
    Vs = [0, 1, -1, 7, Max, -Max - 1, Max + 1, 1 bsl 64, -(1 bsl 64), 1.5, a],
    show("sums", [[safe(fun() -> F(?MODULE:opaque(X), ?MODULE:opaque(Y)) end) || F <- operations()] || X <- Vs, Y <- Vs]),
    show("constants", [[safe(fun() -> F(?MODULE:opaque(X)) end) || F <- constants()] || X <- Vs]),
    show("guards", [guard(?MODULE:opaque(X), ?MODULE:opaque(Y)) || X <- Vs, Y <- Vs]).
operations() ->
    [fun(X, Y) -> X + Y end, fun(X, Y) -> X - Y end, fun(X, Y) -> X * Y end, fun(X, Y) -> X div Y end,
     fun(X, Y) -> X rem Y end, fun(X, Y) -> X band Y end, fun(X, Y) -> X bor Y end, fun(X, Y) -> X bxor Y end,
     fun(X, Y) -> X bsl (Y rem 70) end, fun(X, Y) -> X bsr (Y rem 70) end].
constants() ->
    [fun(X) -> X + 1 end, fun(X) -> 1 - X end, fun(X) -> X - 1 end, fun(X) -> X * 10 end, fun(X) -> X div 10 end,
     fun(X) -> X rem 10 end, fun(X) -> X band 255 end, fun(X) -> X bor 1 end, fun(X) -> X bsl 3 end, fun(X) -> X bsr 3 end].
guard(X, Y) when X + Y > 0, X - Y < 0 -> 1;
guard(X, Y) when X * Y > 0, X rem Y =:= 0 -> 2;
guard(X, Y) when X bsl (Y band 7) > 0 -> 3;
guard(_, _) -> 4.

sizes() ->
    Vs = [<<>>, <<1, 2>>, <<1:3>>, binary:part(<<1, 2, 3, 4>>, 1, 2), binary:copy(<<7>>, 200), {}, {1, 2}, #{}, #{a => 1},
          maps:from_list([{I, I} || I <- lists:seq(1, 100)]), [], [1], lists:seq(1, 300), [1 | 2], a, 1],
    show("sizes", [[safe(fun() -> F(?MODULE:opaque(V)) end) || F <- size_funs()] || V <- Vs]),
    show("is_binary", [is_binary(?MODULE:opaque(V)) || V <- Vs ++ [bits(3, <<1, 2, 3>>)]]).
size_funs() ->
    [fun(V) -> byte_size(V) end, fun(V) -> tuple_size(V) end, fun(V) -> map_size(V) end, fun(V) -> length(V) end,
     fun(V) -> hd(V) end, fun(V) -> tl(V) end, fun(V) -> element(2, V) end].

%% Tests of the type, one after another.
chains() ->
    Port = open_port({spawn, "cat"}, []),
    Vs = [1, -(1 bsl 70), 1 bsl 70, 1.5, a, true, [], [1], {}, {1, 2}, {tag, 2}, <<>>, <<1:1>>, binary:part(<<1, 2, 3>>, 1, 1),
          bits(3, <<1, 2, 3>>), binary:copy(<<7>>, 200), self(), Port, make_ref(), fun() -> 1 end, fun lists:map/2, #{},
          maps:from_list([{I, I} || I <- lists:seq(1, 100)])],
    show("chain", [chain(?MODULE:opaque(V)) || V <- Vs]),
    show("chain of others", [others(?MODULE:opaque(V), ?MODULE:opaque(V)) || V <- Vs]),
    show("chain without end", [safe(fun() -> open(?MODULE:opaque(V)) end) || V <- [1, a, [], {}, #{}, 1.0, <<1:3>>, <<1>>]]),
    show("in a body", [in_body(?MODULE:opaque(V)) || V <- Vs]).
chain(X) when is_map(X) -> map;
chain(X) when is_tuple(X), tuple_size(X) =:= 2, element(1, X) =:= tag -> tagged;
chain(X) when is_tuple(X) -> tuple;
chain(X) when is_boolean(X) -> boolean;
chain(X) when is_atom(X) -> atom;
chain([]) -> nil;
chain(X) when is_list(X) -> list;
chain(X) when is_binary(X) -> binary;
chain(X) when is_bitstring(X) -> bitstring;
chain(X) when is_integer(X) -> integer;
chain(X) when is_float(X) -> float;
chain(X) when is_function(X, 0) -> fun0;
chain(X) when is_function(X) -> function;
chain(X) when is_pid(X) -> pid;
chain(X) when is_port(X) -> port;
chain(X) when is_reference(X) -> reference.
others(_, Y) when is_number(Y) -> number;
others(_, [_ | _]) -> cons;
others(_, {tag, Z}) -> Z;
others(_, Y) when is_pid(Y) -> pid;
others(X, Y) when is_reference(Y) -> is_reference(X);
others(_, Y) when is_bitstring(Y) -> bit_size(Y);
others(_, _) -> other.
open(X) when is_integer(X) -> integer;
open(X) when is_atom(X) -> atom;
open(X) when is_list(X) -> list;
open(X) when is_tuple(X) -> tuple;
open(X) when is_binary(X) -> binary.
in_body(X) ->
    Y = ?MODULE:opaque({X, X}),
    Z = element(1, Y),
    R = if is_float(Z) -> float; is_atom(Z) -> atom; is_list(Z) -> list; is_map(Z) -> map; is_integer(Z) -> integer; true -> no end,
    ?MODULE:opaque(R), {R, is_tuple(Y)}.

%% Sums before a call that ends the function, of what is small and isn't.
loops() ->
    Start = (1 bsl 59) - 3,
    show("up", [up(?MODULE:opaque(X), 6) || X <- [0, Start, 1.5, -Start - 4]]),
    show("down", [down(?MODULE:opaque(X), 6) || X <- [0, Start, 1.5, -Start - 1]]),
    show("long", up(0, 20000)),
    show("no number", [place(fun() -> up(?MODULE:opaque(a), 2) end), place(fun() -> down(?MODULE:opaque([]), 2) end)]).
up(X, 0) -> X;
up(X, N) -> up(N - 1, X + 1, again).
up(N, X, again) -> up(X, N).
down(X, 0) -> X;
down(X, N) -> down(N - 1, X - 1, again).
down(N, X, again) -> down(X, N).
place(F) -> try F() catch C:R:S -> {C, R, [{M, G, A, lists:keyfind(line, 1, L)} || {M, G, A, L} <- S, M =:= ?MODULE]} end.

%% Calls of what is no fun, or one of another arity.
funs() ->
    Fs = [fun() -> 0 end, fun(X) -> X end, fun(X, Y) -> {X, Y} end, fun ?MODULE:opaque/1, fun ?MODULE:none/1, a, 1, {?MODULE, opaque}],
    show("funs", [safe(fun() -> called(?MODULE:opaque(F)) end) || F <- Fs]),
    show("last", [safe(fun() -> called_last(?MODULE:opaque(F)) end) || F <- Fs]).
called(F) -> X = F(1), {X, F(2)}.
called_last(F) -> ?MODULE:opaque(F), F(?MODULE:opaque(3)).

caught() ->
    show("caught", [catch ?MODULE:opaque(1), catch throw(?MODULE:opaque(x)), element(1, (catch error(?MODULE:opaque(y)))),
                    catch exit(?MODULE:opaque(z)), (catch ?MODULE:opaque(2)) + 1]).

%% A long queue, looked through by receives of several kinds.
queue() ->
    Self = self(),
    N = 3000,
    [Self ! message(I) || I <- lists:seq(1, N)],
    Self ! {last, 1}, Self ! last, Self ! {a, b, c}, Self ! {ref, Self}, Self ! "list",
    show("none", receive none -> yes after 0 -> no end),
    show("no pair", receive {none, X1} -> X1 after 0 -> no end),
    show("last", receive last -> yes after 0 -> no end),
    show("pair", receive {last, X2} -> X2 after 0 -> no end),
    show("pair again", receive {last, X3} -> X3 after 0 -> no end),
    show("of three", receive {X4, Y4, Z4} -> [X4, Y4, Z4] after 0 -> no end),
    show("own", receive {ref, Self} -> yes after 0 -> no end),
    show("guard", receive {number, X5} when X5 > 2990 -> X5 after 0 -> no end),
    Self ! {constant, [1.0]}, Self ! {constant, [1]}, Self ! {[c], 1},
    show("constants", [receive {constant, [1]} -> yes after 0 -> no end, receive {constant, [1]} -> yes after 0 -> no end,
                       receive {[c], 1} -> yes after 0 -> no end, receive {[d], 1} -> yes after 0 -> no end,
                       receive {constant, [1.0]} -> yes after 0 -> no end]),
    show("list", receive [_ | _] = L6 -> L6 after 0 -> no end),
    spawn_link(fun() -> [Self ! message(I) || I <- lists:seq(1, 200)], Self ! {late, 1}, Self ! {late, 2} end),
    show("late", receive {late, X7} -> X7 end),
    show("two kinds", [receive {late, X8} -> X8; stop -> stop after 0 -> no end, receive {late, X9} -> X9; stop -> stop after 0 -> no end]),
    {message_queue_len, Left} = process_info(Self, message_queue_len),
    show("left", Left),
    %% Numbers of pids may differ between the runtimes.
    show("rest", erlang:phash2([case M of {'EXIT', _, Reason} -> Reason; _ -> M end || M <- rest([])])).
message(I) when I rem 5 =:= 0 -> {number, I};
message(I) when I rem 5 =:= 1 -> I;
message(I) when I rem 5 =:= 2 -> [I];
message(I) when I rem 5 =:= 3 -> {};
message(I) -> <<I:32>>.
rest(L) -> receive M -> rest([M | L]) after 0 -> L end.
