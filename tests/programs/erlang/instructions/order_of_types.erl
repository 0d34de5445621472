%% Guards compare numbers with terms of every type, on either side: `C >= 0, C =< 255` also holds or
%% fails for lists, atoms and tuples.
-module(order_of_types).
-export([main/0]).

main() ->
    Terms = terms(),
    First = table(Terms),
    %% Often enough for machine code.
    [First = table(Terms) || _ <- lists:seq(1, 300)],
    [io:format("~w ~w~n", [kind(T), R]) || {T, R} <- lists:zip(Terms, First)],
    io:format("~w~n", [lists:map(fun kind/1, lists:sort(lists:reverse(Terms)))]),
    io:format("~w~n", [[lists:map(fun kind/1, lists:sort([T, N])) || T <- Terms, N <- [0, -1, 1 bsl 58]]]).

table(Terms) ->
    [{character(T), constants(T), [{both(T, U), both(U, T)} || U <- Terms]} || T <- Terms].

character(C) when C >= 0, C =< 255 -> character;
character(C) when C < 0 -> below;
character(_) -> above.

constants(T) ->
    [T < 7, 7 < T, T =< -7, -7 =< T, T > 576460752303423487, T >= 1.5, 1.5 >= T, T == 7, min(T, 7) =:= 7, max(7, T) =:= T].

both(A, B) when A < B -> less;
both(A, B) when A > B -> more;
both(A, B) when A >= B, A =< B -> same.

terms() ->
    [-1, 0, 7, 255, 256, 576460752303423487, -576460752303423488, 1 bsl 70, -(1 bsl 70), 7.0, 0.5, -0.5, 1.0e30,
     a, '', make_ref(), fun terms/0, self(), hd(erlang:ports()), {}, {1}, {1, 2, 3}, #{}, #{a => 1}, [], [1], "ab", [a | b],
     <<>>, <<"abc">>, <<1:3>>, binary:copy(<<"x">>, 100)].

kind(T) when is_reference(T) -> reference;
kind(T) when is_function(T) -> function;
kind(T) when is_pid(T) -> pid;
kind(T) when is_port(T) -> port;
kind(T) when is_binary(T), byte_size(T) > 50 -> large;
kind(T) -> T.
