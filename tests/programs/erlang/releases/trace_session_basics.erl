%% Checks trace sessions (OTP 27): the events of each, and that they are independent. Earlier
%% releases do not have them. @stress @shared @fence
-module(trace_session_basics).
-export([main/0, f/1, g/1, loop/2, fails/1, list/1]).

f(X) -> g(X) + 1.
g(X) -> X * 2.
loop(0, A) -> A;
loop(N, A) -> loop(N - 1, A + N).
fails(X) -> list(X) ++ error(X).
list(N) -> lists:seq(1, N).

main() ->
    [io:format("~w: ~0p~n", [F, try t(F) catch C:R:S -> {C, R, [element(2, E) || E <- lists:sublist(S, 1)]} end])
     || F <- [create, refused, calls, measures, memory, messages, living, ports, loading, ends, tracer_gone, forgotten, debugger, churn]].

%% A tracer that tells what it got, and a process that does what it is asked.
tracer() ->
    spawn(fun L() -> receive {get, P} -> P ! {got, got()}, L() end end).
got() -> receive M -> [M | got()] after 100 -> [] end.
told(T) ->
    R = erlang:trace_delivered(all),
    receive {trace_delivered, all, R} -> ok end,
    T ! {get, self()},
    receive {got, L} -> [case tuple_to_list(M) of [trace_ts | I] -> list_to_tuple([trace_ts | lists:droplast(I)]); _ -> M end || M <- L] end.

worker() ->
    spawn(fun L() -> receive {do, P, F} -> P ! {did, try F() catch C:R -> {C, R} end}, L() end end).
do(W, F) -> W ! {do, self(), F}, receive {did, R} -> R end.

%% What is told of why it can't be.
cause(F) ->
    case catch F() of
        {'EXIT', {R, [{_, _, _, I} | _]}} -> {R, case lists:keyfind(error_info, 1, I) of {_, M} -> maps:get(cause, M, none); _ -> none end};
        X -> X
    end.

%% A session lives as long as somebody knows of it.
s(Name, T) -> S = trace:session_create(Name, T, []), put(make_ref(), S), S.

t(create) ->
    T = tracer(),
    {R, {Name, N}} = S = s(a, T),
    {_, {_, M}} = s(b, {erl_tracer, T}),
    L = trace:session_info(all),
    {is_reference(R), Name, M - N, [lists:member(X, L) || X <- [{a, N}, {b, M}, {legacy, default}]], trace:session_destroy(S), trace:session_destroy(S),
     cause(fun() -> trace:session_destroy({a, N}) end), cause(fun() -> trace:session_destroy({legacy, default}) end),
     cause(fun() -> trace:info({legacy, default}, {?MODULE, f, 1}, traced) end)};
t(refused) ->
    T = tracer(), W = worker(),
    S = s(a, T),
    A = [{session_create, [b, foo, []]}, {session_create, ["b", T, []]}, {session_create, [b, T, [x]]}, {process, [S, W, true, [{tracer, T}]]},
         {process, [foo, W, true, [call]]}, {process, [{foo, 1}, W, true, [call]]}, {process, [S, foo, true, [call]]}, {process, [S, W, 1, [call]]},
         {process, [S, W, true, [calx]]}, {function, [S, {?MODULE, f, 1}, true, [{meta, T}]]}, {function, [S, {?MODULE, f, 1}, foo, []]},
         {send, [S, true, [foo]]}, {info, [S, W, traced]}, {info, [S, {?MODULE, f, 1}, flags]}, {info, [any, W, flags]}, {info, [S, new, all]},
         {session_info, [foo]}, {session_destroy, [foo]}],
    [{F, cause(fun() -> apply(trace, F, Args) end)} || {F, Args} <- A];
t(calls) ->
    {T1, T2, W} = {tracer(), tracer(), worker()},
    {S1, S2} = {s(a, T1), s(b, T2)},
    trace:process(S1, W, true, [call, return_to]), trace:process(S2, W, true, [call, arity]),
    N = [trace:function(S1, {?MODULE, f, 1}, [{'_', [], [{return_trace}]}], [local]), trace:function(S1, {?MODULE, fails, '_'}, [{'_', [], [{exception_trace}]}], [local]),
         trace:function(S2, {?MODULE, g, 1}, [], [meta]), trace:function(S2, {?MODULE, f, 1}, true, []), trace:function(S1, {lists, seq, 2}, true, [local]),
         trace:function(S2, {lists, seq, 2}, [{'_', [], [{message, {caller}}]}], [])],
    R = [do(W, fun() -> ?MODULE:f(3) end), do(W, fun() -> f(4) end), do(W, fun() -> ?MODULE:fails(2) end), do(W, fun() -> lists:seq(1, 2) end)],
    A = [told(T1), told(T2)],
    %% Both of a function, and one of them no more.
    trace:function(S2, {?MODULE, f, 1}, true, [local]), trace:function(S1, {?MODULE, f, 1}, true, []),
    do(W, fun() -> ?MODULE:f(3) end), do(W, fun() -> f(4) end),
    B = [told(T1), told(T2)],
    trace:session_destroy(S1),
    do(W, fun() -> ?MODULE:f(5) end),
    I = [trace:info(S2, {?MODULE, f, 1}, traced), trace:info(S2, W, flags), trace:session_info({?MODULE, f, 1}) =:= [element(2, S2)], trace:session_info({?MODULE, main, 0}),
         trace:session_info({?MODULE, none, 0})],
    {N, R, A, B, told(T1), told(T2), I, trace:session_destroy(S2), erlang:trace_info({?MODULE, f, 1}, traced)};
t(measures) ->
    {T, W} = {tracer(), worker()},
    {S1, S2} = {s(a, T), s(b, T)},
    [trace:process(S, W, true, [call]) || S <- [S1, S2]],
    trace:function(S1, {?MODULE, '_', '_'}, true, [call_count]), trace:function(S2, {?MODULE, loop, 2}, true, [call_time]),
    trace:function(S1, {?MODULE, f, 1}, true, [call_time]),
    erlang:trace_pattern({?MODULE, g, 1}, true, [call_count]),
    do(W, fun() -> [?MODULE:f(?MODULE:loop(100, N)) || N <- lists:seq(1, 10)], ok end),
    Count = fun({K, [{_, N, _, _}]}) -> {K, N}; (X) -> X end,
    R = [Count(trace:info(S, {?MODULE, F, A}, I)) || S <- [S1, S2], {F, A} <- [{f, 1}, {g, 1}, {loop, 2}], I <- [call_count, call_time]],
    trace:function(S1, {?MODULE, f, 1}, pause, [call_count]),
    do(W, fun() -> ?MODULE:f(1) end),
    Q = [trace:info(S1, {?MODULE, F, 1}, call_count) || F <- [f, g]],
    P = erlang:trace_info({?MODULE, g, 1}, call_count),
    erlang:trace_pattern({?MODULE, g, 1}, false, [call_count]),
    {R, Q, P, [trace:session_destroy(S) || S <- [S1, S2]]};
t(memory) ->
    {T, W} = {tracer(), worker()},
    S = s(a, T),
    trace:process(S, W, true, [call]),
    trace:function(S, {?MODULE, list, 1}, true, [call_memory]), trace:function(S, {?MODULE, loop, 2}, true, [call_memory]),
    do(W, fun() -> [length(?MODULE:list(100)) || _ <- lists:seq(1, 50)], ?MODULE:loop(10, 0) end),
    {_, [{W, Calls, Words}]} = trace:info(S, {?MODULE, list, 1}, call_memory),
    {_, [{W, More, None}]} = trace:info(S, {?MODULE, loop, 2}, call_memory),
    %% A hundred cells each time.
    {Calls, Words >= 50 * 200, Words < 2 * 50 * 200, More, None, [K || {K, _} <- element(2, trace:info(S, {?MODULE, list, 1}, all))]};
t(messages) ->
    {T1, T2, W, Me} = {tracer(), tracer(), worker(), self()},
    {S1, S2} = {s(a, T1), s(b, T2)},
    trace:process(S1, W, true, [send]), trace:process(S2, W, true, [send, 'receive']), erlang:trace(W, true, [send, {tracer, T1}]),
    R = [trace:send(S1, [{['_', {x, '_'}], [], []}], []), trace:recv(S2, [{['_', Me, {y, '_'}], [], [{message, hit}]}], [])],
    do(W, fun() -> Me ! {x, 1}, Me ! {y, 2} end), W ! {y, 3}, W ! {z, 4},
    L = [receive M -> M end || _ <- [1, 2]],
    I = [trace:info(S, E, match_spec) || S <- [S1, S2], E <- [send, 'receive']],
    erlang:trace(W, false, [all]),
    trace:send(S1, false, []),
    {R, L, [[element(3, M) || M <- told(T)] || T <- [T1, T2]],
     [[lists:member(X, trace:session_info(E)) || X <- [element(2, S1), element(2, S2), {legacy, default}]] || E <- [send, 'receive']], I};
t(living) ->
    {T1, T2, W} = {tracer(), tracer(), worker()},
    {S1, S2} = {s(a, T1), s(b, T2)},
    trace:process(S1, new, true, [procs]), trace:process(S2, W, true, [procs, set_on_spawn]), trace:process(S1, W, true, [procs, set_on_first_spawn]),
    I = [trace:info(S, new, flags) || S <- [S1, S2]] ++ [length(trace:session_info(new))],
    do(W, fun() -> P = spawn_link(fun() -> receive go -> ok end end), link(P), register(its, P), P ! go, ok end),
    timer:sleep(20),
    trace:process(S1, new, false, [procs]),
    Shown = fun(L) -> [case tuple_to_list(M) of [trace, _, spawn, _, _] -> spawn; [trace, _, spawned, _, _] -> spawned; [trace, _, K | _] -> K end || M <- L] end,
    {I, lists:sort(Shown(told(T1))), lists:sort(Shown(told(T2))), length(trace:session_info(new)), trace:info(S1, W, flags)};
t(ports) ->
    {T1, T2} = {tracer(), tracer()},
    {S1, S2} = {s(a, T1), s(b, T2)},
    trace:port(S1, new, true, [ports]),
    P = open_port({spawn, "cat"}, [binary]),
    trace:port(S2, P, true, [send, 'receive']),
    I = [trace:info(S, P, flags) || S <- [S1, S2]] ++ [length(trace:session_info(P)), length(trace:session_info(new_ports))],
    port_command(P, <<"hello">>), receive {P, {data, D}} -> ok end,
    port_close(P),
    timer:sleep(50),
    {I, D, [[element(3, M) || M <- told(T)] || T <- [T1, T2]], trace:session_info(P)};
t(loading) ->
    {T, W} = {tracer(), worker()},
    S = s(a, T),
    trace:process(S, W, true, [call]),
    trace:function(S, on_load, true, [local]),
    I = [trace:info(S, on_load, traced), length(trace:session_info(on_load)), erlang:trace_info(on_load, traced)],
    Forms = [begin {ok, Ts, _} = erl_scan:string(Text), {ok, Form} = erl_parse:parse_form(Ts), Form end
             || Text <- ["-module(r_loaded).", "-export([a/1]).", "a(X) -> b(X).", "b(X) -> X."]],
    {ok, r_loaded, Beam} = compile:forms(Forms, []),
    {module, _} = code:load_binary(r_loaded, "r_loaded", Beam),
    do(W, fun() -> r_loaded:a(1) end),
    A = told(T),
    trace:session_destroy(S),
    {module, _} = code:load_binary(r_loaded, "r_loaded", Beam),
    do(W, fun() -> r_loaded:a(1) end),
    {I, A, told(T), code:purge(r_loaded)};
t(ends) ->
    %% A session is over while calls that it has made frames for go on.
    {T1, T2, W} = {tracer(), tracer(), worker()},
    {S1, S2} = {s(a, T1), s(b, T2)},
    [begin trace:process(S, W, true, [call, return_to]), trace:function(S, {?MODULE, '_', '_'}, [{'_', [], [{exception_trace}]}], [local]),
           trace:function(S, {?MODULE, '_', '_'}, true, [call_time]) end || S <- [S1, S2]],
    R = do(W, fun() -> ?MODULE:f(case trace:session_destroy(S1) of true -> ?MODULE:loop(3, 0) end) end),
    {R, trace:session_info(W) =:= [element(2, S2)], [lists:usort([element(3, M) || M <- told(T)]) || T <- [T1, T2]], trace:session_destroy(S2), trace:session_info(W)};
t(tracer_gone) ->
    {T, W} = {tracer(), worker()},
    S = s(a, T),
    trace:process(S, W, true, [call]),
    exit(T, kill), timer:sleep(20),
    {trace:info(S, W, flags), trace:info(S, W, tracer), trace:process(S, W, true, [call]), trace:session_info(W), is_tuple(s(c, T))};
t(forgotten) ->
    %% With the last reference to it a session is over.
    {T, W, Me} = {tracer(), worker(), self()},
    {P, R} = spawn_monitor(fun() -> S = try s(lost, T) catch _:Why -> exit({Why, []}) end, trace:process(S, W, true, [call]), trace:function(S, {?MODULE, f, 1}, true, [local]),
                                    Me ! {weak, element(2, S)}, receive stop -> {S, ok} end end),
    receive {weak, Weak} -> ok; {'DOWN', R, _, _, {None, _}} -> Weak = none, erlang:error(None) end,
    do(W, fun() -> ?MODULE:f(1) end),
    A = {length(told(T)), trace:info(Weak, W, flags)},
    P ! stop, receive {'DOWN', R, _, _, _} -> ok end,
    until(fun() -> not lists:member(Weak, trace:session_info(all)) end),
    do(W, fun() -> ?MODULE:f(1) end),
    {A, told(T), trace:session_info(W), trace:session_info({?MODULE, f, 1})};
t(debugger) ->
    %% dbg traces in a session of its own.
    Me = self(),
    W = worker(),
    {ok, _} = dbg:tracer(process, {fun(M, N) -> Me ! {dbg, N, M}, N + 1 end, 0}),
    {ok, [{matched, _, 1}]} = dbg:p(W, [c]),
    {ok, [{matched, _, 1} | _]} = dbg:tpl(?MODULE, f, 1, x),
    do(W, fun() -> ?MODULE:f(7) end),
    L = [receive {dbg, N, M} -> M end || N <- [0, 1]],
    dbg:stop(),
    until(fun() -> not lists:keymember(dbg, 1, trace:session_info(all)) end),
    L;
t(churn) ->
    %% Many sessions come and go while a process runs through what they trace.
    W = worker(), Me = self(),
    spawn(fun() -> do(W, fun() -> [?MODULE:f(?MODULE:loop(5, N)) || N <- lists:seq(1, 3000)], ok end), Me ! churned end),
    N = [begin
             T = tracer(),
             S = s(x, T),
             trace:process(S, W, true, [call, return_to, set_on_spawn]),
             trace:function(S, {?MODULE, case I rem 2 of 0 -> f; _ -> '_' end, '_'}, [{'_', [], [{return_trace}]}], case I rem 3 of 0 -> []; _ -> [local] end),
             trace:function(S, {?MODULE, loop, 2}, true, [call_time]),
             trace:session_destroy(S)
         end || I <- lists:seq(1, 30)],
    receive churned -> ok after 30000 -> late end,
    {lists:usort(N), trace:session_info({?MODULE, f, 1}), trace:session_info(W)}.

until(F) -> until(F, 200).
until(_, 0) -> never;
until(F, N) -> case F() of true -> ok; false -> erlang:garbage_collect(), timer:sleep(20), until(F, N - 1) end.
