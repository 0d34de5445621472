%% Checks system flags, system information, system monitors and nodes, where the values are the same
%% everywhere, and errors.
-module(system_flags_and_monitors).
-export([main/0]).

show(Name, F) ->
    R = try F() catch C:E:S -> {C, E, element(4, hd(S))} end,
    io:format("~p: ~p~n", [Name, R]).

main() ->
    [show(I, fun() -> erlang:system_info(I) end) || I <- infos()],
    show(system_architecture, fun() -> machine(erlang:system_info(system_architecture)) end),
    [show(I, fun() -> is_list(erlang:system_info(I)) end) || I <- [system_version, allocator_sizes, os_system_time_source,
        os_monotonic_time_source, check_io, emu_args, {allocator, eheap_alloc}, {allocator_sizes, ets_alloc}]],
    [show({F, V}, fun() -> erlang:system_flag(F, V) end) || {F, V} <- flags()],
    [show(I, fun() -> shape(erlang:statistics(I)) end) || I <- [total_active_tasks, run_queue, active_tasks, run_queue_lengths,
        run_queues, active_tasks_all, context_switches, garbage_collection, reductions, exact_reductions, runtime, wall_clock,
        io, scheduler_wall_time, foo, {a}]],
    erlang:system_flag(scheduler_wall_time, true),
    show(wall, fun() -> [{A, is_integer(B), is_integer(C)} || {A, B, C} <- lists:sort(erlang:statistics(scheduler_wall_time))] end),
    show(off, fun() -> erlang:system_flag(scheduler_wall_time, false) end),
    show(memory, fun() -> [{K, V > 0} || {K, V} <- erlang:memory()] end),
    show(memory_one, fun() -> is_integer(erlang:memory(total)) end),
    show(memory_some, fun() -> [K || {K, _} <- erlang:memory([ets, atom])] end),
    show(memory_bad, fun() -> erlang:memory(foo) end),
    Self = self(),
    show(monitor, fun() -> erlang:system_monitor() end),
    show(set, fun() -> erlang:system_monitor(Self, [{long_gc, 100}, busy_port, {large_heap, 100}, {long_schedule, 5}]) end),
    show(monitor, fun() -> {P, L} = erlang:system_monitor(), {P =:= Self, L} end),
    spawn(fun() -> lists:seq(1, 200000) end),
    show(large, fun() -> receive {monitor, _, large_heap, L} -> [K || {K, _} <- L] after 2000 -> none end end),
    show(unset, fun() -> {P, _} = erlang:system_monitor(undefined), P =:= Self end),
    [show(bad, fun() -> erlang:system_monitor(A, B) end) || {A, B} <- [{Self, foo}, {a, [busy_port]}, {Self, [foo]}]],
    [show({nodes, N}, fun() -> nodes(N) end) || N <- [visible, hidden, connected, this, known, [this, known], foo]],
    show(nodes2, fun() -> erlang:nodes(known, #{connection_id => true, node_type => true}) end),
    show(nodes2, fun() -> erlang:nodes(known, #{x => true}) end),
    show(node, fun() -> {node(), node(Self), node(make_ref()), is_alive()} end),
    [show({monitor_node, N, F}, fun() -> monitor_node(N, F) end) || {N, F} <- [{foo@bar, true}, {node(), true}, {1, true}, {x, 'maybe'}]],
    show(monitor_node, fun() -> erlang:monitor_node(foo@bar, true, [x]) end),
    [show(setnode, fun() -> erlang:setnode(N, C) end) || {N, C} <- [{foo, 1}, {1, 2}, {foo@bar, x}]],
    [show(flag, fun() -> process_flag(F, V) end) || {F, V} <- [{monitor_nodes, true}, {{monitor_nodes, []}, true},
        {{monitor_nodes, [nodedown_reason]}, true}, {{monitor_nodes, #{node_type => all}}, true},
        {{monitor_nodes, #{x => 1}}, true}, {monitor_nodes, false}, {monitor_nodes, 'maybe'}]],
    show(ping, fun() -> net_adm:ping(foo@bar) end),
    logger:set_primary_config(level, none),
    show(spawn, fun() -> {_, R} = spawn_monitor(foo@bar, fun() -> ok end), receive {'DOWN', R, _, _, Why} -> Why end end),
    [show(bump, fun() -> erlang:bump_reductions(N) end) || N <- [10, -1, a, 1 bsl 70]],
    show(check, fun() -> erts_internal:system_check(schedulers) end),
    [show({timer, T}, fun() -> is_reference(erlang:send_after(T, Self, x)) end) || T <- [-1, a, 1 bsl 80, 1 bsl 50, 1 bsl 40]],
    [show({timer, O}, fun() -> is_reference(erlang:start_timer(100000, Self, x, O)) end) || O <- [[foo], [{abs, 'maybe'}], foo, [{abs, true}]]],
    show(to, fun() -> erlang:send_after(10, 1, x) end),
    [show({F, A}, fun() -> apply(erlang, F, [make_ref() | A]) end) || {F, A} <- [{cancel_timer, []}, {read_timer, []},
        {cancel_timer, [[{info, false}]]}, {cancel_timer, [[x]]}, {read_timer, [[{async, x}]]}]],
    R = erlang:start_timer(100000, self(), x),
    show(async, fun() -> erlang:cancel_timer(R, [{async, true}]) end),
    show(async, fun() -> receive {cancel_timer, R, N} -> N > 90000 end end),
    [show({halt, A}, fun() -> apply(erlang, halt, A) end) || A <- [[a], [-1], [1, [{flush, x}]], [1, a], ["a", [x]], [[a]]]].

%% Stock and Purlin may run on different processors: scripts/aarch64.sh.
machine("x86_64-pc-linux-gnu") -> one_of_these;
machine("aarch64-unknown-linux-gnu") -> one_of_these;
machine(Other) -> Other.

shape(T) when is_tuple(T) -> list_to_tuple(shape(tuple_to_list(T)));
shape(L) when is_list(L) -> [shape(X) || X <- L];
shape(N) when is_integer(N) -> n;
shape(X) -> X.

infos() ->
    [otp_release, version, machine, wordsize, {wordsize, internal}, {wordsize, external}, {wordsize, x}, process_limit,
     port_limit, atom_limit, ets_limit, schedulers, schedulers_online, schedulers_state, schedulers_active,
     all_schedulers_state, dirty_cpu_schedulers, dirty_cpu_schedulers_online, dirty_io_schedulers, scheduler_bind_type,
     scheduler_bindings, logical_processors, logical_processors_available, logical_processors_online, cpu_topology,
     {cpu_topology, defined}, {cpu_topology, detected}, {cpu_topology, used}, {cpu_topology, foo}, compat_rel, creation,
     delayed_node_table_gc, dist, dist_ctrl, dist_buf_busy_limit, driver_version, nif_version, dynamic_trace,
     dynamic_trace_probes, end_time, start_time, time_correction, time_warp_mode, time_offset, tolerant_timeofday,
     fullsweep_after, garbage_collection, heap_sizes, heap_type, min_heap_size, min_bin_vheap_size, max_heap_size, kernel_poll,
     message_queue_data, modified_timing_level, multi_scheduling, multi_scheduling_blockers,
     normal_multi_scheduling_blockers, port_parallelism, smp_support, threads, thread_pool_size,
     trace_control_word, update_cpu_info, outstanding_system_requests_limit, eager_check_io, ets_realloc_moves,
     lock_checking, lock_counting, break_ignored, sequential_tracer, os_type, endian, context_reductions, run_queues, foo, {},
     3, "a", {allocator, foo}, {blah, x}].

flags() ->
    [{multi_scheduling, block}, {multi_scheduling, unblock}, {multi_scheduling, block_normal},
     {multi_scheduling, unblock_normal}, {multi_scheduling, foo}, {schedulers_online, 0}, {schedulers_online, 1},
     {schedulers_online, erlang:system_info(schedulers)}, {schedulers_online, a}, {fullsweep_after, -1},
     {fullsweep_after, 70000}, {fullsweep_after, 10}, {fullsweep_after, 65535}, {min_heap_size, 1000}, {min_heap_size, 233},
     {min_heap_size, -1}, {min_bin_vheap_size, 1}, {min_bin_vheap_size, 46422}, {max_heap_size, 1},
     {max_heap_size, #{size => 100000000, kill => false}}, {max_heap_size, #{size => 0, kill => true}}, {max_heap_size, #{}},
     {max_heap_size, a}, {debug_flags, x}, {backtrace_depth, 20}, {backtrace_depth, 8}, {backtrace_depth, a},
     {trace_control_word, 5}, {trace_control_word, -1}, {trace_control_word, 1 bsl 32}, {trace_control_word, 0},
     {sequential_tracer, false}, {sequential_tracer, a}, {reset_seq_trace, true}, {scheduler_wall_time, a},
     {dirty_cpu_schedulers_online, 0}, {time_offset, finalize}, {time_offset, x}, {outstanding_system_requests_limit, 5},
     {outstanding_system_requests_limit, 4}, {outstanding_system_requests_limit, 0}, {scheduling_statistics, x},
     {internal_cpu_topology, x}, {erts_alloc, x}, {system_logger, x}, {foo, x}, {1, 2}].
