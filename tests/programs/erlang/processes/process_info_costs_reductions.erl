%% A request for process information costs the asked process a reduction each time, so that tools
%% see it as active. @stress @shared @fence
-module(process_info_costs_reductions).
-export([main/0]).

main() ->
    P = spawn_link(fun() -> receive stop -> ok end end),
    receive after 100 -> ok end,
    [io:format("~p: ~p~n", [K, works(P, K)])
     || K <- [current_function, current_location, current_stacktrace, messages, links, monitors, monitored_by, dictionary,
              total_heap_size, memory, suspending, binary, backtrace, [links], [memory, links], [status, dictionary]]],
    io:format("~p~n", [element(2, process_info(P, reductions)) < begin process_info(P), element(2, process_info(P, reductions)) end]),
    P ! stop.

works(P, K) ->
    {_, Before} = process_info(P, reductions),
    [process_info(P, K) || _ <- lists:seq(1, 10)],
    {_, After} = process_info(P, reductions),
    After - Before >= 10.
