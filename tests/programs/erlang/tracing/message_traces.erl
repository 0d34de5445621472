%% Traces messages with match specifications: sent and received, with senders and receivers, and
%% errors. @stress
-module(message_traces).
-export([main/0]).

main() ->
    Me = self(),
    P = spawn(fun served/0),
    Other = spawn(fun served/0),
    erlang:trace(P, true, [send, 'receive']),
    Round = fun() -> round(P, Other) end,
    Pattern = fun(What, Spec) ->
        show({pattern, What}, fun() -> erlang:trace_pattern(What, Spec, []) end),
        show(info, fun() -> erlang:trace_info(What, match_spec) end)
    end,
    Round(),
    [begin Pattern(W, S), Round() end || {W, S} <- [
        {'receive', false}, {send, false}, {send, true}, {'receive', []},
        {'receive', [{['_', '_', {a, '_'}], [], []}]},
        {'receive', [{['$1', Me, '$2'], [{'==', '$1', {node}}], [{message, {{'$1', '$2'}}}]}]},
        {'receive', [{['_', Other, '_'], [], [{message, other}]}]},
        {'receive', [{['$1', undefined, '$3'], [], [{message, {{'$1', x}}}]}]},
        {'receive', [{['_', '_', '_'], [], [{message, false}]}]},
        {'receive', [{['_', '_', '_'], [], [{message, true}]}]},
        {'receive', [{['_', '_', '_'], [], [false]}]},
        {'receive', [{['_', '_'], [], []}]},
        {'receive', [{'_', [], []}]},
        {'receive', [{['_', '_', '$1'], [{is_atom, '$1'}], []}]},
        {send, [{[Other, '_'], [], []}]},
        {send, [{['_', '$1'], [], [{message, {hd, ['$1']}}]}]},
        {send, [{['_', {c, '$1'}], [], [{message, [{self}, '$1']}]}]},
        {send, [{['_', '_'], [], [{return_trace}]}]}
    ]],
    [Pattern(W, S) || W <- [send, 'receive'], S <- [
        foo, [x], [{x}], restart, pause,
        [{['_', '_'], [], [{caller}]}],
        [{['_', '_'], [], [{message, {caller}}]}],
        [{['_', '_'], [], [{silent, true}]}],
        [{['_', '_'], [], [{enable_trace, send}]}],
        [{['_', '_'], [], [{process_dump}]}],
        [{['_', '_'], [], [{set_seq_token, label, 1}]}],
        [{['_', '_'], [], [{get_seq_token}]}],
        [{['_', '_'], [{is_seq_trace}], []}],
        [{['_', '_'], [], [{set_tcw, {get_tcw}}]}],
        true]],
    [show({send, L}, fun() -> erlang:trace_pattern(send, [], L) end) || L <- [[local], [global], [meta], [call_count], [x]]],
    [show({info, I}, fun() -> erlang:trace_info(send, I) end) || I <- [all, traced, meta, call_count]],
    ok.

served() ->
    receive
        {forward, To, M} -> To ! M;
        {timeout, _, timer} -> atomics:put(persistent_term:get(fired), 1, 1);
        _ -> ok
    end,
    served().

%% One message at a time, so that the events have an order.
round(P, Other) ->
    P ! {a, 1},
    told(P),
    Other ! {forward, P, {b, 2}},
    told(Other), told(P),
    P ! {forward, Other, {c, 3}},
    told(P),
    Fired = atomics:new(1, []),
    persistent_term:put(fired, Fired),
    erlang:start_timer(0, P, timer),
    (fun Wait() -> case atomics:get(Fired, 1) of 0 -> erlang:yield(), Wait(); _ -> ok end end)(),
    told(P),
    R = erlang:trace_delivered(all),
    receive {trace_delivered, all, R} -> ok end,
    io:format("~0p~n", [events([])]).

%% Returns when the process has handled what it was sent before, without a message, which would be
%% traced.
told(P) ->
    erlang:process_info(P, messages),
    wait(P).

wait(P) ->
    case erlang:process_info(P, [status, message_queue_len]) of
        [{status, waiting}, {message_queue_len, 0}] -> ok;
        _ -> erlang:yield(), wait(P)
    end.

events(L) ->
    receive M -> events([M | L])
    after 0 -> lists:reverse(L)
    end.

show(What, F) -> io:format("~0p: ~0p~n", [What, try F() catch C:R -> {C, R} end]).
