%% Checks `set_on_link`, `set_on_first_link` and the like: flags pass from a traced process to one
%% that it links to or spawns, whatever traces that one had. @stress @shared @fence
-module(traces_inherited_by_links).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    [io:format("~w: ~0p~n", [F, try t(F) catch C:R -> {C, R} end]) || F <- [link, first, spawned, others, dead, churn]].

tracer() -> spawn(fun L() -> receive {get, P} -> P ! {got, got()}, L() end end).
got() -> receive M -> [M | got()] after 100 -> [] end.
%% What the tracer was told of each of these.
told(T, Ps) -> delivered(), T ! {get, self()}, receive {got, L} -> [[element(3, M) || M <- L, element(2, M) =:= P] || P <- Ps] end.
delivered() -> R = erlang:trace_delivered(all), receive {trace_delivered, all, R} -> ok end.
worker() -> spawn(fun L() -> receive {do, P, F} -> P ! {did, try F() catch C:R -> {C, R} end}, L() end end).
do(W, F) -> W ! {do, self(), F}, receive {did, R} -> R end.
idle() -> spawn(fun() -> receive stop -> ok end end).
is(P, Who) -> {flags, F} = erlang:trace_info(P, flags), {tracer, T} = erlang:trace_info(P, tracer), {F, case lists:keyfind(T, 2, Who) of {N, _} -> N; _ -> T end}.

t(link) ->
    {W, T, P, Q} = {worker(), tracer(), idle(), idle()},
    Who = [{one, T}],
    A = erlang:trace(W, true, [procs, set_on_link, {tracer, T}]),
    do(W, fun() -> link(P), link(P), unlink(P), link(P) end),
    B = [is(X, Who) || X <- [W, P]],
    %% It goes on from one to the next.
    R = spawn(fun() -> receive go -> link(Q), receive stop -> ok end end end),
    do(W, fun() -> link(R) end), R ! go, timer:sleep(50),
    C = [is(X, Who) || X <- [R, Q]],
    erlang:trace(W, false, [all]),
    {A, B, C, [is(X, Who) || X <- [W, P, Q]], told(T, [W, P, R, Q])};
t(first) ->
    {W, T, P, Q} = {worker(), tracer(), idle(), idle()},
    Who = [{one, T}],
    erlang:trace(W, true, [send, set_on_link, set_on_first_link, set_on_spawn, {tracer, T}]),
    do(W, fun() -> link(P), link(Q) end),
    [is(X, Who) || X <- [W, P, Q]];
t(spawned) ->
    [begin
         {W, T} = {worker(), tracer()},
         Who = [{one, T}],
         erlang:trace(W, true, [procs, {tracer, T} | Flags]),
         {A, B, C} = do(W, fun() -> {idle(), spawn_link(fun() -> receive stop -> ok end end), idle()} end),
         R = [is(X, Who) || X <- [W, A, B, C]],
         exit(W, kill), [exit(X, kill) || X <- [A, B, C]],
         {Flags, R}
     end || Flags <- [[], [set_on_spawn], [set_on_first_spawn], [set_on_spawn, set_on_first_spawn], [set_on_link], [set_on_first_link], [set_on_link, set_on_first_link],
                      [set_on_spawn, set_on_link], [set_on_spawn, set_on_first_link], [set_on_first_spawn, set_on_link], [set_on_first_spawn, set_on_first_link],
                      [set_on_spawn, set_on_first_spawn, set_on_link, set_on_first_link]]];
t(others) ->
    %% Who it is linked with is traced already, by the same or by another, and what is made is
    %% anyhow.
    {W, T1, T2, P, Q} = {worker(), tracer(), tracer(), idle(), idle()},
    Who = [{one, T1}, {two, T2}],
    erlang:trace(W, true, [procs, set_on_link, set_on_spawn, {tracer, T1}]),
    erlang:trace(P, true, [send, {tracer, T2}]), erlang:trace(Q, true, ['receive', arity, {tracer, T1}]),
    do(W, fun() -> link(P), link(Q) end),
    A = [is(X, Who) || X <- [P, Q]],
    N = erlang:trace(new, true, [garbage_collection, {tracer, T2}]),
    B = do(W, fun() -> idle() end),
    C = idle(),
    erlang:trace(new, false, [all]),
    {A, N, [is(X, Who) || X <- [B, C]]};
t(dead) ->
    {W, T, P} = {worker(), tracer(), idle()},
    exit(P, kill), timer:sleep(20),
    erlang:trace(W, true, [procs, set_on_first_link, {tracer, T}]),
    R = do(W, fun() -> process_flag(trap_exit, true), [link(P), receive {'EXIT', P, Why} -> Why end, link(self())] end),
    Q = do(W, fun() -> process_flag(trap_exit, false), try link(P) catch C:Why -> {C, Why} end end),
    {R, Q, erlang:trace_info(W, flags), told(T, [W])};
t(churn) ->
    %% Many that end while they are linked with, by several that are traced.
    T = tracer(),
    Ws = [worker() || _ <- lists:seq(1, 4)],
    [erlang:trace(W, true, [set_on_link, call, {tracer, T}]) || W <- Ws],
    Me = self(),
    [spawn(fun() -> Me ! {done, do(W, fun() -> process_flag(trap_exit, true), [begin P = spawn(fun() -> ok end), link(P), unlink(P) end || _ <- lists:seq(1, 300)], ok end)} end) || W <- Ws],
    [receive {done, X} -> X end || _ <- Ws].
