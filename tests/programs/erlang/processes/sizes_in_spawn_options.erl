%% Sets numbers of every size as options of new processes, process flags and system flags, and reads
%% them back.
-module(sizes_in_spawn_options).
-export([main/0]).

main() ->
    [io:format("~w ~w: ~0p~n", [K, N, [spawned(K, N), flag(K, N), system(K, N)]]) || K <- [min_bin_vheap_size, fullsweep_after], N <- numbers()],
    [io:format("async_dist ~w: ~0p~n", [V, [spawned(async_dist, V), flag(async_dist, V), requested(async_dist, V)]]) || V <- [true, false, 1, foo]],
    [io:format("~w ~w: ~0p~n", [K, N, requested(K, N)]) || K <- [min_bin_vheap_size, fullsweep_after], N <- [-1, 70000, 1 bsl 33, 1 bsl 70]],
    [io:format("~0p: ~0p~n", [O, refused(O)]) || O <- [[{foo, bar}, {reply_tag, x}], [{reply_tag, x}, {foo, bar}], [{foo, bar}, {reply, no}], [{reply, no}, {foo, bar}], [{foo, bar}, {reply, error_only}], [{reply, success_only}, foo],
        [{reply, foo}], [{reply, no}, {reply, foo}], [{reply, foo}, {reply, no}], [foo, {reply_tag, {a, b}}], [{reply_tag, x}, {reply_tag, y}], [{reply_tag, x}, foo, {reply_tag, y}], [foo | bar], foo, [{priority, foo}, {reply_tag, x}],
        [{monitor, foo}, {reply_tag, x}], [{link, foo}, {reply_tag, x}], [{min_heap_size, -1}, {reply, no}], [{reply, success_only}], [{reply, no}], [{reply, error_only}], [{max_heap_size, 1}, {reply_tag, x}]]],
    init:stop().

numbers() ->
    [-1, 0, 1, 46422, 46423, 100000, 65535, 65536, 65537, 131071, 131072, (1 bsl 31) - 1, 1 bsl 31, (1 bsl 32) + 5, 1 bsl 40, 1 bsl 45, 1 bsl 59, 1 bsl 70, 1.0, a].

spawned(K, N) ->
    try spawn_opt(fun() -> receive stop -> garbage_collect(), ok end end, [{K, N}]) of
        P -> R = info(P, K), P ! stop, R
    catch C:R -> {C, R} end.

requested(K, N) ->
    R = spawn_request(fun() -> receive stop -> ok end end, [{K, N}]),
    receive {spawn_reply, R, ok, P} -> I = info(P, K), exit(P, kill), I; {spawn_reply, R, error, E} -> E end.

flag(K, N) ->
    {P, M} = spawn_monitor(fun() ->
        exit(try process_flag(K, N) of Old -> garbage_collect(), [Old, info(self(), K), process_flag(K, Old)] catch C:R -> {C, R} end) end),
    receive {'DOWN', M, process, P, R} -> R end.

%% The number that stock tells of larger ones has overflowed.
system(min_bin_vheap_size, N) when N > 1 bsl 30 -> none;
system(K, N) ->
    try erlang:system_flag(K, N) of
        Old -> R = erlang:system_info(K), erlang:system_flag(K, Old), {Old, R}
    catch C:R -> {C, R} end.

info(P, async_dist) -> try process_info(P, async_dist) catch C:R -> {C, R} end;
info(P, K) ->
    {garbage_collection, L} = process_info(P, garbage_collection),
    proplists:get_value(K, L).

%% What a refused request answers.
refused(O) ->
    R = try spawn_request(fun() -> ok end, O) catch C:E -> {C, E} end,
    case is_reference(R) of false -> R; true -> receive M -> [case X of R -> ref; _ when is_pid(X) -> pid; _ -> X end || X <- tuple_to_list(M)] after 50 -> none end end.
