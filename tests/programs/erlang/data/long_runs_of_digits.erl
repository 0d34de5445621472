%% Products, squares, quotients and remainders of integers of thousands of words that consist of
%% long runs of zeros and ones, on which fast algorithms go wrong: parts of them are zero, and
%% carries go far. Each result is checked by itself, and its hash printed. @seconds 240
-module(long_runs_of_digits).
-export([main/0]).

main() ->
    Square = [[{986, 1}, {1805, 0}, {749, 1}, {1534, 0}], [{1376, 0}, {1128, 1}, {882, 0}, {327, 1}, {658, 0}],
        [{508, 1}, {1887, 0}, {121, 1}, {508, 0}, {418, 1}, {1299, 0}], [{1178, 1}, {2152, 0}, {1816, 1}, {1029, 0}]],
    [io:format("square ~p~n", [square(number(R))]) || R <- Square],
    [io:format("product ~p~n", [product(number(X), number(Y))]) || {X, Y} <- pairs(Square)],
    Long = (1 bsl 1700000) - 3,
    [io:format("quotient ~p~n", [quotient(A, B)]) || {A, B} <- [
        {Long, (1 bsl 850000) - 5}, {1 bsl 1500000, 1 bsl 850000}, {Long, (1 bsl 850000) + 1}, {1 bsl 1700000, (1 bsl 850000) - 1},
        {-Long, (1 bsl 1000000) bxor (1 bsl 500000)}, {number([{9000, 0}, {2000, 1}, {12000, 0}, {500, 1}]), number([{5000, 1}, {5000, 0}, {1, 1}])},
        {number([{12000, 1}, {9000, 0}, {3, 1}]), -number([{9000, 0}, {1000, 1}])}]],
    [io:format("text ~p~n", [text(X, Base)]) || X <- [number([{2300, 1}, {2400, 0}]), 1 bsl 290000], Base <- [10, 7, 36]].

%% The number of these runs of words, from the low ones. Its last word is not zero.
number(Runs) -> number(Runs, 0, 0).
number([], At, N) -> N bor (1 bsl (64 * (At - 1)));
number([{L, B} | T], At, N) -> number(T, At + L, N bor ((B * ((1 bsl (64 * L)) - 1)) bsl (64 * At))).

pairs(L) -> [{X, Y} || X <- L, Y <- L, X < Y].

square(X) ->
    P = X * X,
    M = modulo(),
    {erlang:phash2(P), P rem M =:= (X rem M) * (X rem M) rem M}.

product(X, Y) ->
    P = X * -Y,
    M = modulo(),
    {erlang:phash2(P), -P rem M =:= (X rem M) * (Y rem M) rem M}.

quotient(A, B) ->
    {Q, R} = {A div B, A rem B},
    {erlang:phash2({Q, R}), abs(R) < abs(B), Q * B + R =:= A}.

text(X, Base) ->
    T = integer_to_binary(X, Base),
    {erlang:phash2(T), byte_size(T), binary_to_integer(T, Base) =:= X}.

%% Kept from the compiler, which would compute with it.
modulo() -> list_to_integer("2305843009213693951").
