%% Checks `trace_info`: of other processes, oneself, ended processes, functions, messages, and new
%% processes and ports; with invalid arguments, tracers and flags.
-module(trace_information).
-export([main/0, f/0, f/1]).

f() -> ok.
f(X) -> X.

main() ->
    logger:set_primary_config(level, none),
    T = spawn(fun idle/0), O = spawn(fun idle/0), Dead = dead(), Port = open_port({spawn, "cat"}, []),
    Ps = [{self, self()}, {other, O}, {tracer, T}, {dead, Dead}, {port, Port}, {new, new}, {new_processes, new_processes}, {new_ports, new_ports},
          {existing, existing}, {all, all}, {processes, processes}, {send, send}, {'receive', 'receive'}, {on_load, on_load}, {any, any}, {system, system},
          {mfa, {?MODULE, f, 1}}, {mfa0, {?MODULE, f, 0}}, {nomfa, {?MODULE, g, 1}}, {nomodule, {nomodule, g, 1}}, {wild, {?MODULE, '_', '_'}}, {wild1, {?MODULE, f, '_'}},
          {neg, {?MODULE, f, -1}}, {big, {?MODULE, f, 1 bsl 70}}, {many, {?MODULE, f, 256}}, {pair, {a, b}}, {bif, {erlang, self, 0}}, {int, 17}, {list, []}, {atom, foo}, {ref, make_ref()},
          {old_pid, list_to_pid("<0.30000.7>")}],
    Items = [flags, tracer, traced, match_spec, meta, meta_match_spec, call_count, call_time, call_memory, all, session, foo, 1, [], {flags}],
    Named = [{T, tracer}, {O, other}, {self(), self}, {Port, port}, {Dead, dead}],
    All = fun(When) -> [io:format("~w ~w: ~0p~n", [When, N, [{I, show(info(P, I), Named)} || I <- Items]]) || {N, P} <- Ps] end,
    All(none),
    erlang:trace(O, true, [call, send, 'receive', procs, timestamp, set_on_spawn, {tracer, T}]),
    erlang:trace(self(), true, [call, running, garbage_collection, arity, return_to, monotonic_timestamp, silent, {tracer, T}]),
    erlang:trace(Port, true, [ports, send, {tracer, T}]),
    erlang:trace(new, true, [procs, {tracer, T}]),
    erlang:trace_pattern({?MODULE, f, 1}, [{['$1'], [{'>', '$1', 1}], [{return_trace}]}], [local]),
    erlang:trace_pattern({?MODULE, f, 0}, true, [call_count, call_time]),
    erlang:trace_pattern({?MODULE, f, 1}, true, [{meta, T}]),
    erlang:trace_pattern({erlang, self, 0}, true, []),
    erlang:trace_pattern(send, [{'_', [], [{message, false}]}], []),
    erlang:trace_pattern('receive', false, []),
    erlang:trace_pattern(on_load, true, [local]),
    f(), f(5),
    All(traced),
    %% Others look while they are traced.
    Others = [begin {P, M} = spawn_monitor(fun() -> exit([info(O, I) || I <- [flags, tracer]] ++ [info(self(), flags), info(Port, tracer)]) end),
        receive {'DOWN', M, process, P, R} -> show(R, Named) end end || _ <- lists:seq(1, 3)],
    io:format("others ~0p~n", [Others]),
    %% Refused tracers and flags.
    Tr = fun(W, Who, On, Fl) -> io:format("~w: ~0p~n", [W, show(try erlang:trace(Who, On, Fl) catch C:R -> {C, R} end, Named)]) end,
    O2 = spawn(fun idle/0),
    [Tr({F}, O2, true, F) || F <- [[foo], [], foo, [send | x], [{tracer, foo}], [{tracer, 17}], [{tracer, Dead}], [{tracer, O2}], [{tracer, self()}, {tracer, T}], [{tracer, nomodule, x}],
        [{tracer, nomodule, []}, send], [{tracer, lists, [], y}], [cpu_timestamp], [timestamp, monotonic_timestamp], [strict_monotonic_timestamp], [all], [set_on_link, set_on_first_link], [call, arity, foo],
        [exclusive], [send, send], [{send}], [running_procs, running_ports, exiting], [ports], [garbage_collection, {tracer, list_to_pid("<0.30000.7>")}]]],
    [Tr({on, V}, O2, V, [send]) || V <- [1, foo, []]],
    [Tr({who, W}, W, true, [send]) || W <- [17, foo, {a}, [], make_ref, "x"]],
    Tr(dead, Dead, true, [send]),
    Tr(never, list_to_pid("<0.30000.7>"), true, [send]),
    Tr(again, O, true, [send]),
    Tr(again_other, O, true, [send, {tracer, O2}]),
    Tr(cpu_other, O2, false, [cpu_timestamp]),
    Pa = fun(A, B, C) -> io:format("pattern ~0p: ~0p~n", [show({A, B, C}, Named), show(try erlang:trace_pattern(A, B, C) catch X:Y -> {X, Y} end, Named)]) end,
    [Pa(A, true, []) || A <- [{?MODULE, f, 3}, {?MODULE, '_', 1}, {'_', f, 0}, {'_', '_', '_'}, {?MODULE, f}, foo, 17, {1, 2, 3}, {?MODULE, f, -1}, {?MODULE, f, 256}, {nomodule, a, 0}]],
    [Pa({?MODULE, f, 0}, B, []) || B <- [foo, 1, [], [foo], [{a, b, c}], [{'_', [], [{foo}]}], [{'_', [], [{message, 1}]}], restart, pause, false]],
    [Pa({?MODULE, f, 0}, true, C) || C <- [[foo], foo, [local, global], [local, call_count], [meta, local], [{meta, Dead}], [{meta, foo}], [{meta, nomodule, x}], [{meta, T}], [global, call_time], [call_memory], [call_memory, call_count]]],
    [Pa(A, B, C) || A <- [send, 'receive'], B <- [true, false, restart, [], [{'_', [], []}], [{['_', '$1'], [], []}], [{['_', '_', '_', '_'], [], []}]], C <- [[], [local], [meta]]],
    Calls = fun(N) -> try process_flag(save_calls, N) catch C:R -> {C, R} end end,
    io:format("save_calls ~0p~n", [[{N, Calls(N)} || N <- [0, 5, 10000, 10001, -1, a, 1.0, 0]]]),
    io:format("save_calls of others ~0p~n", [[{W, N, try process_flag(P, F, N) catch C:R -> {C, R} end} || {W, P} <- [{other, O2}, {dead, Dead}, {self, self()}, {int, 17}, {port, Port}], F <- [save_calls, trap_exit], N <- [5, 10001, a, 0]]]),
    init:stop().

idle() -> receive stop -> ok end.
dead() -> {P, M} = spawn_monitor(fun() -> ok end), receive {'DOWN', M, _, _, _} -> P end.
info(P, I) -> try erlang:trace_info(P, I) catch C:R -> {C, R} end.
show({P, 1, 0, Us}, N) when is_integer(Us) -> {show(P, N), 1, 0, us};
show(T, N) when is_tuple(T) -> list_to_tuple(show(tuple_to_list(T), N));
show([H | T], N) -> [show(H, N) | show(T, N)];
show(T, N) when is_pid(T); is_port(T) -> case lists:keyfind(T, 1, N) of {_, W} -> W; _ -> if is_pid(T) -> a_pid; true -> a_port end end;
show(T, _) when is_reference(T) -> ref;
show(T, _) when is_integer(T), T > 1 -> many;
show(T, _) -> T.
