%% Checks call traces: results, return traces, natives, meta traces, and bodies of match
%% specifications.
-module(call_traces).
-export([main/0, only/1, wrap/1, outer/1, inner/1, big/1, fails/1, last/1, replace/1, slave/1]).

main() ->
    once_per_call(),
    return_to(),
    natives(),
    entry_is_native(),
    meta(),
    bodies(),
    exceptions(),
    sent(),
    global_clears_the_rest(),
    io:format("done~n").

%% A function that needs room for its frame is entered once, whatever is collected.
once_per_call() ->
    P = slave(),
    1 = erlang:trace(P, true, [call]),
    1 = erlang:trace_pattern({?MODULE, big, 1}, true, [local]),
    call(P, big, [200]),
    io:format("big: ~p~n", [length(told(P))]),
    off(P).

return_to() ->
    P = slave(),
    1 = erlang:trace(P, true, [call, return_to]),
    [1 = erlang:trace_pattern({?MODULE, F, 1}, [{'_', [], [{return_trace}]}], [local]) || F <- [wrap, outer, inner]],
    call(P, wrap, [3]),
    show(return_to, P),
    off(P).

natives() ->
    P = slave(),
    1 = erlang:trace(P, true, [call, return_to]),
    1 = erlang:trace_pattern({erlang, phash2, 2}, [{'_', [], [{return_trace}, {message, {caller}}]}], [local]),
    1 = erlang:trace_pattern({erlang, atom_to_list, 1}, [{'_', [], [{message, {caller}}]}], [local]),
    call(P, last, [a]),
    show(natives, P),
    1 = erlang:trace_pattern({erlang, atom_to_list, 1}, true, [global]),
    call(P, last, [b]),
    show(natives, P),
    catch call(P, last, [1]),
    show(natives, P),
    %% One that has an instruction of its own.
    1 = erlang:trace_pattern({erlang, setelement, 3}, true, [global]),
    call(P, replace, [{a, b}]),
    show(natives, P),
    off(P).

%% The first instruction of a function is the call of a native, and both are traced.
entry_is_native() ->
    P = slave(),
    1 = erlang:trace(P, true, [call]),
    1 = erlang:trace_pattern({erlang, integer_to_binary, 1}, true, [local, call_time]),
    1 = erlang:trace_pattern({?MODULE, only, 1}, true, [local, call_time]),
    call(P, only, [7]),
    call(P, only, [8]),
    show(entry_is_native, P),
    [begin {call_time, [{P, N, _, _}]} = erlang:trace_info(F, call_time), io:format("~p ~p~n", [F, N]) end
     || F <- [{erlang, integer_to_binary, 1}, {?MODULE, only, 1}]],
    erlang:trace_pattern({'_', '_', '_'}, false, [local, call_time]),
    off(P).

only(X) -> integer_to_binary(X).

meta() ->
    P = slave(),
    1 = erlang:trace_pattern({?MODULE, outer, 1}, [{'_', [], [{return_trace}]}], [meta]),
    {meta, Me} = erlang:trace_info({?MODULE, outer, 1}, meta),
    true = Me =:= self(),
    {traced, false} = erlang:trace_info({?MODULE, outer, 1}, traced),
    call(P, wrap, [1]),
    io:format("meta: ~p~n", [[setelement(size(M), setelement(2, M, p), t) || M <- told(P)]]),
    off(P).

bodies() ->
    P = slave(),
    1 = erlang:trace(P, true, [call, silent]),
    1 = erlang:trace_pattern({?MODULE, wrap, 1}, [{['$1'], [{'>', '$1', 1}], [{silent, false}]}], [local]),
    1 = erlang:trace_pattern({?MODULE, inner, 1}, [{'_', [], [{message, [{caller}]}]}], [local]),
    call(P, wrap, [1]),
    call(P, wrap, [2]),
    show(silent, P),
    1 = erlang:trace_pattern({?MODULE, outer, 1}, [{'_', [], [{disable_trace, call}]}], [local]),
    call(P, wrap, [2]),
    show(disabled, P),
    {flags, F} = erlang:trace_info(P, flags),
    io:format("flags: ~p~n", [lists:sort(F)]),
    off(P).

exceptions() ->
    P = slave(),
    1 = erlang:trace(P, true, [call, return_to]),
    1 = erlang:trace_pattern({?MODULE, fails, 1}, [{'_', [], [{exception_trace}]}], [local]),
    call(P, fails, [0]),
    call(P, fails, [2]),
    show(exceptions, P),
    off(P).

sent() ->
    P = slave(),
    1 = erlang:trace(P, true, [send]),
    1 = erlang:trace_pattern(send, [{['_', {'$1', [7]}], [], [{message, '$1'}]}], []),
    io:format("~p~n", [erlang:trace_info(send, match_spec)]),
    call(P, inner, [7]),
    call(P, inner, [8]),
    io:format("sent: ~p~n", [[element(3, M) || M <- told(P)]]),
    1 = erlang:trace_pattern(send, true, []),
    io:format("~p~n", [try erlang:trace_pattern(send, true, [local]) catch C:R -> {C, R} end]),
    off(P).

global_clears_the_rest() ->
    1 = erlang:trace_pattern({?MODULE, outer, 1}, true, [meta, call_count]),
    1 = erlang:trace_pattern({?MODULE, outer, 1}, true, [global]),
    io:format("~p~n", [erlang:trace_info({?MODULE, outer, 1}, all)]),
    1 = erlang:trace_pattern({?MODULE, outer, 1}, false, [global]),
    io:format("~p~n", [erlang:trace_info({?MODULE, outer, 1}, all)]),
    0 = erlang:trace_pattern(on_load, true, [local]),
    io:format("~p ~p~n", [erlang:trace_info(on_load, traced), erlang:trace_info(on_load, match_spec)]),
    0 = erlang:trace_pattern(on_load, false, [local]),
    io:format("~p~n", [erlang:trace_info(on_load, traced)]).

slave() ->
    Me = self(),
    spawn(?MODULE, slave, [Me]).

slave(Parent) ->
    receive
        {F, Args} ->
            Parent ! {value, catch apply(?MODULE, F, Args)},
            slave(Parent)
    end.

call(P, F, Args) ->
    P ! {F, Args},
    receive {value, V} -> V end.

told(P) ->
    R = erlang:trace_delivered(P),
    receive {trace_delivered, P, R} -> ok end,
    all().

all() ->
    receive M -> [M | all()] after 0 -> [] end.

show(What, P) ->
    [io:format("~p: ~p~n", [What, list_to_tuple([element(1, M) | lists:nthtail(2, tuple_to_list(M))])]) || M <- told(P)].

off(P) ->
    erlang:trace(P, false, [all]),
    erlang:trace_pattern({'_', '_', '_'}, false, [local, meta, call_count]),
    erlang:trace_pattern({'_', '_', '_'}, false, [global]),
    exit(P, kill),
    all().

wrap(X) -> outer(X).

outer(X) -> [X | inner(X)].

inner(X) -> [X].

big(0) -> [];
big(N) -> [lists:seq(1, 50) | big(N - 1)].

replace(T) -> setelement(1, T, c).

last(X) ->
    put(hash, erlang:phash2(1, 1)),
    atom_to_list(X).

fails(0) -> error(zero);
fails(N) ->
    try fails(N - 1)
    catch error:E -> {caught, E}
    end.
