%% Checks that the information of `system_info` about allocators has stock's structure, for each
%% request that tools make.
-module(allocator_information).
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
    io:format("~p~n", [[counted(K) || K <- [ll_alloc, eheap_alloc, ets_alloc, binary_alloc, literal_alloc, fix_alloc]]]),
    io:format("~p~n", [made(20000)]),
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

%% Blocks and their bytes, of one block and of many to a carrier.
counted(K) ->
    {Count, Size} = counts(K),
    Count > 0 andalso Size >= Count.

counts(K) ->
    lists:foldl(fun({N, S}, {Ns, Ss}) -> {N + Ns, S + Ss} end, {0, 0},
                [begin
                     {_, N, _, MostN} = lists:keyfind(count, 1, B),
                     {_, S, _, MostS} = lists:keyfind(size, 1, B),
                     true = MostN >= N andalso MostS >= S,
                     {N, S}
                 end || {instance, _, L} <- erlang:system_info({allocator, K}), {Pool, P} <- L, Pool =:= mbcs orelse Pool =:= sbcs,
                        {blocks, Bs} <- P, {_, B} <- Bs]).

%% What is made is counted, and what is freed isn't any more.
made(N) ->
    {Before, _} = counts(binary_alloc),
    Binaries = [binary:copy(<<I:32>>, 30) || I <- lists:seq(1, N)],
    {With, Bytes} = counts(binary_alloc),
    true = length(Binaries) =:= N,
    {With - Before >= N, With - Before < N + N div 2, Bytes >= 120 * N}.

segments_sizes() ->
    [S || {instance, _, L} <- erlang:system_info({allocator_sizes, mseg_alloc}), S <- L].

kind(K) ->
    [{instance, _, L} | _] = erlang:system_info({allocator, K}),
    [begin {_, P} = lists:keyfind(Pool, 1, L), [lists:keymember(X, 1, P) || X <- [blocks, carriers_size]] end || Pool <- [mbcs, sbcs]].

catch_badarg(F) -> try F() catch error:badarg -> badarg end.
