%% Natives wait for an answer of another process or of the forker. Traces of received messages and
%% the saved calls show it as a message, except for items that the other process is not asked for.
%% Also checks magic references in `process_info/2`.
-module(answers_as_received_messages).
-export([main/0]).

main() ->
    Other = spawn(fun() -> put(x, 1), receive stop -> ok end end),
    {Dead, R} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', R, process, Dead, normal} -> ok end,
    timer:sleep(20),
    Items = [current_function, initial_call, status, message_queue_len, messages, links, monitors, monitored_by, dictionary, error_handler, trap_exit,
             memory, group_leader, reductions, priority, binary, backtrace, total_heap_size, suspending, magic_ref, current_location, current_stacktrace,
             [links, priority], [priority, trap_exit], []],
    [io:format("~0p: ~0p~n", [I, traced(fun() -> process_info(Other, I) end)]) || I <- Items],
    io:format("all: ~0p~n", [traced(fun() -> process_info(Other) end)]),
    io:format("dead: ~0p~n", [traced(fun() -> process_info(Dead, links) end)]),
    io:format("self: ~0p~n", [traced(fun() -> process_info(self(), links) end)]),
    io:format("alive: ~0p~n", [traced(fun() -> is_process_alive(Other) end)]),
    io:format("program: ~0p~n", [traced(fun() -> open_port({spawn, "cat"}, []) end)]),
    io:format("no program: ~0p~n", [traced(fun() -> catch open_port({spawn_executable, "/nothing"}, []) end)]),
    io:format("descriptors: ~0p~n", [traced(fun() -> open_port({fd, 0, 1}, [out]) end)]),
    [io:format("saved, ~0p: ~0p~n", [N, saved(F)]) ||
        {N, F} <- [{links, fun() -> process_info(Other, links) end}, {dead, fun() -> process_info(Dead, links) end},
                   {alive, fun() -> is_process_alive(Other) end}, {self, fun() -> process_info(self(), links) end},
                   {suspended, fun() -> erlang:suspend_process(Other, [asynchronous]), erlang:resume_process(Other) end},
                   {program, fun() -> open_port({spawn, "cat"}, []) end}]],
    io:format("magic references: ~0p~n", [alone(fun magic/0)]),
    ok.

alone(F) ->
    {P, R} = spawn_monitor(fun() -> exit({F()}) end),
    receive {'DOWN', R, process, P, {X}} -> X; {'DOWN', R, process, P, X} -> {failed, X} end.

traced(F) ->
    P = spawn(fun() -> receive go -> ok end, F(), receive stop -> ok end end),
    erlang:trace(P, true, ['receive']),
    R = monitor(process, P),
    P ! go,
    P ! stop,
    receive {'DOWN', R, process, P, _} -> ok end,
    D = erlang:trace_delivered(P),
    receive {trace_delivered, P, D} -> ok end,
    [shape(M) || M <- flush()].

flush() -> receive {trace, _, 'receive', M} when M =/= go, M =/= stop -> [M | flush()]; {trace, _, _, _} -> flush() after 0 -> [] end.

shape({R, A}) when is_reference(R) -> {reference, shape(A)};
shape({Item, _}) -> Item;
shape(P) when is_port(P) -> port;
shape(L) when is_list(L) -> [shape(E) || E <- L];
shape(_) -> other.

saved(F) ->
    alone(fun() ->
        process_flag(save_calls, 100),
        %% Stock begins with the second call.
        lists:member(a, [b]),
        F(),
        {last_calls, L} = process_info(self(), last_calls),
        L -- [{lists, member, 2}]
    end).

magic() ->
    {magic_ref, None} = process_info(self(), magic_ref),
    A = atomics:new(1, []),
    C = counters:new(1, []),
    T = ets:new(table, []),
    {magic_ref, L} = process_info(self(), magic_ref),
    true = lists:all(fun({Id, Size, Count}) -> Id > 0 andalso Size > 0 andalso Count > 0 end, L),
    put(kept, {A, C, T}),
    {None, length(L), length(lists:usort([Id || {Id, _, _} <- L]))}.
