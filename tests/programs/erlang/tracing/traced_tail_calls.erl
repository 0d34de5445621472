%% Traces natives in tail calls, by name and by computed name, and checks the stack traces of their
%% exceptions. Calls of code that is no longer current are not traced. @stress @shared
-module(traced_tail_calls).
-export([main/0, f/1, g/1, h/1, i/1, j/1, k/1, id/1]).

main() ->
    T = spawn(fun() -> tracer([]) end),
    Prog = [{'_', [], [{exception_trace}]}],
    Natives = [{erlang, throw, 1}, {erlang, error, '_'}, {erlang, exit, 1}, {erlang, atom_to_list, 1}, {lists, reverse, 2}],
    [begin
         io:format("~p ~p~n", [Kind, [erlang:trace_pattern(P, Prog, [Kind]) || P <- Natives]]),
         [raised(T, F, A) || F <- [f, g, h, i, j, k], A <- [throw, error, exit, atom_to_list]],
         [erlang:trace_pattern(P, false, [Kind]) || P <- Natives]
     end || Kind <- [global, local]],
    [versions(T, Local) || Local <- [false, true]],
    silenced(T).

raised(T, F, A) ->
    P = spawn(fun() -> receive go -> ok end, put(got, catch_all(F, A)), receive what -> exit({got, get(got)}) end end),
    erlang:trace(P, true, [call, {tracer, T}]),
    R = monitor(process, P),
    P ! go,
    P ! what,
    receive {'DOWN', R, _, _, Why} -> io:format("~p ~p ~p~n", [F, A, Why]) end,
    told(T, P).

catch_all(F, A) ->
    try ?MODULE:F(A) catch C:Why:S -> {C, Why, [{M, N, Ar, proplists:get_value(line, L)} || {M, N, Ar, L} <- S, M =/= ?MODULE orelse N =/= catch_all]} end.

f(A) ->
    case ?MODULE:id(A) of
        throw ->
            erlang:throw(x);
        error ->
            erlang:error(x);
        exit ->
            erlang:exit(x);
        _ ->
            erlang:atom_to_list(7)
    end.
g(A) ->
    case A of
        throw -> erlang:throw(x);
        error ->
            erlang:error(x, [A]);
        exit -> erlang:exit(x);
        _ -> lists:reverse([a | b], A)
    end.
h(A) ->
    erlang:A(7).
i(A) ->
    {erlang:A(7),
     1}.
j(A) ->
    erlang:apply(erlang, ?MODULE:id(A), [7]).
k(A) ->
    L = ?MODULE:id([7]),
    {apply(erlang, A, L), L}.
id(X) -> X.

versions(T, Local) ->
    [V1, V2] = [version(N) || N <- [1, 2]],
    {module, next} = erlang:load_module(next, V1),
    P = spawn(fun Loop() -> receive {From, F} -> From ! {self(), catch F()}, Loop() end end),
    Do = fun(Name, F) ->
        P ! {self(), F},
        receive {P, R} -> io:format("~p: ~p~n", [Name, case R of {'EXIT', {W, _}} -> W; F2 when is_function(F2) -> a_fun; _ -> R end]), told(T, P), R end
    end,
    erlang:trace(P, true, [call, {tracer, T}]),
    Trace = fun() ->
        io:format("~p~n", [erlang:trace_pattern({next, '_', '_'}, [], [global])]),
        Local andalso io:format("~p~n", [erlang:trace_pattern({next, inner, 0}, [], [local])])
    end,
    Trace(),
    F1 = Do(make, fun() -> next:make() end),
    Do(fun_1, F1),
    {module, next} = erlang:load_module(next, V2),
    Do(outer_2, fun() -> next:outer() end),
    Do(old_fun, F1),
    F2 = Do(make, fun() -> next:make() end),
    Do(fun_2, F2),
    Trace(),
    Do(outer_2, fun() -> next:outer() end),
    Do(old_fun, F1),
    Do(fun_2, F2),
    Do(done, fun() -> erlang:garbage_collect() end),
    true = erlang:purge_module(next),
    P2 = P,
    true = is_process_alive(P2) orelse io:format("~p~n", [gone]) =:= ok,
    true = erlang:delete_module(next),
    Q = spawn(fun() -> receive F -> exit({got, catch F()}) end end),
    erlang:trace(Q, true, [call, {tracer, T}]),
    R = monitor(process, Q),
    Q ! F2,
    receive {'DOWN', R, _, _, Why} -> io:format("~p~n", [Why]) end,
    told(T, Q),
    true = erlang:purge_module(next).

version(N) ->
    Forms = [{attribute, 1, module, next}, {attribute, 1, export, [{outer, 0}, {make, 0}]},
             {function, 2, outer, 0, [{clause, 2, [], [], [{tuple, 2, [{call, 2, {atom, 2, inner}, []}]}]}]},
             {function, 3, inner, 0, [{clause, 3, [], [], [{integer, 3, N}]}]},
             {function, 4, make, 0, [{clause, 4, [], [], [{'fun', 4, {clauses, [{clause, 4, [], [], [{call, 4, {atom, 4, inner}, []}]}]}}]}]}],
    {ok, next, Beam} = compile:forms(Forms, [no_inline, {inline_list_funcs, false}]),
    Beam.

told(T, P) ->
    R = erlang:trace_delivered(P),
    receive {trace_delivered, P, R} -> ok end,
    T ! {self(), told},
    receive {T, L} -> [io:format("    ~p~n", [X]) || X <- L] end.

tracer(L) ->
    receive
        {From, told} -> From ! {self(), lists:reverse(L)}, tracer([]);
        X -> tracer([setelement(2, X, pid) | L])
    end.

%% A process that nobody traces can be silenced by the match specification of a function.
silenced(T) ->
    P = spawn(fun F() -> receive {go, From} -> From ! ?MODULE:id(self()), F() end end),
    Told = fun() -> [element(2, erlang:trace_info(P, K)) || K <- [flags, tracer]] end,
    erlang:trace_pattern({?MODULE, id, 1}, [{'_', [], [{silent, true}]}], [{meta, T}]),
    P ! {go, self()},
    receive P -> ok end,
    io:format("~p~n", [Told()]),
    erlang:trace_pattern({?MODULE, id, 1}, false, [meta]),
    erlang:trace(P, false, [silent]),
    io:format("~p~n", [Told()]).
