%% What `system_info` tells of allocators has stock's shape, for each kind that tools ask for.
-module(s_allocators).
-export([main/0]).

main() ->
    Big = lists:seq(1, 2000000),
    [io:format("~p ~p~n", [K, kind(K)]) || K <- [eheap_alloc, binary_alloc, ets_alloc, driver_alloc, sl_alloc, temp_alloc, literal_alloc]],
    [{instance, 0, _} | _] = erlang:system_info({allocator, sys_alloc}),
    io:format("~p~n", [[catch_badarg(fun() -> erlang:system_info({What, nope}) end) || What <- [allocator, allocator_sizes]]]),
    io:format("~p~n", [[catch_badarg(fun() -> erts_internal:F({Kind, Scheduler, 1, 128, make_ref()}) end)
                        || F <- [gather_alloc_histograms, gather_carrier_info], {Kind, Scheduler} <- [{nope_alloc, 0}, {binary_alloc, -1}]]]),
    {_, _, Features, _} = erlang:system_info(allocator),
    io:format("~p~n", [[lists:member(F, Features) || F <- [sys_alloc, mseg_alloc, eheap_alloc]]]),
    [{segments_size, Now, _, Most} | _] = segments_sizes(),
    io:format("~p~n", [{is_integer(Now), Most >= Now}]),
    %% As recon_alloc reads them.
    Instances = erlang:system_info({allocator, mseg_alloc}),
    Sum = lists:sum([begin
                         {_, Kind} = lists:keyfind(memkind, 1, L),
                         {_, "all memory"} = lists:keyfind(name, 1, Kind),
                         {_, Status} = lists:keyfind(status, 1, Kind),
                         {_, Calls} = lists:keyfind(calls, 1, Kind),
                         {_, _} = lists:keyfind(cached_segments, 1, Status),
                         {_, Hits} = lists:keyfind(cache_hits, 1, Status),
                         {_, _, _, _} = lists:keyfind(segments, 1, Status),
                         {_, _} = lists:keyfind(segments_watermark, 1, Status),
                         {_, Giga, Taken} = lists:keyfind(mseg_alloc, 1, Calls),
                         {_, _, _} = lists:keyfind(mseg_dealloc, 1, Calls),
                         true = Hits =< 1000000000 * Giga + Taken,
                         Taken
                     end || {instance, _, L} <- Instances]),
    %% Behind a fence every block is mapped, by other means.
    io:format("~p ~p~n", [Sum > 0 orelse os:getenv("PURLIN_FENCE") =/= false, length(Big)]).

segments_sizes() ->
    [S || {instance, _, L} <- erlang:system_info({allocator_sizes, mseg_alloc}), S <- L].

kind(K) ->
    [{instance, _, L} | _] = erlang:system_info({allocator, K}),
    [begin {_, P} = lists:keyfind(Pool, 1, L), [lists:keymember(X, 1, P) || X <- [blocks, carriers_size]] end || Pool <- [mbcs, sbcs]].

catch_badarg(F) -> try F() catch error:badarg -> badarg end.
