%% Saved calls of natives that stock has in Erlang, or that return through other functions.
-module(saved_calls_behind_natives).
-export([main/0]).

main() ->
    Other = spawn(fun() -> receive stop -> ok end end),
    erlang:yield(),
    io:format("~0p~n", [saved(fun() -> port_close(open_port({spawn_driver, "ram_file_drv"}, [])) end)]),
    io:format("~0p~n", [saved(fun() -> port_close(open_port({spawn, "cat"}, [])) end)]),
    io:format("~0p~n", [saved(fun() -> catch port_close(a), catch port_close(unknown) end)]),
    io:format("~0p~n", [saved(fun() -> idle(Other), erlang:suspend_process(Other), erlang:resume_process(Other), self() ! x, receive x -> ok end end)]),
    io:format("~0p~n", [saved(fun() -> erlang:suspend_process(Other, [asynchronous]), erlang:resume_process(Other) end)]),
    io:format("~0p~n", [saved(fun() -> A = alias(), A ! x, unalias(A), alias([reply]) end)]),
    io:format("~0p~n", [saved(fun() -> gen_server:call(kernel_sup, which_children) end)]),
    ok.

idle(P) ->
    receive after 20 -> ok end,
    {status, waiting} = process_info(P, status).

saved(F) ->
    {P, M} = spawn_monitor(fun() ->
        process_flag(save_calls, 30),
        F(),
        {last_calls, L} = process_info(self(), last_calls),
        exit({saved, L})
    end),
    receive {'DOWN', M, process, P, {saved, L}} -> L end.
