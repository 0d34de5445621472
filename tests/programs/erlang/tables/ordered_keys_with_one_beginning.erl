%% Most keys of ordered tables are tuples that begin alike, and some are not. Every order of
%% insertion results in the order of terms. @stress
-module(ordered_keys_with_one_beginning).
-export([main/0]).

main() ->
    Users = [{user, K} || K <- lists:seq(1, 40) ++ [1.5, 2.5, x, y, <<"b">>, <<"ba">>, "l", "la", [], {1}, {1, 2}, #{}, 1 bsl 70, -(1 bsl 70), 1.0e30]],
    More = [{user, K, L} || K <- [1, a, "x"], L <- [2, 2.5, b]],
    Others = [1, -7, 2.5, user, self(), {user}, {}, {aaa, 1}, {zzz, 1}, {'', 1}, {2, 1}, {2.5, 1}, {"user", 1}, {[], 1}, {{user}, 1}, {<<"user">>, 1},
              #{user => 1}, [], [user, 1], "user", <<"user">>, <<1:3>>, make_ref(), fun main/0],
    Orders = [Users ++ Others ++ More, Others ++ Users ++ More, More ++ Others ++ Users, lists:reverse(Users) ++ Others,
              interleaved(Users, Others), interleaved(Others, Users), mixed(Users ++ More ++ Others)],
    io:format("~p~n", [[table(Keys) || Keys <- Orders]]),
    %% As many keys that begin alike that others no longer change what is known of them.
    Many = [{user, I} || I <- lists:seq(1, 200)],
    io:format("~p~n", [[table(Many ++ Others ++ More), table(mixed(Many) ++ Others), table(Others ++ mixed(Many)), table(interleaved(Many, Others))]]),
    io:format("~p~n", [equal_numbers()]),
    io:format("~p~n", [emptied()]),
    io:format("~p~n", [[patterns(P, Many ++ Others ++ More) || P <- [{user, '_'}, {user, '_', '_'}, {'_', 1}, {aaa, '_'}, {user, 7}, {user, a, '_'}, '_']]]).

interleaved([A | L], [B | M]) -> [A, B | interleaved(L, M)];
interleaved(L, M) -> L ++ M.
mixed(L) -> [X || {_, X} <- lists:sort([{erlang:phash2({I, x}), X} || {I, X} <- lists:zip(lists:seq(1, length(L)), L)])].

%% Whether the table is in order after each kind of change.
table(Keys) ->
    T = ets:new(t, [ordered_set]),
    [true = ets:insert(T, {K, 1}) || K <- Keys],
    Sorted = lists:sort(Keys),
    Up = up(T, ets:first(T)) =:= Sorted,
    Down = down(T, ets:last(T)) =:= lists:reverse(Sorted),
    All = [K || {K, _} <- ets:tab2list(T)] =:= Sorted,
    Found = lists:all(fun(K) -> ets:lookup(T, K) =:= [{K, 1}] end, Keys),
    None = [K || K <- [0, {user, 0}, {user, zz}, {usr, 1}, {user, 1, 1}, [user], {{user}, 2}], ets:member(T, K)],
    Next = [ets:next(T, K) =:= hd([L || L <- Sorted, L > K] ++ ['$end_of_table']) || K <- [0, {user, 0}, {user, 3.5}, {userz, 1}, {a}, {user, 1, a}]],
    {Out, Rest} = lists:split(length(Keys) div 2, mixed(Keys)),
    [true = ets:delete(T, K) || K <- Out],
    Left = up(T, ets:first(T)) =:= lists:sort(Rest),
    [true = ets:insert_new(T, {K, 2}) || K <- Out],
    false = ets:insert_new(T, {hd(Rest), 2}),
    Again = up(T, ets:first(T)) =:= Sorted,
    ets:delete(T),
    {Up, Down, All, Found, None, lists:usort(Next), Left, Again}.

up(_, '$end_of_table') -> [];
up(T, K) -> [K | up(T, ets:next(T, K))].
down(_, '$end_of_table') -> [];
down(T, K) -> [K | down(T, ets:prev(T, K))].

%% A float that equals an integer is the same key, and replaces it.
equal_numbers() ->
    T = ets:new(t, [ordered_set]),
    ets:insert(T, [{{n, I, x}, I} || I <- lists:seq(1, 10)]),
    ets:insert(T, [{{n, float(I), x}, float} || I <- lists:seq(2, 10, 2)]),
    ets:insert(T, {{n, 5.5, x}, between}),
    L = ets:tab2list(T),
    Same = [ets:lookup_element(T, {n, I * 1.0, x}, 2) || I <- [1, 2, 3]],
    ets:update_counter(T, {n, 1.0, x}, {2, 10}),
    {L, Same, ets:lookup(T, {n, 1, x})}.

%% An emptied table learns anew how its keys begin.
emptied() ->
    T = ets:new(t, [ordered_set]),
    [begin
        [ets:insert(T, {{H, I}, I}) || I <- mixed(lists:seq(1, 70))],
        ets:insert(T, {H, 0}),
        R = erlang:phash2(ets:tab2list(T)),
        case H of c -> ets:delete_all_objects(T); _ -> [ets:delete(T, K) || {K, _} <- ets:tab2list(T)] end,
        {R, ets:info(T, size)}
    end || H <- [a, b, c, d, 5]].

patterns(P, Keys) ->
    T = ets:new(t, [ordered_set]),
    [ets:insert(T, {K, 1}) || K <- mixed(Keys)],
    L = ets:select(T, [{{P, '_'}, [], ['$_']}]),
    {Some, _} = case ets:select_reverse(T, [{{P, '_'}, [], ['$_']}], 3) of '$end_of_table' -> {[], none}; X -> X end,
    {length(L), L =:= lists:sort(L), length(Some), Some =:= lists:sublist(lists:reverse(L), 3)}.
