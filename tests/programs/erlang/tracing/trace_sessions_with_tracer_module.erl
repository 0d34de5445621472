%% Checks trace sessions (OTP 27) whose tracer is a module. Earlier releases do not have them.
%% @nif tracers @stress @shared @fence
-module(trace_sessions_with_tracer_module).
-export([main/0, called/1, fails/1]).

called(X) -> X.
fails(X) -> error({failed, X}).

show(What, F) ->
    R = try F() catch C:E -> {C, E} end,
    io:format("~0p: ~0p~n", [What, R]).

load(M) ->
    L = 1,
    Functions = [{asked, 0}, {enabled, 3}, {trace, 5}],
    Stub = fun({N, A}) ->
        {function, L, N, A, [{clause, L, [{var, L, '_'} || _ <- lists:seq(1, A)], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, nif_error}}, [{atom, L, stub}]}]}]}
    end,
    File = "./" ++ atom_to_list(M),
    Load = {function, L, load, 0, [{clause, L, [], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, load_nif}}, [{string, L, File}, {atom, L, none}]}]}]},
    Forms = [{attribute, L, module, M}, {attribute, L, export, Functions}, {attribute, L, on_load, {load, 0}},
             Load | [Stub(F) || F <- Functions]],
    {ok, M, Bin} = compile:forms(Forms, []),
    {ok, _} = file:copy("../ebin/tracers.so", File ++ ".so"),
    {module, M} = code:load_binary(M, "none", Bin),
    ok.

answers() ->
    maps:from_list([{T, trace} || T <- [trace_status, send, 'receive', call, return_to, return_from, exception_from, spawn, exit, link, unlink,
        register, unregister, spawned, open, closed, getting_linked, getting_unlinked]]).
state(X) -> {answers(), self(), X}.

start() -> spawn(fun tracee/0).
tracee() ->
    receive
        {run, From, F} -> From ! {ran, try F() catch C:E -> {C, E} end}, tracee();
        stop -> done
    end.
run(P, F) -> P ! {run, self(), F}, receive {ran, R} -> R end.

events() ->
    R = erlang:trace_delivered(all),
    receive {trace_delivered, all, R} -> ok end,
    all().
all() -> receive M -> [M | all()] after 0 -> [] end.

print(Name) ->
    io:format("~0p~n", [Name]),
    [io:format("  ~0p~n", [{K, T, S, P, case W of {run, _, _} -> run; _ -> W end, maps:map(fun(scheduler_id, N) -> is_integer(N); (_, V) -> V end, O),
        Self =:= P}]) || {K, T, S, P, W, O, Self} <- events()].

main() ->
    load(n_plain),
    [show(F, fun() -> t(F) end) || F <- [refused, calls, messages, processes, answers, several, ports, living, gone, frames]].

t(refused) ->
    [show(M, fun() -> trace:session_create(some, {M, []}, []) end) || M <- [no_such_module, lists, trace_sessions_with_tracer_module]],
    [show(T, fun() -> trace:session_create(some, T, []) end) || T <- [{1, 2}, {n_plain}, n_plain, {n_plain, 1, 2}]],
    S = trace:session_create(some, {n_plain, state(x)}, []),
    show(tracer, fun() -> trace:process(S, self(), true, [call, {tracer, n_plain, state(y)}]) end),
    show(meta, fun() -> trace:function(S, {?MODULE, called, 1}, [], [{meta, n_plain, state(y)}]) end),
    trace:session_destroy(S);
t(calls) ->
    S = trace:session_create(some, {n_plain, state({calls, <<"state">>})}, []),
    T = start(),
    1 = trace:process(S, T, true, [call, return_to, timestamp]),
    1 = trace:function(S, {?MODULE, called, 1}, [{'_', [], [{return_trace}, {message, word}]}], [local]),
    1 = trace:function(S, {?MODULE, fails, 1}, [{'_', [], [{exception_trace}]}], [local]),
    run(T, fun() -> called(1), (catch fails(2)), ok end),
    print(calls),
    show(info, fun() -> {tracer, {M, {_, _, X}}} = trace:info(S, T, tracer), {M, X, trace:info(S, T, flags)} end),
    show(info, fun() -> trace:info(S, {?MODULE, called, 1}, all) end),
    1 = trace:function(S, {?MODULE, called, 1}, [{'_', [], [{return_trace}]}], [meta]),
    show(meta, fun() -> {meta, {M, {_, _, X}}} = trace:info(S, {?MODULE, called, 1}, meta), {M, X} end),
    P = start(),
    run(P, fun() -> called(3) end),
    print(meta),
    T ! stop, P ! stop,
    trace:session_destroy(S);
t(messages) ->
    S = trace:session_create(some, {n_plain, state(m)}, []),
    T = start(),
    1 = trace:process(S, T, true, [send, 'receive', scheduler_id]),
    trace:send(S, [{['_', '$1'], [], [{message, {{got, '$1'}}}]}], []),
    run(T, fun() -> self() ! {a, "message"}, receive {a, M} -> length(M) end end),
    print(messages),
    T ! stop,
    trace:session_destroy(S);
t(processes) ->
    S = trace:session_create(some, {n_plain, state(p)}, []),
    T = start(),
    1 = trace:process(S, T, true, [procs, set_on_spawn]),
    Q = run(T, fun() -> spawn(fun() -> receive stop -> ok end end) end),
    show(child, fun() -> {tracer, {M, {_, _, X}}} = trace:info(S, Q, tracer), {M, X, trace:info(S, Q, flags)} end),
    R = monitor(process, Q), Q ! stop,
    receive {'DOWN', R, _, _, _} -> ok end,
    Es = events(),
    io:format("~0p~n", [lists:sort([{Tag, P =:= T} || {_, Tag, _, P, _, _, _} <- Es])]),
    show(new, fun() -> trace:process(S, new, true, [call]) end),
    show(new, fun() -> {tracer, {M, {_, _, X}}} = trace:info(S, new, tracer), {M, X, trace:info(S, new, flags)} end),
    1 = trace:function(S, {?MODULE, called, 1}, [], [local]),
    N = start(), run(N, fun() -> called(new) end),
    print(new),
    N ! stop, T ! stop,
    trace:session_destroy(S);
t(answers) ->
    [begin
        S = trace:session_create(some, {n_plain, {maps:put(Tag, A, answers()), self(), a}}, []),
        T = start(),
        trace:process(S, T, true, [call, send]),
        trace:function(S, {?MODULE, called, 1}, [], [local]),
        run(T, fun() -> called(1), called(2) end),
        Es = [G || {_, G, _, P, _, _, _} <- events(), P =:= T],
        show({answers, Tag, A}, fun() -> {Es, trace:info(S, T, flags), element(2, trace:info(S, T, tracer)) =:= []} end),
        T ! stop,
        trace:session_destroy(S)
    end || Tag <- [trace_status, call, send], A <- [trace, discard, remove]],
    ok;
t(several) ->
    Ss = [trace:session_create(some, {n_plain, state(I)}, []) || I <- [1, 2, 3]],
    T = start(),
    [trace:process(S, T, true, [call]) || S <- Ss],
    [trace:function(S, {?MODULE, called, 1}, [{'_', [], [{return_trace}]}], [local]) || S <- Ss],
    erlang:trace(T, true, [call, {tracer, n_plain, state(legacy)}]),
    erlang:trace_pattern({?MODULE, called, 1}, [], [local]),
    run(T, fun() -> called(1) end),
    io:format("~0p~n", [lists:sort([{X, G, W} || {_, G, X, _, W, _, _} <- events()])]),
    [trace:session_destroy(S) || S <- tl(Ss)],
    run(T, fun() -> called(2) end),
    io:format("~0p~n", [lists:sort([{X, G, W} || {_, G, X, _, W, _, _} <- events()])]),
    erlang:trace_pattern({?MODULE, called, 1}, false, [local]),
    T ! stop,
    trace:session_destroy(hd(Ss));
t(ports) ->
    S = trace:session_create(some, {n_plain, state(ports)}, []),
    P = open_port({spawn, "cat"}, [binary]),
    show(port, fun() -> trace:port(S, P, true, [ports]) end),
    link(P), unlink(P),
    show(info, fun() -> {tracer, {M, {_, _, X}}} = trace:info(S, P, tracer), {M, X, trace:info(S, P, flags)} end),
    port_close(P),
    io:format("~0p~n", [lists:usort([{G, X, Q =:= P} || {_, G, X, Q, _, _, _} <- events(), G =:= closed])]),
    trace:session_destroy(S);
t(living) ->
    S = trace:session_create(some, {n_plain, {maps:put(trace_status, remove, answers()), self(), x}}, []),
    T = start(),
    show(process, fun() -> trace:process(S, T, true, [call]) end),
    show(info, fun() -> [trace:info(S, T, I) || I <- [flags, tracer]] end),
    T ! stop,
    trace:session_destroy(S);
t(gone) ->
    S = trace:session_create(some, {n_plain, state(x)}, []),
    T = start(),
    trace:process(S, T, true, [call, procs]),
    trace:function(S, {?MODULE, called, 1}, [], [local]),
    code:purge(n_plain), code:delete(n_plain), code:purge(n_plain),
    run(T, fun() -> called(1) end),
    N = length(events()),
    show(info, fun() -> {N, [trace:info(S, T, I) || I <- [flags, tracer]]} end),
    load(n_plain),
    T ! stop,
    trace:session_destroy(S);
t(frames) ->
    %% The session is over while calls of it are under way.
    Big = [{I, binary:copy(<<I>>, 100)} || I <- lists:seq(1, 20)],
    [begin
        S = trace:session_create(some, {n_plain, state(Big)}, []),
        Me = self(),
        T = spawn(fun() -> receive go -> ok end, Me ! {done, self(), length(called_deep(50, Big))} end),
        trace:process(S, T, true, [call]),
        trace:function(S, {?MODULE, called, 1}, [{'_', [], [{return_trace}]}], [meta]),
        trace:function(S, {?MODULE, '_', '_'}, [{'_', [], [{return_trace}]}], [local]),
        T ! go,
        case I rem 2 of 0 -> trace:session_destroy(S); _ -> ok end,
        receive {done, T, N} -> N end,
        catch trace:session_destroy(S)
    end || I <- lists:seq(1, 20)],
    _ = events(),
    ok.

called_deep(0, L) -> called(L);
called_deep(N, L) -> [H | T] = called_deep(N - 1, L), [H | called(T)].
