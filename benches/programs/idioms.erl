%% Pieces of everyday code that is compiled from Elixir, written as its compiler and its library
%% write them: texts by blocks of seven bytes and masks, clauses of ranges over a binary, structs
%% and keyword lists, chains of results, I/O lists, dates, matrices of floats.
%% See `bench.erl` for how one is run.
-module(idioms).
-compile([export_all, nowarn_export_all]).

names() ->
    [text_length, text_slice, text_upcase, text_escape, render, nested_comprehensions, keywords, with_chain, float_matrix, dates, byte_append,
     structs, char_lists, rescue, dispatch_funs].

%% Results that stock gives.
expected(Name) -> maps:get(Name, results()).
results() ->
    #{text_length => 4160000, text_slice => 305772, text_upcase => 2120000, text_escape => 2160000, render => 1280824, nested_comprehensions => 135949,
      keywords => 420000, with_chain => 500000, float_matrix => 25, dates => 42688374624, byte_append => 1500000, structs => 1500000,
      char_lists => 860000, rescue => 200000, dispatch_funs => 2500000}.

text() -> unicode:characters_to_binary(lists:append(lists:duplicate(4000, "The quick brown fox jumps over the lazy dog, na\x{ef}ve.\n"))).

text_length() ->
    T = text(),
    lists:sum([points(T, 0) || _ <- lists:seq(1, 20)]).
points(<<A:56, R/bits>>, N) when A band 16#80808080808080 =:= 0 -> points(R, N + 7);
points(<<_/utf8, R/bits>>, N) -> points(R, N + 1);
points(<<_, R/bits>>, N) -> points(R, N + 1);
points(<<>>, N) -> N.

text_slice() ->
    T = binary:part(text(), 0, 2000),
    lists:sum([byte_size(slice(T, I rem 1000, 100)) || I <- lists:seq(1, 3000)]).
slice(T, From, N) ->
    S = skip(T, From),
    Rest = skip(S, N),
    binary:part(S, 0, byte_size(S) - byte_size(Rest)).
skip(R, 0) -> R;
skip(<<A:56, R/bits>>, N) when N >= 7, A band 16#80808080808080 =:= 0 -> skip(R, N - 7);
skip(<<_/utf8, R/bits>>, N) -> skip(R, N - 1);
skip(R, _) -> R.

text_upcase() ->
    T = text(),
    lists:sum([iolist_size(upcase(T, [])) || _ <- lists:seq(1, 10)]).
upcase(<<C, R/bits>>, A) when C >= $a, C =< $z -> upcase(R, [C - 32 | A]);
upcase(<<C, R/bits>>, A) when C < 128 -> upcase(R, [C | A]);
upcase(<<C/utf8, R/bits>>, A) -> upcase(R, [<<C/utf8>> | A]);
upcase(<<>>, A) -> lists:reverse(A).

text_escape() ->
    T = text(),
    lists:sum([byte_size(escape(T, <<>>)) || _ <- lists:seq(1, 10)]).
escape(<<$\n, R/bits>>, A) -> escape(R, <<A/bits, "\\n">>);
escape(<<$", R/bits>>, A) -> escape(R, <<A/bits, "\\\"">>);
escape(<<C, R/bits>>, A) when C >= 16#20, C =< 16#7e -> escape(R, <<A/bits, C>>);
escape(<<C/utf8, R/bits>>, A) -> escape(R, <<A/bits, C/utf8>>);
escape(<<>>, A) -> A.

render() ->
    Rows = [#{id => I, name => <<"name">>, tags => [<<"a">>, <<"b">>], price => I * 3} || I <- lists:seq(1, 5000)],
    lists:sum([iolist_size(page(Rows)) || _ <- lists:seq(1, 4)]).
page(Rows) -> [<<"<table>">>, [row(R) || R <- Rows], <<"</table>">>].
row(#{id := Id, name := Name, tags := Tags, price := P}) ->
    [<<"<tr><td>">>, integer_to_binary(Id), <<"</td><td>">>, Name, <<"</td>">>, tags(Tags), <<"<td>">>, integer_to_binary(P), <<"</td></tr>">>].
tags(Tags) -> [[<<"<i>">>, T, <<"</i>">>] || T <- Tags].

nested_comprehensions() ->
    length([{X, Y, Z} || X <- lists:seq(1, 50), Y <- lists:seq(1, 50), X < Y, Z <- lists:seq(1, 111), Z * Z =/= X * X + Y * Y]).

keywords() ->
    K = [{list_to_atom("key" ++ integer_to_list(I)), I} || I <- lists:seq(1, 20)],
    lists:sum([keyword(key7, K) + keyword(key13, keyword_put(key3, I, K)) + keyword(none, K) + 1 || I <- lists:seq(1, 20000)]).
keyword(K, L) -> case lists:keyfind(K, 1, L) of {_, V} -> V; false -> 0 end.
keyword_put(K, V, L) -> [{K, V} | delete(K, L)].
delete(K, [{K, _} | T]) -> delete(K, T);
delete(K, [P | T]) -> [P | delete(K, T)];
delete(_, []) -> [].

with_chain() -> length([ok || I <- lists:seq(1, 500000), {ok, _} <- [with(I)]]).
with(I) ->
    case parse(I) of
        {ok, A} -> case check(A) of
                       {ok, B} -> case store(B, #{value => A}) of
                                      {ok, #{value := V} = M} -> {ok, M#{value => V + 1}};
                                      {error, _} = E -> E
                                  end;
                       {error, _} = E -> E
                   end;
        error -> {error, parse}
    end.
parse(I) when is_integer(I) -> {ok, I};
parse(_) -> error.
check(I) when I > 0 -> {ok, {checked, I}};
check(I) -> {error, I}.
store({checked, I}, M) -> {ok, M#{value => I, stored => true}}.

float_matrix() ->
    A = [[float(I * J rem 7) + 0.5 || J <- lists:seq(1, 60)] || I <- lists:seq(1, 60)],
    trunc(lists:sum([trace(multiply(A, A)) / 1.0e4 || _ <- lists:seq(1, 5)])).
multiply(A, B) -> T = transpose(B), [[dot(R, C, 0.0) || C <- T] || R <- A].
dot([X | Xs], [Y | Ys], S) -> dot(Xs, Ys, S + X * Y);
dot([], [], S) -> S.
transpose([[] | _]) -> [];
transpose(M) -> [[hd(R) || R <- M] | transpose([tl(R) || R <- M])].
trace(M) -> element(2, lists:foldl(fun(R, {I, S}) -> {I + 1, S + lists:nth(I, R)} end, {1, 0.0}, M)).

%% Days of the calendar, and back.
dates() -> lists:sum([rounded(D) || _ <- lists:seq(1, 4), D <- lists:seq(0, 146096)]).
rounded(D) -> {Y, M, N} = date_of(D), days(Y, M, N).
days(Y, M, D) ->
    Y1 = if M =< 2 -> Y - 1; true -> Y end,
    Era = Y1 div 400,
    YoE = Y1 - Era * 400,
    M1 = if M > 2 -> M - 3; true -> M + 9 end,
    DoY = (153 * M1 + 2) div 5 + D - 1,
    Era * 146097 + YoE * 365 + YoE div 4 - YoE div 100 + DoY.
date_of(Z) ->
    Era = Z div 146097,
    DoE = Z - Era * 146097,
    YoE = (DoE - DoE div 1460 + DoE div 36524 - DoE div 146096) div 365,
    DoY = DoE - (365 * YoE + YoE div 4 - YoE div 100),
    M1 = (5 * DoY + 2) div 153,
    D = DoY - (153 * M1 + 2) div 5 + 1,
    M = if M1 < 10 -> M1 + 3; true -> M1 - 9 end,
    Y = YoE + Era * 400,
    {if M =< 2 -> Y + 1; true -> Y end, M, D}.

byte_append() -> byte_size(append(500000, <<>>)).
append(0, B) -> B;
append(N, B) -> append(N - 1, <<B/binary, N, (N rem 128), $,>>).

structs() ->
    S = #{'__struct__' => account, id => 0, balance => 0, log => []},
    #{balance := B} = lists:foldl(fun step/2, S, lists:seq(1, 500000)),
    B.
step(I, #{'__struct__' := account, balance := B} = S) when I rem 2 =:= 0 -> S#{balance := B + 4, id := I};
step(_, #{'__struct__' := account, balance := B} = S) -> S#{balance := B + 2}.

char_lists() -> lists:sum([length(title("the quick brown fox jumps over the lazy dog")) || _ <- lists:seq(1, 20000)]).
title([]) -> [];
title([C | T]) when C >= $a, C =< $z -> [C - 32 | word(T)];
title([C | T]) -> [C | title(T)].
word([$\s | T]) -> [$\s | title(T)];
word([C | T]) -> [C | word(T)];
word([]) -> [].

rescue() -> rescued(200000, 0).
rescued(0, S) -> S;
rescued(N, S) -> rescued(N - 1, S + risky(N)).
risky(I) -> try outer(I) catch error:#{'__exception__' := true, value := V} -> V end.
outer(I) -> 1 + middle(I).
middle(I) -> try inner(I) after put(last, I) end.
inner(I) when I rem 2 =:= 0 -> error(#{'__exception__' => true, '__struct__' => oops, value => 1});
inner(_) -> 0.

dispatch_funs() ->
    Fs = [fun(X) -> X + 1 end, fun(X) -> X * 2 end, fun(X) -> X - 1 end, fun erlang:abs/1],
    dispatch(500000, Fs, 0).
dispatch(0, _, S) -> S;
dispatch(N, Fs, S) -> dispatch(N - 1, Fs, S + run(Fs, 2)).
run([F | T], X) -> run(T, F(X));
run([], X) -> X.
