%% Counts, times and traces calls of `erlang:apply/2`, `apply/3` and `hibernate/3`, made by an
%% instruction, by a computed name, and by a fun.
-module(traced_apply_and_hibernate).
-export([main/0, f/3, g/3, h/3, i/3, j/2, k/2, l/3, m/0]).

f(M, F, A) -> M:F(A, []).
g(M, F, A) -> apply(M, F, A).
h(M, F, A) -> X = apply(M, F, A), {X}.
i(M, F, A) -> X = M:F(A, []), {X}.
j(Fun, A) -> apply(Fun, A).
k(Fun, A) -> X = apply(Fun, A), {X}.
l(M, F, A) -> X = M:F(erlang, A, [fun m/0, []]), {X}.
m() -> ok.

ways() ->
    Fun = fun ?MODULE:m/0,
    [{f, fun() -> f(erlang, apply, Fun) end},
     {g, fun() -> g(erlang, apply, [Fun, []]) end},
     {h, fun() -> h(erlang, apply, [Fun, []]) end},
     {i, fun() -> i(erlang, apply, Fun) end},
     {j, fun() -> j(Fun, []) end},
     {k, fun() -> k(Fun, []) end},
     {l, fun() -> l(erlang, apply, apply) end},
     {g3, fun() -> g(erlang, apply, [erlang, apply, [Fun, []]]) end},
     {two, fun() -> j(fun erlang:apply/2, [Fun, []]) end},
     {three, fun() -> k(fun erlang:apply/3, [lists, sum, [[1]]]) end},
     {zip, fun() -> lists:zipwith(fun erlang:apply/2, [Fun, Fun], [[], []]) end},
     {no_fun, fun() -> catch f(erlang, apply, x) end},
     {no_list, fun() -> catch g(erlang, apply, [Fun, x]) end}].

main() ->
    [io:format("~p ~p: ~0p~n", [K, Name, counted(K, Way)]) || K <- [call_count, call_time], {Name, Way} <- ways()],
    [io:format("~p ~p: ~0p~n", [L, Name, told(L, Way)]) || L <- [local, global], {Name, Way} <- ways()],
    io:format("~0p~n", [[hibernated(K) || K <- [call_count, call_time]]]),
    [io:format("~p: ~0p~n", [Name, Way()]) || {Name, Way} <- ways(), Name =/= no_fun, Name =/= no_list].

functions() -> [{erlang, apply, 2}, {erlang, apply, 3}].

%% How often each was called.
counted(Kind, Way) ->
    {P, Ref} = spawn_monitor(fun() -> receive go -> Way() end end),
    [erlang:trace_pattern(F, true, [Kind]) || F <- functions()],
    1 = erlang:trace(P, true, [call]),
    P ! go,
    receive {'DOWN', Ref, process, P, R} -> normal = R end,
    Ns = [times(erlang:trace_info(F, Kind)) || F <- functions()],
    [erlang:trace_pattern(F, false, [Kind]) || F <- functions()],
    Ns.

times({call_count, N}) -> N;
times({call_time, L}) -> lists:sum([N || {_, N, _, _} <- L]).

told(Scope, Way) ->
    {P, Ref} = spawn_monitor(fun() -> receive go -> Way() end end),
    [erlang:trace_pattern(F, true, [Scope]) || F <- functions()],
    1 = erlang:trace(P, true, [call, arity]),
    P ! go,
    receive {'DOWN', Ref, process, P, R} -> normal = R end,
    Told = (fun Get() -> receive {trace, P, call, C} -> [C | Get()] after 100 -> [] end end)(),
    [erlang:trace_pattern(F, false, [Scope]) || F <- functions()],
    Told.

hibernated(Kind) ->
    F = {erlang, hibernate, 3},
    P = spawn(fun() -> receive go -> g(erlang, hibernate, [lists, sum, [[1]]]) end end),
    Q = spawn(fun() -> receive go -> erlang:hibernate(lists, sum, [[1]]) end end),
    Ref = monitor(process, P),
    Ref1 = monitor(process, Q),
    erlang:trace_pattern(F, true, [Kind]),
    [erlang:trace(X, true, [call]) || X <- [P, Q]],
    P ! go, Q ! go, P ! x, Q ! x,
    receive {'DOWN', Ref, process, P, _} -> ok end,
    receive {'DOWN', Ref1, process, Q, _} -> ok end,
    N = times(erlang:trace_info(F, Kind)),
    erlang:trace_pattern(F, false, [Kind]),
    N.
