%% Checks the information about trace sessions and what they trace, and the errors of invalid
%% requests.
-module(trace_session_information).
-export([main/0, f/1]).
f(X) -> X.
main() ->
    logger:set_primary_config(level, none),
    case erlang:function_exported(trace, session_create, 3) orelse code:ensure_loaded(trace) =:= {module, trace} of true -> go(); false -> io:format("none~n") end,
    init:stop().
go() ->
    T = spawn(fun idle/0), O = spawn(fun idle/0), {Dead, M} = spawn_monitor(fun() -> ok end), receive {'DOWN', M, _, _, _} -> ok end,
    put(names, [{T, tracer}, {O, other}, {self(), self}, {Dead, dead}]),
    Say = fun(N, F) -> io:format("~0p: ~0p~n", [show(N), show(try F() catch C:R -> {C, R} end)]) end,
    [Say({create, A}, fun() -> S = apply(trace, session_create, A), trace:session_destroy(S) end) || A <- [[a, T, []], ["a", T, []], [1, T, []], [a, Dead, []], [a, foo, []], [a, 17, []], [a, {nomodule, x}, []], [a, {lists, x}, []], [a, T, [foo]], [a, T, foo], [a, self(), []], [a, list_to_pid("<0.30000.7>"), []], ['', T, []], [a, {nomodule, x, y}, []]]],
    S = trace:session_create(some, T, []), S2 = trace:session_create(some, O, []),
    Items = [flags, tracer, traced, match_spec, meta, meta_match_spec, call_count, call_time, call_memory, all, session, foo],
    What = [self(), O, T, Dead, new, new_processes, new_ports, existing, all, send, 'receive', on_load, any, system, {?MODULE, f, 1}, {?MODULE, g, 1}, {nomodule, a, 1}, {?MODULE, '_', '_'}, 17, foo],
    All = fun(N) -> [Say({N, W}, fun() -> [{I, try trace:info(Se, W, I) catch C:R -> {C, R} end} || I <- Items, Se <- [S, S2, any]] end) || W <- What] end,
    All(none),
    Say(process, fun() -> trace:process(S, O, true, [send, 'receive', procs]) end),
    Say(call, fun() -> trace:process(S2, O, true, [call, arity]) end),
    Say(self, fun() -> trace:process(S2, self(), true, [call]) end),
    Say(function, fun() -> trace:function(S, {?MODULE, f, 1}, true, [local]) end),
    Say(function2, fun() -> trace:function(S2, {?MODULE, f, 1}, [{'_', [], [{return_trace}]}], [call_count]) end),
    Say(function3, fun() -> trace:function(S2, {?MODULE, f, 1}, true, [call_count, call_time]) end),
    Say(send, fun() -> trace:send(S, [{'_', [], []}], []) end), Say(recv, fun() -> trace:recv(S, false, []) end), Say(new, fun() -> trace:process(S, new, true, [procs]) end), Say(port, fun() -> trace:port(S, all, true, [ports]) end),
    ?MODULE:f(1),
    All(traced),
    [Say({process, A}, fun() -> apply(trace, process, [S | A]) end) || A <- [[O, true, [foo]], [O, foo, [send]], [O, true, foo], [O, true, [{tracer, T}]], [Dead, true, [send]], [17, true, [send]], [foo, true, [send]], [all, false, [all]], [existing, true, [cpu_timestamp]], [O, true, [ports]], [O, true, [timestamp, monotonic_timestamp]], [ports, true, [send]], [list_to_pid("<0.30000.7>"), true, [send]]]],
    [Say({function, A}, fun() -> apply(trace, function, [S | A]) end) || A <- [[{?MODULE, f, 1}, foo, []], [{?MODULE, f, 1}, true, [foo]], [{?MODULE, f, 1}, true, [meta]], [{?MODULE, f, 1}, true, [{meta, O}]], [{?MODULE, f, 1}, true, foo], [foo, true, []], [{a, b}, true, []], [{?MODULE, f, 1}, true, [local, global]], [{?MODULE, f, 1}, restart, [call_count]], [{?MODULE, f, 1}, pause, [call_time]], [{'_', '_', '_'}, false, []], [on_load, true, []], [{?MODULE, f, 1}, [{a}], []]]],
    [Say({infos, X}, fun() -> trace:session_info(X) end) || X <- [all, O, self(), T, Dead, new, foo, {?MODULE, f, 1}, send, 17]],
    Say(destroyed, fun() -> [trace:session_destroy(S), trace:session_destroy(S)] end),
    Say(after_it, fun() -> [try trace:info(S, O, flags) catch C:R -> {C, R} end, try trace:process(S, O, true, [send]) catch C:R -> {C, R} end] end),
    [Say({bad, X}, fun() -> trace:process(X, O, true, [send]) end) || X <- [foo, make_ref(), {make_ref(), {foo, 1}}, {a, b}, 17]],
    exit(O, kill), receive after 20 -> ok end,
    Say(tracer_gone, fun() -> [trace:info(S2, self(), flags), trace:info(S2, self(), tracer), trace:session_info(self())] end).
idle() -> receive stop -> ok end.
show({N, I}) when is_atom(N), is_integer(I) -> {N, number};
show({P, 1, 0, Us}) when is_integer(Us) -> {show(P), 1, 0, us};
show(T) when is_tuple(T) -> list_to_tuple(show(tuple_to_list(T)));
show([H | T]) -> [show(H) | show(T)];
show(T) when is_pid(T) -> case lists:keyfind(T, 1, get(names)) of {_, W} -> W; _ -> a_pid end;
show(T) when is_reference(T) -> ref;
show(T) when is_integer(T), T > 5 -> many;
show(T) -> T.
