%% Sets minimum heap sizes by flags, spawn options and system flags. A process monitors itself.
-module(minimum_heap_sizes).
-export([main/0]).

main() ->
    Try = fun(F) -> try F() catch _:R -> R end end,
    Sizes = [0, 1, 5, 12, 100, 233, 234, 300, 1000, 50000, 100000, 0],
    [io:format("~p ~p ~p ~p~n", [K, N, process_flag(K, N), process_flag(K, N)]) || K <- [min_heap_size, min_bin_vheap_size], N <- Sizes],
    [io:format("~p ~p~n", [N, [Try(fun() -> process_flag(min_heap_size, N), process_flag(max_heap_size, #{size => M, kill => false, error_logger => false}) end) || M <- [10, 100, 232, 233, 300, 400, 0]]])
     || N <- [0, 100, 233, 300, 0]],
    [io:format("~p ~p~n", [N, made(N)]) || N <- Sizes],
    [io:format("~p ~p ~p~n", [N, M, Try(fun() -> spawn_opt(fun() -> ok end, [{min_heap_size, N}, {max_heap_size, M}]), ok end)])
     || N <- [0, 100, 233, 300, 1000], M <- [1, 100, 232, 233, 300, 400, 2000]],
    [io:format("~p ~p ~p~n", [K, N, erlang:system_flag(K, N)]) || K <- [min_heap_size, min_bin_vheap_size], N <- [0, 5, 100, 300, 50000, 0, 233]],
    register(me, self()),
    [io:format("~p ~p~n", [is_pid(T) orelse T, watched(T, O)]) || T <- [me, {me, node()}, self()],
                                               O <- [[], [{alias, explicit_unalias}], [{alias, demonitor}], [{alias, reply_demonitor}], [{tag, x}]]].

made(N) ->
    P = spawn_opt(fun() -> receive x -> ok end end, [{min_heap_size, N}, {min_bin_vheap_size, N}]),
    {_, L} = process_info(P, garbage_collection),
    exit(P, kill),
    [lists:keyfind(K, 1, L) || K <- [min_heap_size, min_bin_vheap_size]].

watched(T, O) ->
    R = monitor(process, T, O),
    Told = [process_info(self(), K) || K <- [monitors, monitored_by]],
    catch R ! x,
    Got = receive x -> got after 0 -> none end,
    {is_reference(R), Told, Got, demonitor(R, [info]), demonitor(R, [info])}.
