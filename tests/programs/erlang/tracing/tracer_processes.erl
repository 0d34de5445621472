%% Traces calls, messages and processes by a tracer process.
-module(tracer_processes).
-export([main/0, f/1]).

f(X) -> X + 1.

main() ->
    Self = self(),
    Tracer = spawn_link(fun() -> collect(Self, []) end),
    P = spawn_link(fun() -> receive go -> ok end, f(1), f(2), Self ! {result, ?MODULE:f(3)}, receive stop -> ok end end),
    1 = erlang:trace_pattern({?MODULE, f, 1}, [{'_', [], [{return_trace}]}], [local]),
    1 = erlang:trace(P, true, [call, send, 'receive', {tracer, Tracer}]),
    P ! go,
    receive {result, R} -> io:format("~p~n", [R]) end,
    erlang:trace(P, false, [all]),
    erlang:trace_delivered(P),
    receive {trace_delivered, P, _} -> ok end,
    P ! stop,
    Tracer ! {report, Self},
    receive {traced, L} -> [io:format("~p~n", [setelement(2, T, pid)]) || T <- L] end,
    io:format("~p~n", [erlang:trace_info({?MODULE, f, 1}, match_spec)]),
    erlang:trace_pattern({?MODULE, f, 1}, false, [local]),
    io:format("~p~n", [erlang:trace_info({?MODULE, f, 1}, traced)]).

collect(Main, Acc) ->
    receive
        {report, To} -> To ! {traced, lists:reverse(Acc)};
        M -> collect(Main, [M | Acc])
    end.
