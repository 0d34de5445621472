%% What ordinary programs do most: text, small maps, exceptions, growing binaries, the compiler's
%% first passes.
-module(ordinary).
-export([names/0, expected/1]).
-export([utf8_parse/0, utf8_build/0, utf8_lists/0, map_update/0, map_read/0, map_of_maps/0, record_map/0, append/0, append_parts/0,
         strings/0, string_split/0, format/0, term_text/0, scan_parse/0, lexer/0, throw_catch/0, error_catch/0, deep_throw/0,
         funs_in_lists/0, comprehensions/0, sort_tuples/0, sort_by/0, matrix/0, mandelbrot/0, sudoku/0, trees/0, proplists/0,
         integers_text/0, binary_split/0, dictionary/0, external/0, fold_map/0,
         hex/0, masked/0, traces/0]).

names() ->
    [utf8_parse, utf8_build, utf8_lists, map_update, map_read, map_of_maps, record_map, append, append_parts, strings,
     string_split, format, term_text, scan_parse, lexer, throw_catch, error_catch, deep_throw, funs_in_lists, comprehensions,
     sort_tuples, sort_by, matrix, mandelbrot, sudoku, trees, proplists, integers_text, binary_split, dictionary, external,
     fold_map, hex, masked, traces].

%% Results that stock gives.
expected(Name) -> maps:get(Name, results()).
results() ->
    #{utf8_parse => 18043000000, utf8_build => 3200000, utf8_lists => 2400000, map_update => 1000000,
      map_read => 38000000, map_of_maps => 300000, record_map => 8999994, append => 1500000, append_parts => 13000000,
      strings => 1920000, string_split => 480300, format => 1043356, term_text => 516840, scan_parse => 2000,
      lexer => 520000, throw_catch => 1500000, error_catch => 3250000, deep_throw => 700000,
      funs_in_lists => 133332666660, comprehensions => 1500000, sort_tuples => 400012, sort_by => 400008,
      matrix => 15840, mandelbrot => 4176203, sudoku => 129600, trees => 1250075000, proplists => 14700000,
      integers_text => 2000004, binary_split => 75000, dictionary => 375499000, external => 100000,
      fold_map => 1000200000, hex => 4000000, masked => 9600000, traces => 1000000}.

%% Text with characters of one to four bytes.
text() -> unicode:characters_to_binary(lists:append(lists:duplicate(20000, "plain text, na\x{ef}ve \x{4e16}\x{754c} \x{1f600}. "))).

utf8_parse() ->
    T = text(),
    lists:sum([code_points(T, 0) || _ <- lists:seq(1, 5)]).
code_points(<<C/utf8, R/binary>>, S) -> code_points(R, S + C);
code_points(<<>>, S) -> S.

utf8_build() ->
    L = unicode:characters_to_list(text()),
    lists:sum([byte_size(upper(L, <<>>)) || _ <- lists:seq(1, 5)]).
upper([C | T], B) when C >= $a, C =< $z -> upper(T, <<B/binary, (C - 32)/utf8>>);
upper([C | T], B) -> upper(T, <<B/binary, C/utf8>>);
upper([], B) -> B.

utf8_lists() ->
    T = text(),
    lists:sum([length(unicode:characters_to_list(unicode:characters_to_binary(unicode:characters_to_list(T)))) || _ <- lists:seq(1, 5)]).

%% Maps of up to 32 keys.
map_update() -> maps:get(count, update(1000000, #{count => 0, name => <<"n">>, sum => 0, last => none, list => [], flag => false, a => 1, b => 2})).
update(0, M) -> M;
update(N, #{count := C, sum := S} = M) -> update(N - 1, M#{count := C + 1, sum := S + N, last => N}).

map_read() ->
    M = maps:from_list([{list_to_atom("key_" ++ integer_to_list(I)), I} || I <- lists:seq(1, 24)]),
    read(1000000, M, 0).
read(0, _, S) -> S;
read(N, M, S) ->
    #{key_1 := A, key_12 := B} = M,
    read(N - 1, M, S + A + B + maps:get(key_24, M) + maps:get(none, M, 1)).

%% A map of a thousand small maps, one updated at a time.
map_of_maps() ->
    M = maps:from_list([{I, #{id => I, visits => 0, name => <<"user">>, last => 0}} || I <- lists:seq(1, 1000)]),
    R = lists:foldl(fun(I, A) -> K = 1 + I * 7919 rem 1000, #{K := U} = A, A#{K := U#{visits := maps:get(visits, U) + 1, last := I}} end, M, lists:seq(1, 300000)),
    maps:fold(fun(_, #{visits := V}, S) -> S + V end, 0, R).

%% A map with few keys made anew each time.
record_map() -> made(1000000, 0).
made(0, S) -> S;
made(N, S) -> made(N - 1, S + area(#{kind => rectangle, width => N rem 7, height => 3})).
area(#{kind := rectangle, width := W, height := H}) -> W * H;
area(#{kind := circle, radius := R}) -> R * R * 3.

append() -> lists:sum([byte_size(bytes(300000, <<>>)) || _ <- lists:seq(1, 5)]).
bytes(0, B) -> B;
bytes(N, B) -> bytes(N - 1, <<B/binary, (N band 255)>>).

append_parts() -> byte_size(parts(1000000, <<>>)).
parts(0, B) -> B;
parts(N, B) -> parts(N - 1, <<B/binary, "id=", N:32, (<<"value">>)/binary, 10>>).

strings() ->
    S = "The quick brown fox jumps over the lazy dog; \x{e9}t\x{e9}",
    lists:sum([length(string:uppercase(string:trim(string:replace(S, "fox", "cat", all)))) + string:length(S) || _ <- lists:seq(1, 20000)]).

string_split() ->
    S = lists:append(lists:duplicate(200, "alpha,beta,gamma;")),
    lists:sum([length(string:tokens(S, ",;")) + length(string:split(S, ",", all)) + length(string:lexemes(S, ",;")) || _ <- lists:seq(1, 300)]).

format() -> lists:sum([iolist_size(io_lib:format("~s: ~w ~p ~b ~.2f~n", ["name", I, {a, I}, I, I / 3])) || I <- lists:seq(1, 30000)]).

term_text() ->
    T = [{item, I, #{name => <<"name">>, list => [1, 2, 3, "text"]}, [{a, 1.5}, {b, [c, d]}]} || I <- lists:seq(1, 300)],
    lists:sum([iolist_size(io_lib:format("~p", [T])) + iolist_size(io_lib:write(T)) || _ <- lists:seq(1, 10)]).

source() ->
    lists:append([["f", integer_to_list(I), "(X, [H | T]) when X > 1, is_atom(H) ->\n    case g(X + 1, {H, \"text\", 'an atom', 16#ff}) of\n        {ok, V} -> [V || V <- T, V =/= none];\n        #{key := Y} = M -> M#{key => Y * 2};\n        _ -> fun(A, B) -> A ++ B end\n    end.\n"] || I <- lists:seq(1, 100)]).
scan_parse() -> lists:sum([length(forms(lists:flatten(source()), 1, [])) || _ <- lists:seq(1, 20)]).
forms(S, L, Acc) ->
    case erl_scan:tokens([], S, L) of
        {done, {ok, Tokens, L2}, Rest} -> {ok, F} = erl_parse:parse_form(Tokens), forms(Rest, L2, [F | Acc]);
        _ -> Acc
    end.

%% Tokens of a text in a binary.
lexer() ->
    T = iolist_to_binary([["let x", integer_to_list(I), " = (y + ", integer_to_list(I), ") * 3.25; // note\n"] || I <- lists:seq(1, 20000)]),
    lists:sum([length(lex(T, [])) || _ <- lists:seq(1, 2)]).
lex(<<C, R/binary>>, A) when C =:= $\s; C =:= $\n -> lex(R, A);
lex(<<"//", R/binary>>, A) -> lex(skip(R), A);
lex(<<C, _/binary>> = B, A) when C >= $a, C =< $z -> N = word(B, 0), <<W:N/binary, R/binary>> = B, lex(R, [{word, W} | A]);
lex(<<C, _/binary>> = B, A) when C >= $0, C =< $9 -> {V, R} = digits(B, 0), lex(R, [{number, V} | A]);
lex(<<C, R/binary>>, A) -> lex(R, [C | A]);
lex(<<>>, A) -> lists:reverse(A).
skip(<<$\n, R/binary>>) -> R;
skip(<<_, R/binary>>) -> skip(R);
skip(<<>>) -> <<>>.
word(B, N) -> case B of <<_:N/binary, C, _/binary>> when C >= $a, C =< $z; C >= $0, C =< $9 -> word(B, N + 1); _ -> N end.
digits(<<C, R/binary>>, N) when C >= $0, C =< $9 -> digits(R, N * 10 + C - $0);
digits(R, N) -> {N, R}.

throw_catch() -> caught(1000000, 0).
caught(0, S) -> S;
caught(N, S) -> caught(N - 1, S + try thrown(N) catch throw:V -> V end).
thrown(N) when N rem 2 =:= 0 -> throw(2);
thrown(_) -> throw(1).

error_catch() -> errors(500000, 0).
errors(0, S) -> S;
errors(N, S) -> errors(N - 1, S + try list_to_integer(pick(N)) catch error:badarg -> 1 end).
pick(N) when N rem 2 =:= 0 -> "12";
pick(_) -> "x".

deep_throw() -> lists:sum([try deep(100) catch throw:{found, X} -> X end || _ <- lists:seq(1, 100000)]).
deep(0) -> throw({found, 7});
deep(N) -> 1 + deep(N - 1).

funs_in_lists() ->
    L = lists:seq(1, 200000),
    lists:sum([lists:foldl(fun(X, A) -> X + A end, 0, lists:filter(fun(X) -> X rem 3 =:= 0 end, lists:map(fun(X) -> X * 2 end, L))) || _ <- lists:seq(1, 10)]).

comprehensions() ->
    L = lists:seq(1, 1000),
    lists:sum([length([{X, Y} || X <- L, X rem 10 =:= 0, Y <- L, Y band 1 =:= 0]) || _ <- lists:seq(1, 30)]).

sort_tuples() ->
    L = [{I * 7919 rem 100003, I} || I <- lists:seq(1, 100000)],
    lists:sum([element(1, hd(lists:reverse(lists:keysort(1, L)))) + element(1, hd(lists:sort(L))) || _ <- lists:seq(1, 4)]).

sort_by() ->
    L = [I * 7919 rem 100003 || I <- lists:seq(1, 100000)],
    lists:sum([hd(lists:sort(fun(A, B) -> A >= B end, L)) || _ <- lists:seq(1, 4)]).

%% Square matrices as tuples of tuples.
matrix() ->
    N = 60,
    A = list_to_tuple([list_to_tuple([1 + I * J rem 9 || J <- lists:seq(1, N)]) || I <- lists:seq(1, N)]),
    lists:sum([element(N, element(N, product(A, A, N))) || _ <- lists:seq(1, 12)]).
product(A, B, N) -> list_to_tuple([list_to_tuple([cell(element(I, A), B, J, N, 0) || J <- lists:seq(1, N)]) || I <- lists:seq(1, N)]).
cell(_, _, _, 0, S) -> S;
cell(R, B, J, K, S) -> cell(R, B, J, K - 1, S + element(K, R) * element(J, element(K, B))).

mandelbrot() -> lists:sum([escape(X / 100 - 2.0, Y / 100 - 1.0, 0.0, 0.0, 100) || X <- lists:seq(0, 299), Y <- lists:seq(0, 199)]).
escape(_, _, _, _, 0) -> 0;
escape(_, _, A, B, N) when A * A + B * B > 4.0 -> N;
escape(X, Y, A, B, N) -> escape(X, Y, A * A - B * B + X, 2.0 * A * B + Y, N - 1).

%% Eight puzzles by search: a board is a map from cells to digits.
sudoku() ->
    P = "530070000600195000098000060800060003400803001700020006060000280000419005000080079",
    Board = maps:from_list([{I, C - $0} || {I, C} <- lists:zip(lists:seq(0, 80), P), C =/= $0]),
    lists:sum([begin S = solve(0, Board), lists:sum([I * maps:get(I, S) || I <- lists:seq(0, 80)]) end || _ <- lists:seq(1, 8)]).
solve(81, B) -> B;
solve(I, B) when is_map_key(I, B) -> solve(I + 1, B);
solve(I, B) -> attempts(lists:seq(1, 9) -- taken(I, B), I, B).
attempts([], _, _) -> none;
attempts([D | Ds], I, B) -> case solve(I + 1, B#{I => D}) of none -> attempts(Ds, I, B); S -> S end.
taken(I, B) ->
    R = I div 9, C = I rem 9, R0 = R div 3 * 3, C0 = C div 3 * 3,
    [D || J <- [R * 9 + K || K <- lists:seq(0, 8)] ++ [K * 9 + C || K <- lists:seq(0, 8)] ++ [(R0 + K div 3) * 9 + C0 + K rem 3 || K <- lists:seq(0, 8)],
          (D = maps:get(J, B, 0)) =/= 0].

trees() ->
    T = lists:foldl(fun(I, A) -> gb_trees:enter(I * 7919 rem 50021, I, A) end, gb_trees:empty(), lists:seq(1, 50000)),
    gb_trees:size(T) + lists:sum([element(2, gb_trees:lookup(K, T)) || {K, _} <- gb_trees:to_list(T)]).

proplists() ->
    L = [{list_to_atom("p" ++ integer_to_list(I)), I} || I <- lists:seq(1, 30)],
    lists:sum([proplists:get_value(p20, L) + element(2, lists:keyfind(p29, 1, L)) + proplists:get_value(none, L, 0) || _ <- lists:seq(1, 300000)]).

integers_text() -> lists:sum([list_to_integer(integer_to_list(I * 1234567)) rem 7 + binary_to_integer(integer_to_binary(I)) rem 3 || I <- lists:seq(1, 500000)]).

binary_split() ->
    T = iolist_to_binary([["GET /path/", integer_to_list(I), "?q=1&r=2 HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n"] || I <- lists:seq(1, 5000)]),
    lists:sum([length([binary:split(L, <<": ">>) || L <- binary:split(T, <<"\r\n">>, [global]), L =/= <<>>]) || _ <- lists:seq(1, 5)]).

dictionary() ->
    [put({k, I}, I) || I <- lists:seq(1, 1000)],
    lists:sum([get({k, 1 + I rem 1000}) + case put({k, 1}, I) of undefined -> 0; _ -> 1 end || I <- lists:seq(1, 500000)]) - 500000.

external() ->
    T = [{I, <<"name">>, #{a => I, b => [1, 2, 3]}, "text", 1.5} || I <- lists:seq(1, 20000)],
    lists:sum([length(binary_to_term(term_to_binary(T))) || _ <- lists:seq(1, 5)]).

fold_map() ->
    M = maps:from_list([{I, I} || I <- lists:seq(1, 20000)]),
    lists:sum([maps:fold(fun(_, V, A) -> V + A end, 0, maps:map(fun(_, V) -> V + 1 end, maps:filter(fun(K, _) -> K rem 2 =:= 0 end, M))) || _ <- lists:seq(1, 10)]).

%% Bytes as digits, from a tuple in the code, and back, four bits at a time.
hex() ->
    B = binary:copy(list_to_binary(lists:seq(0, 255)), 400),
    lists:sum([byte_size(unhexed(hexed(B, <<>>), <<>>)) - byte_size(B) + 200000 || _ <- lists:seq(1, 20)]).
hexed(<<A:4, B:4, C:4, D:4, R/binary>>, Acc) ->
    hexed(R, <<Acc/binary, (digit(A)), (digit(B)), (digit(C)), (digit(D))>>);
hexed(<<>>, Acc) -> Acc.
digit(N) -> element(N + 1, {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $a, $b, $c, $d, $e, $f}).
unhexed(<<A, B, C, D, R/binary>>, Acc) -> unhexed(R, <<Acc/binary, (value(A)):4, (value(B)):4, (value(C)):4, (value(D)):4>>);
unhexed(<<>>, Acc) -> Acc.
value(C) when C =< $9 -> C - $0;
value(C) -> C - $a + 10.

%% Characters of plain text counted eight bytes at a time, as libraries do that look for others by a
%% mask.
masked() ->
    B = binary:copy(<<"a line of plain text, as most are">>, 4000),
    lists:sum([plain(B, 0) - byte_size(B) + 96000 || _ <- lists:seq(1, 100)]).
plain(<<X:56, Y, R/binary>>, N) when Y =< 127, X band 16#80808080808080 =:= 0 -> plain(R, N + 8);
plain(<<Y, R/binary>>, N) when Y =< 127 -> plain(R, N + 1);
plain(<<>>, N) -> N.

%% Errors whose trace is read.
%% A loop, and not a comprehension: a trace is a walk through all frames, so below 200,000 frames it
%% takes a quadratic time on any runtime.
traces() -> traces(200000, 0).
traces(0, Sum) -> Sum;
traces(N, Sum) -> traces(N - 1, Sum + length(trace(N rem 3)) - length(trace(1)) + 5).
trace(N) ->
    try failing(N) catch error:_:Trace -> [F || {?MODULE, F, _, [{file, _} | _]} <- Trace] end.
failing(0) -> error({none, 0});
failing(N) -> failing(N - 1) + 1.
