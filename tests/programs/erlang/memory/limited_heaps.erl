%% Budgets leave heaps little more than they need, so that old generations are collected in place
%% although they are small. Where there are no budgets, they are ordinary heaps.
-module(limited_heaps).
-export([main/1]).

main(_) ->
    [io:format("~p ~p~n", [Name, in_budget(F)])
        || {Name, F} <- [{lists, fun lists_/0}, {maps, fun maps_/0}, {natives, fun natives/0},
                         {dictionary, fun dictionary/0}, {deep, fun deep/0}, {messages, fun messages/0}]].

%% The result of a function in a process that may use 8 MiB.
in_budget(F) ->
    Self = self(),
    Run = fun() -> Self ! {self(), catch F()} end,
    P = try purlin:budget(#{memory => 8 bsl 20}) of
        {ok, B} -> spawn_opt(Run, [link, {budget, B}])
    catch
        error:undef -> spawn_link(Run)
    end,
    receive {P, X} -> X end.

item(I) -> {I, [I, float(I)], <<I:64>>, fun(X) -> X + I end}.

%% A long list of which a part is replaced in each round.
lists_() -> lists_(6, [item(I) || I <- lists:seq(1, 12000)]).
lists_(0, L) -> sum(L);
lists_(N, L) -> lists_(N - 1, [case I rem 3 of 0 -> item(I + N); _ -> X end || {I, _, _, _} = X <- L]).

sum(L) -> sum(L, 0).
sum([], S) -> S;
sum([{I, [I, Float], <<I:64>>, F} | L], S) -> sum(L, (S + F(trunc(Float))) rem 1000003).

%% A map that grows and shrinks.
maps_() -> maps_(8, #{}).
maps_(0, M) -> {maps:size(M), maps:fold(fun(K, {K, [V]}, S) -> (S * 31 + K + V) rem 1000003 end, 0, M)};
maps_(N, M) ->
    More = lists:foldl(fun(I, A) -> A#{I * N => {I * N, [N]}} end, M, lists:seq(1, 6000)),
    maps_(N - 1, maps:filter(fun(K, _) -> K rem 5 =/= N rem 5 end, More)).

%% Natives whose results do not fit into the block.
natives() -> natives(12, [], 0).
natives(0, Kept, S) -> {length(Kept), S};
natives(N, Kept, S) ->
    L = binary_to_list(<<N, 0:(40000 * 8), N>>),
    T = list_to_tuple(L),
    M = maps:from_list([{I, L} || I <- lists:seq(1, 100)]),
    R = lists:reverse(L, [N]),
    natives(N - 1, [hd(L) | lists:sublist(Kept, 3)], S + tuple_size(T) + maps:size(M) + lists:last(R)).

%% Terms that only the dictionary holds.
dictionary() ->
    [put({key, I}, item(I)) || I <- lists:seq(1, 6000)],
    [put({key, I}, item(I + 1)) || I <- lists:seq(1, 6000, 2)],
    [erase({key, I}) || I <- lists:seq(1, 6000, 3)],
    {length(get()), sum([V || {{key, _}, V} <- get()])}.

%% A deep stack, each frame of which holds something.
deep() -> deep(20000).
deep(0) -> 0;
deep(N) ->
    {I, [I, F], _, _} = item(N),
    (deep(N - 1) + I + trunc(F)) rem 1000003.

%% Messages that wait while the heap is collected.
messages() ->
    Self = self(),
    [Self ! {m, I, item(I)} || I <- lists:seq(1, 600)],
    L = lists_(2, [item(I) || I <- lists:seq(1, 6000)]),
    {L, taken(600, 0)}.
taken(0, S) -> S;
taken(N, S) -> receive {m, N, X} -> taken(N - 1, (S + sum([X])) rem 1000003) end.
