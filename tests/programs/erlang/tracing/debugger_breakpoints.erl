%% Checks breakpoints of the debugger (`erts_debug:breakpoint/2`), which pass calls to the error
%% handler, and times by state. @stress
-module(debugger_breakpoints).
-export([main/0, f/1, g/2, breakpoint/3, undefined_function/3, undefined_lambda/3]).

f(X) -> g(X, [X]).

g(X, L) -> {g, X, length(L)}.

%% What the error handler of the process does with a call.
breakpoint(M, F, Args) ->
    put(calls, [{M, F, Args} | get(calls)]),
    case Args of
        [crash] -> erlang:error(crashed, Args);
        _ -> {instead, F, Args}
    end.

undefined_function(M, F, Args) -> error_handler:undefined_function(M, F, Args).
undefined_lambda(M, F, Args) -> error_handler:undefined_lambda(M, F, Args).

main() ->
    put(calls, []),
    error_handler = process_flag(error_handler, ?MODULE),
    Show = fun(Name, X) -> io:format("~p: ~p ~p~n", [Name, X, lists:reverse(put(calls, []))]) end,
    Try = fun(Fun) -> try Fun() catch C:R:S -> {C, R, [{M, F, A} || {M, F, A, _} <- lists:sublist(S, 1)]} end end,
    All = fun() ->
        Show(inner, Try(fun() -> f(1) end)),
        Show(outer, Try(fun() -> ?MODULE:f(2) end)),
        Show(applied, Try(fun() -> apply(?MODULE, g, [3, [a, b]]) end)),
        Show(fun_, Try(fun() -> (fun ?MODULE:g/2)(<<4:9>>, [#{a => 1.5}]) end)),
        Show(crash, Try(fun() -> ?MODULE:f(crash) end)),
        Show(mapped, Try(fun() -> lists:map(fun ?MODULE:f/1, [1, 2, 3]) end))
    end,
    All(),
    Show(set, erts_debug:breakpoint({?MODULE, g, 2}, true)),
    All(),
    Show(set, erts_debug:breakpoint({?MODULE, f, '_'}, true)),
    All(),
    %% Traces come first.
    erlang:trace_pattern({?MODULE, f, 1}, [{'_', [], [{return_trace}]}], [local, call_count]),
    All(),
    Show(count, erlang:trace_info({?MODULE, f, 1}, call_count)),
    erlang:trace_pattern({?MODULE, f, 1}, false, [local, call_count]),
    Show(unset, erts_debug:breakpoint({?MODULE, g, 2}, false)),
    All(),
    Show(unset, erts_debug:breakpoint({?MODULE, f, 1}, false)),
    All(),
    [Show(Bad, Try(fun() -> erts_debug:breakpoint(Bad, true) end))
        || Bad <- [{?MODULE, nothing, 1}, {nothing, '_', '_'}, {?MODULE, '_', 1}, {'_', f, 1}, x, {?MODULE, f, -1}, {?MODULE, f, b}]],
    %% The handler that is there by default calls a module that isn't loaded.
    ?MODULE = process_flag(error_handler, error_handler),
    times().

times() ->
    T = erlang:statistics(microstate_accounting),
    0 = lists:sum([lists:sum(maps:values(maps:get(counters, M))) || M <- T]),
    false = erlang:system_flag(microstate_accounting, true),
    erlang:garbage_collect(),
    io:format("~p ~p ~p ~p~n", [
        erlang:system_flag(microstate_accounting, true),
        erlang:system_flag(microstate_accounting, false),
        erlang:system_flag(microstate_accounting, false),
        (catch element(1, element(2, erlang:system_flag(microstate_accounting, x))))]),
    T2 = erlang:statistics(microstate_accounting),
    true = lists:any(fun(#{counters := #{gc := N}}) -> N > 0 end, T2),
    true = lists:any(fun(#{counters := #{emulator := N}}) -> N > 0 end, T2),
    io:format("~p ~p~n", [erlang:system_flag(microstate_accounting, reset),
        [lists:usort([maps:keys(maps:get(counters, M)) || M <- T2]),
         [Type || Type <- [scheduler, dirty_cpu_scheduler, dirty_io_scheduler, poll, aux],
            lists:any(fun(M) -> maps:get(type, M) =:= Type end, T2)]]]),
    T3 = erlang:statistics(microstate_accounting),
    0 = lists:sum([lists:sum(maps:values(maps:get(counters, M))) || M <- T3]).
