%% Checks trace sessions without a tracer (OTP 27): each traced process has the tracer that was
%% given with it. Also checks traces of calls that an exception leaves, and of modules that are
%% loaded later. Earlier releases do not have sessions. @stress @shared @fence
-module(trace_sessions_without_tracer).
-export([main/0, f/1, top/1, middle/1, bottom/1]).

f(X) -> X + 1.

top(How) -> [(catch ?MODULE:middle(How)) | 1].
middle([body | T]) -> [?MODULE:bottom(T) | 1];
middle([caught | T]) -> [(catch ?MODULE:bottom(T)) | 1];
middle([last | T]) -> ?MODULE:bottom(T).
bottom([return]) -> [];
bottom([fail]) -> error(fail).

main() ->
    logger:set_primary_config(level, none),
    [io:format("~w: ~0p~n", [F, try t(F) catch C:R:S -> {C, R, [element(2, E) || E <- lists:sublist(S, 1)]} end])
     || F <- [refused, calls, meta, made, ports, bodies, gone, far, to_load, monitor, churn]].

tracer() -> spawn(fun L() -> receive {get, P} -> P ! {got, got()}, L() end end).
got() -> receive M -> [M | got()] after 100 -> [] end.
told(me) -> delivered(), [M || M <- got(), element(1, M) =:= trace];
told(T) -> delivered(), T ! {get, self()}, receive {got, L} -> L end.
delivered() -> R = erlang:trace_delivered(all), receive {trace_delivered, all, R} -> ok end.

worker() -> spawn(fun L() -> receive {do, P, F} -> P ! {did, try F() catch C:R -> {C, R} end}, L() end end).
do(W, F) -> W ! {do, self(), F}, receive {did, R} -> R end.

cause(F) ->
    case catch F() of
        {'EXIT', {R, [{_, _, _, I} | _]}} -> {R, case lists:keyfind(error_info, 1, I) of {_, M} -> maps:get(cause, M, none); _ -> none end};
        X -> X
    end.

s() -> s(undefined).
s(T) -> S = trace:session_create(s, T, []), put(make_ref(), S), S.
is(Who, {K, P}) -> {K, case lists:keyfind(P, 2, Who) of {Name, _} -> Name; false -> P end}.

t(refused) ->
    {S, W, T1, T2} = {s(), worker(), tracer(), tracer()},
    Who = [{me, self()}, {one, T1}, {two, T2}],
    [cause(F) || F <- [fun() -> trace:session_create(s, nobody, []) end,
                       fun() -> trace:process(S, W, true, [call, {tracer, nobody}]) end, fun() -> trace:process(S, W, true, [call]) end,
                       fun() -> is(Who, trace:info(S, W, tracer)) end, fun() -> trace:process(S, W, true, [send, {tracer, T1}]) end,
                       fun() -> trace:info(S, W, flags) end, fun() -> trace:process(S, W, true, [send]) end, fun() -> trace:info(S, W, flags) end,
                       fun() -> trace:process(S, W, false, [call, send]) end, fun() -> trace:process(S, W, true, [procs, {tracer, T1}]) end,
                       fun() -> trace:process(S, W, true, [procs, {tracer, erl_tracer, T2}]) end, fun() -> is(Who, trace:info(S, W, tracer)) end]];
t(calls) ->
    {S, R, W1, W2, T1, T2} = {s(), s(), worker(), worker(), tracer(), tracer()},
    N = [trace:process(S, W1, true, [call]), trace:process(S, W2, true, [call, {tracer, T1}]), trace:process(R, W1, true, [call, arity, {tracer, T2}]),
         erlang:trace(W1, true, [call, {tracer, T1}]), trace:function(S, {?MODULE, f, 1}, [{'_', [], [{return_trace}]}], [local]),
         trace:function(R, {?MODULE, f, 1}, true, [])],
    do(W1, fun() -> ?MODULE:f(1) end), do(W2, fun() -> ?MODULE:f(2) end), do(W1, fun() -> f(3) end),
    L = [told(T) || T <- [me, T1, T2]],
    trace:process(S, W1, false, [all]),
    do(W1, fun() -> ?MODULE:f(1) end), do(W2, fun() -> ?MODULE:f(2) end),
    {N, L, [told(T) || T <- [me, T1, T2]], [trace:session_destroy(X) || X <- [S, R]]};
t(meta) ->
    {S, W, T} = {s(), worker(), tracer()},
    Who = [{me, self()}, {one, T}],
    A = [trace:function(S, {?MODULE, f, 1}, true, [meta]), is(Who, trace:info(S, {?MODULE, f, 1}, meta))],
    do(W, fun() -> ?MODULE:f(1) end),
    L = [tuple_size(M) || {trace_ts, _, call, _, _} = M <- got()],
    B = [trace:function(S, {?MODULE, f, 1}, true, [{meta, T}]), is(Who, trace:info(S, {?MODULE, f, 1}, meta)), cause(fun() -> trace:function(s(T), {?MODULE, f, 1}, true, [{meta, self()}]) end)],
    do(W, fun() -> ?MODULE:f(1) end),
    {A, L, B, [element(4, M) || M <- told(T)], told(me)};
t(made) ->
    {S, R, T1, T2} = {s(), s(), tracer(), tracer()},
    Who = [{me, self()}, {one, T1}, {two, T2}],
    N = [trace:process(S, new, true, [procs, {tracer, T1}]), trace:process(R, self(), true, [procs, set_on_spawn, {tracer, T2}])],
    I = [is(Who, trace:info(X, new, tracer)) || X <- [S, R]],
    P = spawn(fun() -> receive go -> spawn(fun() -> ok end) end end),
    J = [{trace:info(X, P, flags), is(Who, trace:info(X, P, tracer))} || X <- [S, R]],
    P ! go, timer:sleep(50),
    O = trace:process(S, new, false, [procs]),
    {N, I, J, O, trace:info(S, new, tracer), [lists:sort([element(3, M) || M <- told(T)]) || T <- [T1, T2]]};
t(ports) ->
    {S, T} = {s(), tracer()},
    N = trace:port(S, new, true, [ports, {tracer, T}]),
    P = open_port({spawn, "cat"}, [binary]),
    I = {trace:info(S, P, flags), trace:info(S, P, tracer) =:= {tracer, T}, cause(fun() -> trace:port(S, P, true, [send]) end)},
    Q = open_port({spawn, "cat"}, [binary]),
    O = [trace:port(S, Q, false, [all]), trace:port(S, Q, true, [ports])],
    [port_close(X) || X <- [P, Q]],
    timer:sleep(50),
    {N, I, O, [element(3, M) || M <- told(T)], [element(3, M) || M <- told(me)]};
t(bodies) ->
    %% Programs that change who is traced, and by whom.
    {S, W1, W2, T1, T2} = {s(), worker(), worker(), tracer(), tracer()},
    Who = [{me, self()}, {one, T1}, {two, T2}],
    trace:process(S, W1, true, [call, {tracer, T1}]),
    R = [begin
             trace:function(S, {?MODULE, f, 1}, [{'_', [], [Body]}], [local]),
             V = do(W1, fun() -> f(1) end), timer:sleep(20),
             {V, [{trace:info(S, W, flags), is(Who, trace:info(S, W, tracer))} || W <- [W1, W2]]}
         end || Body <- [{enable_trace, W2, send}, {disable_trace, W2, send}, {trace, W2, [], [procs, {{tracer, T2}}]}, {trace, [], ['receive']}, {trace, [all], []}]],
    {R, cause(fun() -> trace:function(s(T1), {?MODULE, f, 1}, [{'_', [], [{trace, [], [{{tracer, T1}}]}]}], [local]) end)};
t(gone) ->
    {S, W, T1, T2} = {s(), worker(), tracer(), tracer()},
    Who = [{me, self()}, {two, T2}],
    trace:process(S, W, true, [call, {tracer, T1}]), trace:process(S, new, true, [procs, {tracer, T1}]),
    exit(T1, kill), timer:sleep(50),
    [cause(fun() -> trace:process(S, W, true, [send, {tracer, T2}]) end), is(Who, trace:info(S, W, tracer)), trace:process(S, W, false, [all]), trace:info(S, W, tracer),
     trace:process(S, new, false, [all])];
t(far) ->
    Me = self(),
    [begin
         {S1, S2, W, T1, T2} = {s(), s(), worker(), tracer(), tracer()},
         [begin trace:process(S, W, true, [call, return_to, arity, {tracer, T}]), [trace:function(S, {?MODULE, F, 1}, true, [local]) || F <- Fs] end || {S, T, Fs} <- [{S1, T1, F1}, {S2, T2, F2}]],
         spawn(fun() -> [do(W, fun() -> top([A, B]) end) || B <- [return, fail], A <- [body, caught, last]], Me ! done end),
         receive done -> ok end,
         R = [[{K, F} || {trace, _, K, {_, F, _}} <- told(T)] || T <- [T1, T2]],
         [trace:session_destroy(S) || S <- [S1, S2]],
         R
     end || F1 <- [[bottom], [middle, bottom]], F2 <- [[middle], [bottom]]];
t(to_load) ->
    S = s(),
    [begin
         trace:function(S, on_load, Spec, Kinds),
         I = [trace:info(S, on_load, I) || I <- [all, traced, match_spec, meta_match_spec, call_count, call_time, call_memory]],
         M = trace:info(S, on_load, meta) =:= {meta, self()},
         trace:function(S, on_load, false, Kinds),
         {I, M, trace:info(S, on_load, all)}
     end || {Spec, Kinds} <- [{true, []}, {[{'_', [], [{return_trace}]}], [local]}, {true, [meta]}, {true, [call_count]}, {true, [call_time, call_memory]}]];
t(monitor) ->
    S = s(),
    case erlang:function_exported(trace, system, 3) of
        true -> [cause(fun() -> trace:system(S, long_gc, 10) end), trace:info(S, system, all)];
        false -> none
    end;
t(churn) ->
    %% Tracers come and go, by turns, while what they trace runs.
    {S, W, Me} = {s(), worker(), self()},
    trace:function(S, {?MODULE, '_', '_'}, [{'_', [], [{exception_trace}]}], [local]),
    spawn(fun() -> do(W, fun() -> [?MODULE:top([caught, fail]) || _ <- lists:seq(1, 500)], ok end), Me ! churned end),
    N = [begin
             T = tracer(),
             R = trace:process(S, W, true, [call, return_to, {tracer, T}]),
             case I rem 2 of 0 -> exit(T, kill), trace:process(S, W, false, [all]); 1 -> trace:process(S, W, false, [all]) end,
             R
         end || I <- lists:seq(1, 40)],
    receive churned -> ok after 30000 -> late end,
    {lists:usort(N), trace:session_destroy(S)}.
