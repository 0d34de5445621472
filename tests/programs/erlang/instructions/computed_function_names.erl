%% Calls functions by computed names in loops: local functions, natives, functions that do not
%% exist, functions that raise, and natives that change code.
-module(computed_function_names).
-export([main/0, inc/1, add/2, none/0, deep/3, kept/1, '$handle_undefined_function'/2, seen/1]).
main() ->
    M = id(?MODULE),
    io:format("~p~n", [lists:sum([M:inc(N) || N <- lists:seq(1, 2000)])]),
    io:format("~p~n", [loop(M, inc, 3000, 0)]),
    io:format("~p~n", [loop(id(erlang), abs, 3000, 0)]),
    io:format("~p~n", [erlang:phash2([two(m(N), f(N), N, [N, 1]) || N <- lists:seq(1, 3000)])]),
    io:format("~p~n", [M:deep(M, 200, [])]),
    io:format("~p~n", [[fails(A, B, C) || _ <- [1, 2], {A, B, C} <- [
        {M, inc, a}, {M, gone, 1}, {lists, reverse, x}, {maps, size, 3}, {no_such_module, f, 1}, {erlang, hd, []},
        {erlang, error, why}, {erlang, exit, why}, {erlang, throw, why}, {1, f, 1}, {M, "f", 1}, {a, 2, 1}, {{M, x}, f, 1},
        {erlang, apply, 1}, {erlang, nif_error, why}, {ets, info, no_table}, {erlang, binary_to_atom, <<255>>}]]]),
    [fails(M, N, 1) || N <- [inc, gone], _ <- lists:seq(1, 600)],
    io:format("~p~n", [[fails(M, F, 1) || F <- [inc, gone, kept]]]),
    io:format("~p~n", [caught(M, 60)]),
    %% More than six arguments, none, and as the last thing.
    io:format("~p~n", [[M:none() || _ <- lists:seq(1, 200)] =:= lists:duplicate(200, none)]),
    io:format("~p~n", [last(M, add, 2500)]),
    io:format("~p~n", [tail_native(id(erlang), id(lists), 2500, [])]),
    %% What changes code, called so: from then on the callers are traced, and are not.
    L = id(erlang), [M:seen(N) || N <- lists:seq(1, 1000)],
    io:format("~p~n", [traced(M, L, fun erlang:trace_pattern/3)]),
    io:format("~p~n", [reloaded(id(code))]),
    Ps = [spawn_monitor(fun() -> exit({K, loop(M, inc, 50000, 0)}) end) || K <- lists:seq(1, 8)],
    io:format("~p~n", [[receive {'DOWN', R, _, P, V} -> V end || {P, R} <- Ps]]).

id(X) -> X.
inc(N) -> N + 1.
add(A, B) -> A + B.
none() -> none.
kept(X) -> erlang:get_stacktrace_of(X).
'$handle_undefined_function'(F, A) -> {undefined_here, F, A}.
m(N) -> element(1 + N rem 4, {?MODULE, lists, erlang, string}).
f(N) -> element(1 + N rem 4, {add, member, '+', concat}).
two(M, F, N, [A, B]) ->
    case N rem 4 of
        0 -> M:F(A, B);
        1 -> M:F(A, [A, B]);
        2 -> M:F(A, B);
        3 -> M:F([$a, A band 127], "b")
    end.
loop(_, _, 0, A) -> A;
loop(M, F, N, A) -> loop(M, F, N - 1, M:F(A)).
deep(_, 0, A) -> length(A);
deep(M, N, A) -> X = M:deep(M, N - 1, [N | A]), X + 1.
fails(M, F, X) ->
    try M:F(X) of V -> {value, V}
    catch K:E:S -> {K, E, [{A, B, if is_list(C) -> C; true -> C end} || {A, B, C, _} <- lists:sublist(S, 2)]}
    end.
caught(_, 0) -> [];
caught(M, N) ->
    R = case catch M:inc(element(1 + N rem 2, {N, a})) of
        {'EXIT', {E, [{A, B, C, _} | _]}} -> {E, A, B, C};
        V -> V
    end,
    [R | caught(M, N - 1)].
last(M, F, 0) -> M:F(1, 2);
last(M, F, N) -> last1(M, F, N), last(M, F, N - 1).
last1(M, F, N) -> M:F(N, N).
tail_native(_, _, 0, A) -> length(A);
tail_native(E, L, N, A) -> tail_native(E, L, N - 1, [size1(E, {N}) | rev1(L, A)]).
size1(M, X) -> M:tuple_size(X).
rev1(M, X) -> M:reverse(lists:sublist(X, 3)).
seen(N) -> {seen, N}.
traced(M, L, F) ->
    S = self(),
    T = spawn(fun() -> collect(S, []) end),
    P = spawn(fun() -> receive go -> S ! {self(), steps(M, L, F, 9)} end end),
    erlang:trace(P, true, [call, {tracer, T}]),
    P ! go,
    receive {P, R} -> ok end,
    Ref = erlang:trace_delivered(P),
    receive {trace_delivered, P, Ref} -> ok end,
    T ! stop,
    receive {T, C} -> {R, C} end.
steps(_, _, _, 0) -> [];
steps(M, L, F, N) ->
    case N of
        8 -> 1 = L:trace_pattern({?MODULE, seen, 1}, true, [local]);
        5 -> 1 = L:trace_pattern({?MODULE, seen, 1}, false, [local]);
        4 -> 1 = F({?MODULE, seen, 1}, true, [local]);
        2 -> 1 = F({?MODULE, seen, 1}, false, [local]);
        _ -> ok
    end,
    X = seen(N),
    Y = M:seen(-N),
    [X, Y | steps(M, L, F, N - 1)].
collect(S, C) ->
    receive
        {trace, _, call, {_, F, A}} -> collect(S, [{F, A} | C]);
        stop -> S ! {self(), lists:reverse(C)}
    end.
%% A module that is loaded anew while a loop calls it by its name.
reloaded(C) ->
    Made = fun(N) ->
        {ok, Mod, Bin} = compile:forms([{attribute, 1, module, r_applied_other}, {attribute, 1, export, [{v, 0}]},
            {function, 1, v, 0, [{clause, 1, [], [], [{integer, 1, N}]}]}]),
        {Mod, Bin}
    end,
    lists:usort([begin
        {Mod, Bin} = Made(K div 40),
        case K rem 40 of 0 -> C:purge(Mod), {module, Mod} = C:load_binary(Mod, "none", Bin); _ -> ok end,
        Mod:v()
    end || K <- lists:seq(0, 199)]).
