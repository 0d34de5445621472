%% A process that computes without waiting builds deep or long terms repeatedly: its block shrinks,
%% grows again, and then stays. Older terms, binaries and a dictionary survive. It also waits or
%% requests a collection in between, and builds lists that only grow. @stress @fence
-module(regrown_heaps).
-export([main/0]).

main() ->
    io:format("~p~n", [in_process(fun() -> rounds(8, kept(200), none) end)]),
    io:format("~p~n", [in_process(fun() -> rounds(8, kept(200), waits) end)]),
    io:format("~p~n", [in_process(fun() -> rounds(8, kept(200), collects) end)]),
    io:format("~p~n", [in_process(fun() -> grows(size(), []) end)]),
    io:format("~p~n", [in_process(fun() -> deep_then_wide(6, []) end)]).

size() -> 60000.

in_process(F) ->
    {P, R} = spawn_monitor(fun() -> exit({done, F()}) end),
    receive {'DOWN', R, process, P, {done, Result}} -> Result; {'DOWN', R, process, P, Other} -> {died, Other} end.

kept(N) -> [{I, <<I:64, 0:512>>, [I | self()]} || I <- lists:seq(1, N)].

rounds(N, Kept, Between) ->
    put(kept, Kept),
    Sums = [round(Between, I) || I <- lists:seq(1, N)],
    {Sums =:= [hd(Sums) || _ <- Sums], get(kept) =:= Kept, length(Kept)}.

round(Between, I) ->
    L = pairs(size(), I),
    B = [<<X:800>> || X <- lists:seq(1, 50)],
    S = lists:sum([A - C || {A, C} <- L]) + length(B) + deep(size()),
    case Between of
        none -> ok;
        waits -> receive never -> ok after 1 -> ok end;
        collects -> erlang:garbage_collect()
    end,
    S.

%% On the stack first, then on the heap.
pairs(0, _) -> [];
pairs(N, I) -> [{N + I, I} | pairs(N - 1, I)].

deep(0) -> 0;
deep(N) -> 1 + deep(N - 1).

grows(0, L) -> {length(L), lists:sum([A || {A, _, _} <- L]), lists:usort([F(1) || {_, _, F} <- L])};
grows(N, L) -> grows(N - 1, [{N, {N, [N]}, fun(X) -> X + N rem 3 end} | L]).

deep_then_wide(0, Acc) -> [length(A) || A <- Acc];
deep_then_wide(N, Acc) ->
    Size = size(),
    Size = deep(Size),
    W = lists:map(fun(X) -> {X, [X]} end, lists:seq(1, Size div 2)),
    deep_then_wide(N - 1, [lists:sublist(W, N) | Acc]).
