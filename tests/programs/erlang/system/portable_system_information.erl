%% Checks statistics and system information whose values are the same everywhere.
-module(portable_system_information).
-export([main/0]).

main() ->
    [io:format("~p ~p~n", [K, erlang:system_info(K)]) || K <- [otp_release, version, wordsize, machine, port_limit, process_limit, atom_limit, ets_limit, smp_support, threads, schedulers, dirty_cpu_schedulers, dirty_io_schedulers, endian, fullsweep_after, min_heap_size, min_bin_vheap_size, kernel_poll, multi_scheduling, dist, dist_buf_busy_limit, time_correction, tolerant_timeofday, time_warp_mode, delayed_node_table_gc, heap_type, heap_sizes, modified_timing_level, nif_version, driver_version, os_type, start_time, check_io] -- [dist, start_time, check_io, nif_version, driver_version, process_limit, machine]],
    io:format("~p~n", [[is_integer(erlang:memory(T)) || T <- [total, processes, system, atom, binary, code, ets]]]),
    io:format("~p~n", [[is_integer(erlang:system_info(K)) || K <- [process_count, port_count, atom_count, ets_count, process_limit]]]),
    {R, _} = statistics(reductions),
    io:format("~p ~p~n", [is_integer(R), tuple_size(statistics(garbage_collection))]),
    io:format("~p~n", [[tuple_size(statistics(K)) || K <- [runtime, wall_clock, io]]]),
    io:format("~p~n", [is_integer(statistics(run_queue))]),
    io:format("~p~n", [node()]),
    io:format("~p~n", [nodes()]),
    io:format("~p~n", [is_alive()]),
    io:format("~p~n", [catch erlang:system_info(nonsense)]),
    io:format("~p~n", [lists:sort([A || {A, _, _} <- application:which_applications()])]),
    io:format("~p~n", [lists:member(erl_prim_loader, erlang:pre_loaded())]),
    io:format("~p~n", [[element(1, T) || T <- [erlang:timestamp(), date(), time()]] =/= []]),
    io:format("~p~n", [calendar:gregorian_days_to_date(738000)]),
    io:format("~p~n", [calendar:system_time_to_rfc3339(1700000000, [{offset, "Z"}])]),
    io:format("~p~n", [erlang:universaltime_to_posixtime({{2020, 1, 1}, {0, 0, 0}})]),
    io:format("~p~n", [erlang:convert_time_unit(1000, millisecond, second)]),
    A = erlang:monotonic_time(), B = erlang:monotonic_time(),
    io:format("~p~n", [B >= A]),
    io:format("~p~n", [erlang:unique_integer([positive, monotonic]) < erlang:unique_integer([positive, monotonic])]).
