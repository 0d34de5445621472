%% Resources hold references to further resources. The end of the last one ends all, without nested
%% native calls for each. Stock survives 5,000, so there are no more. @shared
-module(ets_nested_references).
-export([main/0]).

main() ->
    [io:format("~p ~p~n", [What, alone(fun() -> all(What) end)])
     || What <- [specs, shared, table, object, closed, persistent, heirs]].

alone(F) ->
    {P, M} = spawn_monitor(fun() -> exit({done, F()}) end),
    receive {'DOWN', M, process, P, {done, V}} -> V end.

%% Each specification has the one before as a constant.
chain(Rest) ->
    lists:foldl(
        fun(I, R) -> ets:match_spec_compile([{'$1', [], [{const, [I, R, R | Rest]}]}]) end, make_ref(), lists:seq(1, 5000)).

all(specs) ->
    R = chain([]),
    erlang:garbage_collect(),
    is_reference(R);
all(shared) ->
    R = chain(lists:seq(1, 40)),
    erlang:garbage_collect(),
    is_reference(R);
all(table) ->
    T = ets:new(t, []),
    ets:insert(T, {spec, chain([])}),
    erlang:garbage_collect(),
    ets:insert(T, {spec, none}),
    ets:tab2list(T);
all(object) ->
    T = ets:new(t, [ordered_set]),
    ets:insert(T, {chain([]), 1}),
    erlang:garbage_collect(),
    ets:delete_all_objects(T),
    ets:tab2list(T);
all(closed) ->
    T = ets:new(t, [bag]),
    ets:insert(T, {spec, chain([])}),
    erlang:garbage_collect(),
    ets:delete(T);
all(persistent) ->
    persistent_term:put(?MODULE, chain([])),
    persistent_term:erase(?MODULE);
all(heirs) ->
    %% Tables that hold the tables before, and whose heirs are to get them.
    Me = self(),
    T = lists:foldl(
        fun(_, T) ->
            N = ets:new(t, [{heir, Me, [T]}]),
            ets:insert(N, {before, T}),
            N
        end,
        none,
        lists:seq(1, 2000)),
    is_reference(T).
