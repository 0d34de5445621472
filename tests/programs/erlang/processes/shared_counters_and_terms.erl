%% Several processes use atomics, counters, persistent_term and code at once. @stress @shared
-module(shared_counters_and_terms).
-export([main/0]).

main() ->
    A = atomics:new(3, [{signed, true}]),
    ok = atomics:put(A, 1, 10), ok = atomics:add(A, 1, -15),
    io:format("~p ~p ~p~n", [atomics:get(A, 1), atomics:add_get(A, 2, 7), atomics:exchange(A, 2, 1)]),
    io:format("~p ~p~n", [atomics:compare_exchange(A, 2, 1, 5), atomics:compare_exchange(A, 2, 1, 6)]),
    io:format("~p~n", [maps:remove(memory, atomics:info(A))]),
    U = atomics:new(1, [{signed, false}]),
    atomics:sub(U, 1, 1),
    io:format("~p~n", [atomics:get(U, 1)]),
    io:format("~p~n", [element(1, element(2, catch atomics:get(A, 4)))]),
    C = counters:new(2, [write_concurrency]),
    Self = self(),
    Ps = [spawn_link(fun() -> [counters:add(C, 1, 1) || _ <- lists:seq(1, 500)], Self ! done end) || _ <- lists:seq(1, 8)],
    [receive done -> ok end || _ <- Ps],
    io:format("~p~n", [counters:get(C, 1)]),
    persistent_term:put(key, {big, lists:seq(1, 10)}),
    io:format("~p ~p~n", [persistent_term:get(key), persistent_term:get(missing, default)]),
    io:format("~p~n", [element(1, element(2, catch persistent_term:get(missing)))]),
    persistent_term:put(key, other), io:format("~p~n", [persistent_term:get(key)]),
    io:format("~p ~p~n", [persistent_term:erase(key), persistent_term:erase(key)]),
    T = ets:new(t, [public, {write_concurrency, true}]),
    Ws = [spawn_link(fun() -> [ets:update_counter(T, k, 1, {k, 0}) || _ <- lists:seq(1, 200)], Self ! done end) || _ <- lists:seq(1, 8)],
    [receive done -> ok end || _ <- Ws],
    io:format("~p~n", [ets:lookup(T, k)]).
