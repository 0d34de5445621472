%% Terms of 1 to 50 KiB that are sent, captured, answered or looked up again and again; and, from
%% `once_1` on, terms that are sent once, where to find out what is sent again could cost.
-module(again).
-export([names/0, expected/1]).
-export([broadcast_1/0, broadcast_5/0, broadcast_50/0, callers_10/0, callers_50/0, tasks_8/0, registry/0, lookups_10/0,
         config_1/0]).
-export([once_1/0, once_5/0, once_50/0, twice_5/0, answers_5/0]).
-export([init/1, handle_call/3, handle_cast/2]).

names() ->
    [broadcast_1, broadcast_5, broadcast_50, callers_10, callers_50, tasks_8, registry, lookups_10, config_1,
     once_1, once_5, once_50, twice_5, answers_5].

expected(broadcast_1) -> 10000;
expected(broadcast_5) -> 10000;
expected(broadcast_50) -> 10000;
expected(callers_10) -> 1000;
expected(callers_50) -> 1000;
expected(tasks_8) -> 10000;
expected(registry) -> 100000;
expected(lookups_10) -> 100000;
expected(config_1) -> 20000;
expected(once_1) -> 100000;
expected(once_5) -> 40000;
expected(once_50) -> 5000;
expected(twice_5) -> 40000;
expected(answers_5) -> 20000.

%% Maps of about so many KiB: a pair takes 5 words with its tuple in a small map, 7 in a large one.
value(1) -> map(26);
value(KiB) -> map(KiB * 128 div 7).
map(N) -> maps:from_list([{I, {I, value}} || I <- lists:seq(1, N)]).

%% Ten thousand processes are told the same and keep it until all have it.
broadcast_1() -> broadcast(10000, value(1)).
broadcast_5() -> broadcast(10000, value(5)).
broadcast_50() -> broadcast(10000, value(50)).
broadcast(N, V) ->
    Self = self(),
    Ps = [spawn_link(fun() -> receive {told, M} -> Self ! map_size(M), receive stop -> map_size(M) end end end)
          || _ <- lists:seq(1, N)],
    [P ! {told, V} || P <- Ps],
    Size = map_size(V),
    K = length([ok || _ <- Ps, receive S -> S =:= Size end]),
    stop(Ps),
    K.
stop(Ps) ->
    Rs = [monitor(process, P) || P <- Ps],
    [begin unlink(P), P ! stop end || P <- Ps],
    [receive {'DOWN', _, _, _, _} -> ok end || _ <- Rs].

%% A registry of a hundred thousand processes, each of which is told the same message.
registry() -> broadcast(100000, value(2)).

%% A server that answers each caller with what it keeps.
init(State) -> {ok, State}.
handle_call(state, _, {V, N}) -> {reply, V, {V, N + 1}};
handle_call({fresh, N}, _, S) -> {reply, lists:seq(1, N), S}.
handle_cast(_, S) -> {noreply, S}.
callers_10() -> callers(1000, value(10)).
callers_50() -> callers(1000, value(50)).
callers(N, V) ->
    {ok, S} = gen_server:start_link(?MODULE, {V, 0}, []),
    Self = self(),
    [spawn_link(fun() -> M = gen_server:call(S, state, infinity), Self ! map_size(M) end) || _ <- lists:seq(1, N)],
    Size = map_size(V),
    K = length([ok || _ <- lists:seq(1, N), receive X -> X =:= Size end]),
    gen_server:stop(S),
    K.

%% One process that asks for a small configuration all the time.
config_1() ->
    {ok, S} = gen_server:start_link(?MODULE, {value(1), 0}, []),
    N = asked(20000, S, state, 0),
    gen_server:stop(S),
    N.
asked(0, _, _, N) -> N;
asked(K, S, What, N) -> _ = gen_server:call(S, What), asked(K - 1, S, What, N + 1).

%% Ten thousand tasks, started by closures with a struct in them.
tasks_8() ->
    V = #{'__struct__' => settings, name => <<"tasks">>, table => value(7), list => lists:seq(1, 64), level => 3},
    Self = self(),
    started(10000, fun(I) -> spawn_link(fun() -> Self ! {I, maps:get(level, V) + map_size(maps:get(table, V))} end) end),
    length([ok || _ <- lists:seq(1, 10000), receive {_, _} -> true end]).
started(0, _) -> ok;
started(N, F) -> F(N), started(N - 1, F).

%% A hundred processes that look up an object a thousand times each.
lookups_10() ->
    T = ets:new(t, [public, {read_concurrency, true}]),
    ets:insert(T, {key, value(10)}),
    Self = self(),
    [spawn_link(fun() -> Self ! looked(1000, T, 0) end) || _ <- lists:seq(1, 100)],
    N = lists:sum([receive X -> X end || _ <- lists:seq(1, 100)]),
    ets:delete(T),
    N.
looked(0, _, N) -> N;
looked(K, T, N) -> [{key, #{1 := _}}] = ets:lookup(T, key), looked(K - 1, T, N + 1).

%% Messages that are made anew each time.
once_1() -> once(100000, 64).
once_5() -> once(40000, 320).
once_50() -> once(5000, 3200).
once(N, Length) ->
    P = spawn_link(fun() -> first(0) end),
    sent(N, Length, 1, P),
    P ! {self(), stop},
    receive {P, K} -> K end.
sent(0, _, _, _) -> ok;
sent(K, Length, Times, P) when K rem 16 =:= 0 ->
    P ! {self(), wait}, receive go -> ok end,
    told(Times, P, {told, lists:seq(1, Length)}), sent(K - 1, Length, Times, P);
sent(K, Length, Times, P) -> told(Times, P, {told, lists:seq(1, Length)}), sent(K - 1, Length, Times, P).
told(0, _, _) -> ok;
told(N, P, M) -> P ! M, told(N - 1, P, M).
first(N) ->
    receive
        {told, [F | _]} -> first(N + F);
        {From, wait} -> From ! go, first(N);
        {From, stop} -> From ! {self(), N}
    end.

%% The same, each of them to two.
twice_5() ->
    P = spawn_link(fun() -> first(0) end),
    sent(20000, 320, 2, P),
    P ! {self(), stop},
    receive {P, K} -> K end.

%% A server whose answers are made anew each time.
answers_5() ->
    {ok, S} = gen_server:start_link(?MODULE, {none, 0}, []),
    N = asked(20000, S, {fresh, 320}, 0),
    gen_server:stop(S),
    N.
