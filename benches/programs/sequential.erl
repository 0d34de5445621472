%% Programs of one process: what the machine makes of calls, terms, collection and natives.
-module(sequential).
-export([names/0, expected/1]).
-export([fib/0, nrev/0, tak/0, sort/0, map_insert/0, map_lookup/0, ets_insert/0, ets_lookup/0, binary_parse/0,
         binary_build/0, iolists/0, factorial/0, nbody/0, queens/0, regex/0, json_encode/0, json_decode/0, words/0,
         closures/0, records/0]).

names() ->
    [fib, nrev, tak, sort, map_insert, map_lookup, ets_insert, ets_lookup, binary_parse, binary_build, iolists, factorial,
     nbody, queens, regex, json_encode, json_decode, words, closures, records].

%% Results that stock gives.
expected(fib) -> 9227465;
expected(nrev) -> 500;
expected(tak) -> 9;
expected(sort) -> {1, 1000000};
expected(map_insert) -> 300000;
expected(map_lookup) -> 3000000;
expected(ets_insert) -> 300000;
expected(ets_lookup) -> 2000000;
expected(binary_parse) -> {800000, 39999600000};
expected(binary_build) -> 6888889;
expected(iolists) -> 9277790;
expected(factorial) -> 35660;
expected(nbody) -> -0.16907807;
expected(queens) -> 2680;
expected(regex) -> 50000;
expected(json_encode) -> 234349;
expected(json_decode) -> 2000;
expected(words) -> {1000, 200000};
expected(closures) -> 500000500000;
expected(records) -> 5000000.

fib() -> fib(34).
fib(N) when N < 2 -> 1;
fib(N) -> fib(N - 1) + fib(N - 2).

%% Naive reverse: a list of 500, 200 times.
nrev() -> L = lists:seq(1, 500), nrev(200, L, []).
nrev(0, _, R) -> hd(R);
nrev(N, L, _) -> nrev(N - 1, L, rev(L)).
rev([]) -> [];
rev([H | T]) -> app(rev(T), [H]).
app([], L) -> L;
app([H | T], L) -> [H | app(T, L)].

tak() -> lists:last([tak(24, 16, 8) || _ <- lists:seq(1, 15)]).
tak(X, Y, Z) when Y >= X -> Z;
tak(X, Y, Z) -> tak(tak(X - 1, Y, Z), tak(Y - 1, Z, X), tak(Z - 1, X, Y)).

%% A permutation of 1..1000000, made by steps that are coprime to the length.
sort() ->
    L = lists:sort([(I * 7368787) rem 1000003 || I <- lists:seq(1, 1000002)]),
    {hd(L), lists:nth(1000000, L)}.

map_insert() -> maps:size(filled_map()).
filled_map() -> lists:foldl(fun(I, M) -> M#{(I * 7919) rem 300007 => I} end, #{}, lists:seq(1, 300000)).

map_lookup() ->
    M = maps:from_list([{I, I} || I <- lists:seq(1, 100000)]),
    found(M, 30, 0).
found(_, 0, N) -> N;
found(M, K, N) -> found(M, K - 1, found_in(M, 100000, N)).
found_in(_, 0, N) -> N;
found_in(M, I, N) -> case M of #{I := _} -> found_in(M, I - 1, N + 1); _ -> found_in(M, I - 1, N) end.

ets_insert() -> T = filled_table(), N = ets:info(T, size), ets:delete(T), N.
filled_table() ->
    T = ets:new(t, [set]),
    [ets:insert(T, {I, I, "value"}) || I <- lists:seq(1, 300000)],
    T.

ets_lookup() ->
    T = ets:new(t, [set]),
    ets:insert(T, [{I, I} || I <- lists:seq(1, 100000)]),
    N = lists:sum([look(T, 100000, 0) || _ <- lists:seq(1, 20)]),
    ets:delete(T),
    N.
look(_, 0, N) -> N;
look(T, I, N) -> case ets:lookup(T, I) of [{_, _}] -> look(T, I - 1, N + 1); [] -> look(T, I - 1, N) end.

%% Lines of comma separated numbers, byte by byte.
binary_parse() ->
    Text = iolist_to_binary([[integer_to_binary(I), <<",">>, integer_to_binary(I rem 7), <<"\n">>] || I <- lists:seq(0, 99999)]),
    R = [parse(Text, 0, 0, 0) || _ <- lists:seq(1, 8)],
    {lists:sum([C || {C, _} <- R]), lists:sum([S || {_, S} <- R])}.
parse(<<D, R/binary>>, N, Count, Sum) when D >= $0, D =< $9 -> parse(R, N * 10 + D - $0, Count, Sum);
parse(<<$,, R/binary>>, N, Count, Sum) -> parse(R, 0, Count, Sum + N);
parse(<<$\n, R/binary>>, _, Count, Sum) -> parse(R, 0, Count + 1, Sum);
parse(<<>>, _, Count, Sum) -> {Count, Sum}.

binary_build() ->
    byte_size(build(1000000, <<>>)).
build(0, Acc) -> Acc;
build(N, Acc) -> build(N - 1, <<Acc/binary, (digits(N))/binary, $\n>>).
digits(N) when N < 10 -> <<($0 + N)>>;
digits(N) when N < 1000000 -> integer_to_binary(N);
digits(_) -> <<>>.

iolists() ->
    L = [[<<"row ">>, integer_to_list(I), $:, [" ", [<<>>, integer_to_binary(I)]], "\n"] || I <- lists:seq(1, 500000)],
    byte_size(iolist_to_binary(L)).

factorial() -> length(integer_to_list(fac(10000))).
fac(N) -> fac(N, 1).
fac(0, A) -> A;
fac(N, A) -> fac(N - 1, N * A).

%% The planets of the sun: floats, tuples, lists.
nbody() ->
    Bodies = bodies(),
    list_to_float(float_to_list(energy(steps(50000, Bodies)), [{decimals, 8}])).
bodies() ->
    Pi = math:pi(), Mass = 4 * Pi * Pi, Day = 365.24,
    Planets = [
        {4.84143144246472090, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694 * Day, 0.00769901118419740425 * Day, -0.0000690460016972063023 * Day, 0.000954791938424326609 * Mass},
        {8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411 * Day, 0.00499852801234917238 * Day, 0.0000230417297573763929 * Day, 0.000285885980666130812 * Mass},
        {12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618 * Day, 0.0023784717395948095 * Day, -0.0000296589568540237556 * Day, 0.0000436624404335156298 * Mass},
        {15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322 * Day, 0.00162824170038242295 * Day, -0.000095159225451971587 * Day, 0.0000515138902046611451 * Mass}],
    {PX, PY, PZ} = lists:foldl(fun({_, _, _, VX, VY, VZ, M}, {A, B, C}) -> {A + VX * M, B + VY * M, C + VZ * M} end, {0.0, 0.0, 0.0}, Planets),
    [{0.0, 0.0, 0.0, -PX / Mass, -PY / Mass, -PZ / Mass, Mass} | Planets].
steps(0, Bodies) -> Bodies;
steps(N, Bodies) -> steps(N - 1, [move(B) || B <- pull(Bodies)]).
move({X, Y, Z, VX, VY, VZ, M}) -> {X + 0.01 * VX, Y + 0.01 * VY, Z + 0.01 * VZ, VX, VY, VZ, M}.
pull([]) -> [];
pull([B | Rest]) -> {B1, Rest1} = pull(B, Rest, []), [B1 | pull(Rest1)].
pull(B, [], Acc) -> {B, lists:reverse(Acc)};
pull({X, Y, Z, VX, VY, VZ, M}, [{X2, Y2, Z2, VX2, VY2, VZ2, M2} | T], Acc) ->
    DX = X - X2, DY = Y - Y2, DZ = Z - Z2,
    D = DX * DX + DY * DY + DZ * DZ,
    G = 0.01 / (D * math:sqrt(D)),
    pull({X, Y, Z, VX - DX * M2 * G, VY - DY * M2 * G, VZ - DZ * M2 * G, M}, T,
         [{X2, Y2, Z2, VX2 + DX * M * G, VY2 + DY * M * G, VZ2 + DZ * M * G, M2} | Acc]).
energy([]) -> 0.0;
energy([{X, Y, Z, VX, VY, VZ, M} | T]) ->
    0.5 * M * (VX * VX + VY * VY + VZ * VZ) + energy(T) -
        lists:sum([M * M2 / math:sqrt((X - A) * (X - A) + (Y - B) * (Y - B) + (Z - C) * (Z - C)) || {A, B, C, _, _, _, M2} <- T]).

queens() -> length(queens(11, 11)).
queens(0, _) -> [[]];
queens(K, N) -> [[Q | B] || B <- queens(K - 1, N), Q <- lists:seq(1, N), safe(Q, 1, B)].
safe(_, _, []) -> true;
safe(Q, D, [H | T]) -> Q =/= H andalso abs(Q - H) =/= D andalso safe(Q, D + 1, T).

regex() ->
    {ok, Re} = re:compile("([a-z]+)-([0-9]{2,4})@(\\w+)\\.(com|org)"),
    Text = iolist_to_binary([["noise ", integer_to_list(I), " name-", integer_to_list(100 + I rem 900), "@host.org, "] || I <- lists:seq(1, 50000)]),
    {match, L} = re:run(Text, Re, [global, {capture, [1, 2], index}]),
    length(L).

document() ->
    [#{<<"id">> => I, <<"name">> => <<"item ", (integer_to_binary(I))/binary>>, <<"price">> => I / 4, <<"tags">> => [<<"a">>, <<"b\n">>, null, true],
       <<"nested">> => #{<<"x">> => [1, 2, 3], <<"y">> => #{<<"deep">> => <<"caf", 195, 169>>}}} || I <- lists:seq(1, 2000)].

json_encode() ->
    D = document(),
    lists:last([iolist_size(encode(D)) || _ <- lists:seq(1, 10)]).

encode(null) -> <<"null">>;
encode(true) -> <<"true">>;
encode(false) -> <<"false">>;
encode(I) when is_integer(I) -> integer_to_binary(I);
encode(F) when is_float(F) -> float_to_binary(F, [short]);
encode(B) when is_binary(B) -> [$", escape(B, <<>>), $"];
encode([]) -> <<"[]">>;
encode(L) when is_list(L) -> [$[, encode(hd(L)), [[$,, encode(X)] || X <- tl(L)], $]];
encode(M) when is_map(M) ->
    [{K, V} | T] = maps:to_list(M),
    [${, pair(K, V), [[$,, pair(A, B)] || {A, B} <- T], $}].
pair(K, V) -> [$", escape(K, <<>>), $", $:, encode(V)].
escape(<<$", R/binary>>, A) -> escape(R, <<A/binary, $\\, $">>);
escape(<<$\\, R/binary>>, A) -> escape(R, <<A/binary, $\\, $\\>>);
escape(<<$\n, R/binary>>, A) -> escape(R, <<A/binary, $\\, $n>>);
escape(<<C, R/binary>>, A) -> escape(R, <<A/binary, C>>);
escape(<<>>, A) -> A.

json_decode() ->
    Text = iolist_to_binary(encode(document())),
    L = lists:last([begin {V, <<>>} = value(Text), V end || _ <- lists:seq(1, 5)]),
    length(L).

value(<<C, R/binary>>) when C =:= $\s; C =:= $\n -> value(R);
value(<<"null", R/binary>>) -> {null, R};
value(<<"true", R/binary>>) -> {true, R};
value(<<"false", R/binary>>) -> {false, R};
value(<<$", R/binary>>) -> text(R, <<>>);
value(<<"[]", R/binary>>) -> {[], R};
value(<<$[, R/binary>>) -> elements(R, []);
value(<<"{}", R/binary>>) -> {#{}, R};
value(<<${, R/binary>>) -> members(R, []);
value(B) -> number(B, 0).
elements(B, Acc) ->
    {V, <<C, R/binary>>} = value(B),
    case C of $, -> elements(R, [V | Acc]); $] -> {lists:reverse([V | Acc]), R} end.
members(<<$", B/binary>>, Acc) ->
    {K, <<$:, R/binary>>} = text(B, <<>>),
    {V, <<C, R2/binary>>} = value(R),
    case C of $, -> members(R2, [{K, V} | Acc]); $} -> {maps:from_list([{K, V} | Acc]), R2} end.
text(<<$", R/binary>>, A) -> {A, R};
text(<<$\\, $n, R/binary>>, A) -> text(R, <<A/binary, $\n>>);
text(<<$\\, C, R/binary>>, A) -> text(R, <<A/binary, C>>);
text(<<C, R/binary>>, A) -> text(R, <<A/binary, C>>).
number(B, N) ->
    case B of
        <<_:N/binary, C, _/binary>> when C >= $0, C =< $9; C =:= $.; C =:= $-; C =:= $e; C =:= $+ -> number(B, N + 1);
        <<D:N/binary, R/binary>> ->
            case binary:match(D, <<".">>) of
                nomatch -> {binary_to_integer(D), R};
                _ -> {binary_to_float(D), R}
            end
    end.

%% Count words: strings, splitting, a map as a counter.
words() ->
    Text = iolist_to_binary([[<<"word">>, integer_to_binary((I * 7919) rem 1000), $\s] || I <- lists:seq(1, 200000)]),
    M = lists:foldl(fun(<<>>, A) -> A; (W, A) -> maps:update_with(W, fun(C) -> C + 1 end, 1, A) end, #{}, binary:split(Text, <<" ">>, [global])),
    {maps:size(M), lists:sum(maps:values(M))}.

closures() ->
    L = lists:map(fun(X) -> fun(Y) -> X + Y end end, lists:seq(1, 1000000)),
    lists:foldl(fun(F, A) -> F(A) end, 0, L).

-record(r, {a = 0, b = 0, c = [], d, e}).
records() -> R = updates(5000000, #r{d = x}), R#r.a.
updates(0, R) -> R;
updates(N, #r{a = A, b = B} = R) -> updates(N - 1, R#r{a = A + 1, b = B + N, c = {N}}).
