%% Walks of ordered tables by next and prev, compared with a sorted list, while keys come and go
%% between the steps: by the walker itself, or in a table with another walker.
%% @stress
-module(ordered_walks_with_changes).
-export([main/0]).

main() ->
    io:format("~p~n", [[walks(T, Seed) || T <- [integers, tuples, strings, mixed], Seed <- [1, 2]]]),
    io:format("~p~n", [ends()]),
    io:format("~p~n", [equal_numbers()]),
    io:format("~p~n", [two_tables()]),
    io:format("~p~n", [recreated()]),
    io:format("~p~n", [walkers()]),
    init:stop().

key(integers, I) -> I;
key(tuples, I) -> {I rem 7, {k, I}};
key(strings, I) -> "key" ++ integer_to_list(I);
key(mixed, I) -> element(1 + I rem 5, {I, float(I), {I}, <<I:32>>, [I, a]}).

rand(S) -> (S * 1103515245 + 12345) band 16#7fffffff.

%% Every step is checked against the list of all keys.
walks(Type, Seed) ->
    T = ets:new(t, [ordered_set]),
    Keys = lists:usort([key(Type, I) || I <- lists:seq(1, 60)]),
    ets:insert(T, [{K, 0} || K <- Keys]),
    R = steps(T, Type, Keys, hd(Keys), 150, Seed, 0),
    ets:delete(T),
    {Type, R}.

steps(_, _, Keys, _, 0, _, Sum) -> {length(Keys), Sum};
steps(T, Type, Keys0, At, N, S0, Sum) ->
    S = rand(S0),
    K = key(Type, 1 + S rem 80),
    Keys =
        case S div 1000 rem 12 of
            0 -> ets:insert(T, {K, N}), lists:umerge([K], Keys0);
            1 -> ets:delete(T, K), lists:delete(K, Keys0);
            2 -> true = ets:delete(T, At), lists:delete(At, Keys0);
            3 -> [ets:update_counter(T, X, 1) || X <- Keys0, X == K], Keys0;
            4 -> [] = ets:take(T, {none}), Keys0;
            5 -> ets:insert(T, {At, N}), lists:umerge([At], Keys0);
            6 when N rem 17 =:= 0 -> ets:delete_all_objects(T), [];
            7 when Keys0 =:= [] -> ets:insert(T, {K, N}), [K];
            _ -> Keys0
        end,
    Forth = ets:next(T, At),
    Forth = first([X || X <- Keys, X > At]),
    Back = ets:prev(T, At),
    Back = first(lists:reverse([X || X <- Keys, X < At])),
    Next =
        case S rem 10 of
            0 -> K;
            1 when Back =/= '$end_of_table' -> Back;
            _ when Forth =/= '$end_of_table' -> Forth;
            _ -> K
        end,
    %% Several steps in one direction without a change.
    Run = run(T, Next, S rem 25),
    Run = lists:sublist([X || X <- Keys, X > Next], S rem 25),
    steps(T, Type, Keys, Next, N - 1, S, Sum + erlang:phash2({Forth, Back})).

first([X | _]) -> X;
first([]) -> '$end_of_table'.

run(_, _, 0) -> [];
run(T, K, N) ->
    case ets:next(T, K) of
        '$end_of_table' -> [];
        Next -> [Next | run(T, Next, N - 1)]
    end.

ends() ->
    T = ets:new(t, [ordered_set]),
    Empty = {ets:next(T, 1), ets:prev(T, 1)},
    ets:insert(T, [{I} || I <- lists:seq(1, 40)]),
    [{ets:next(T, 40), ets:prev(T, 1), ets:next(T, 0), ets:prev(T, 41)} || _ <- [1, 2]] ++
        [Empty, catch_class(fun() -> ets:next(T, '$end_of_table') end), run(T, 36, 9)].

catch_class(F) -> try F() catch C:R -> {C, R} end.

%% 1 and 1.0 are one key, of which the table has the one put in last.
equal_numbers() ->
    T = ets:new(t, [ordered_set]),
    ets:insert(T, [{I} || I <- lists:seq(1, 30)]),
    A = run(T, 0, 12),
    B = [ets:next(T, float(I)) || I <- lists:seq(1, 12)],
    ets:insert(T, {5.0}),
    {A, B, run(T, 0, 12), run(T, 4.0, 3)}.

two_tables() ->
    [A, B] = [ets:new(t, [ordered_set]) || _ <- [1, 2]],
    ets:insert(A, [{I} || I <- lists:seq(1, 50)]),
    ets:insert(B, [{I} || I <- lists:seq(1, 50, 2)]),
    both(A, B, 0, 0).
both(_, _, '$end_of_table', Y) -> {'end', Y};
both(A, B, X, '$end_of_table') -> both(A, B, ets:next(A, X), 0);
both(A, B, X, Y) -> both(A, B, ets:next(A, X), ets:next(B, Y)).

%% Each table has the same keys until it is deleted, at other places.
recreated() ->
    lists:sum([begin
        T = ets:new(t, [ordered_set]),
        ets:insert(T, [{{I, <<I:64>>}} || I <- lists:seq(N, 30)]),
        L = run(T, {0, <<>>}, 40),
        ets:delete(T),
        length(L)
    end || N <- lists:seq(1, 30)]).

%% Other processes walk while keys that they pass by come and go. They meet all keys that stay.
walkers() ->
    T = ets:new(t, [ordered_set, public]),
    Stay = [{I, stays} || I <- lists:seq(1, 200)],
    ets:insert(T, [{K} || K <- Stay]),
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), [walk(T, ets:first(T), []) || _ <- lists:seq(1, 5)]} end) || _ <- [1, 2, 3]],
    [begin ets:insert(T, {{I rem 200, goes, I}}), ets:delete(T, {(I + 50) rem 200, goes, I - 150}) end || I <- lists:seq(1, 1000)],
    [receive {P, Walks} -> [Stay = [K || {_, stays} = K <- W] || W <- Walks], length(Walks) end || P <- Pids].

walk(_, '$end_of_table', L) -> lists:reverse(L);
walk(T, K, L) -> walk(T, ets:next(T, K), [K | L]).
