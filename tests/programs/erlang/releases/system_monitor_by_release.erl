%% Checks the system monitor: long message queues since OTP 27, one monitor per trace session since
%% OTP 28. Earlier releases reject both. @stress @shared @fence
-module(system_monitor_by_release).
-export([main/0]).

main() ->
    [io:format("~w: ~0p~n", [F, try t(F) catch C:R:S -> {C, R, [element(2, E) || E <- lists:sublist(S, 1)]} end])
     || F <- [legacy, refused, long_queue, selective, receiver, gone, ended | sessions()]].

sessions() ->
    {module, _} = code:ensure_loaded(erlang),
    _ = code:ensure_loaded(trace),
    case erlang:function_exported(trace, system, 3) of
        true -> [session_refused, session, two, changed, over];
        false -> []
    end.

%% One that tells what it has got.
teller() -> spawn(fun L() -> receive {get, P} -> P ! {got, got()}, L() end end).
got() -> receive M -> [M | got()] after 300 -> [] end.
%% What it was told of a process, in order. By then the process has answered after its last change.
told(T, P) ->
    T ! {get, self()},
    receive {got, L} -> [{What, V} || {monitor, P1, What, V} <- L, P1 =:= P] end.

%% A process that takes so many messages when it is asked to, and says when it has come to each
%% point.
queue() -> spawn(fun waits/0).
waits() ->
    receive
        {take, N, From} ->
            [receive {m, _} -> ok end || _ <- lists:seq(1, N)],
            From ! taken,
            waits();
        {look, From} -> From ! looked, waits()
    end.
%% Sent first, so that the receive goes past what is there.
fill(P, N) -> [P ! {m, I} || I <- lists:seq(1, N)], P ! {look, self()}, receive looked -> ok end.
take(P, N) -> P ! {take, N, self()}, receive taken -> ok end.

cause(F) -> case catch F() of {'EXIT', {R, _}} -> R; X -> X end.
shown({P, L}) when is_pid(P) -> {pid, L};
shown(X) -> X.

t(legacy) ->
    P = spawn(fun() -> receive stop -> ok end end),
    L = [[busy_port], [{long_gc, 0}, busy_dist_port, {large_heap, 1}], [{long_schedule, 7}, {long_gc, 1 bsl 60}],
         [{long_message_queue, {3, 10}}], [{long_message_queue, {0, 1}}, busy_port, {large_heap, 100000}]],
    R = [{O, shown(cause(fun() -> erlang:system_monitor(P, O), erlang:system_monitor() end))} || O <- L],
    E = erlang:system_monitor(undefined),
    exit(P, kill),
    {R, shown(E), erlang:system_monitor()};
t(refused) ->
    P = self(),
    L = [[{long_message_queue, X}] || X <- [5, {5}, {5, 5}, {6, 5}, {-1, 5}, {0, 0}, {a, 5}, {1, 2, 3}, {1, b}, true, {1 bsl 70, 1 bsl 71}]]
        ++ [[foo], [{foo, 1}], [{busy_port, 1}], [busy_port | x], [{long_gc, -1}], [long_gc], [{large_heap, true}]],
    [{O, cause(fun() -> shown(erlang:system_monitor(P, O)) end)} || O <- L];
t(long_queue) -> with([{long_message_queue, {3, 10}}], fun(T) -> long_queue(T, queue()) end);
%% A receive that takes only some: the queue gets longer behind it, and shorter from its midst.
t(selective) ->
    with([{long_message_queue, {2, 5}}], fun(T) ->
        Me = self(),
        P = spawn(fun() ->
            receive go -> ok end,
            [receive {m, I} -> ok end || I <- [4, 2, 6, 1]],
            Me ! taken,
            receive stop -> ok end end),
        [P ! {m, I} || I <- lists:seq(1, 6)],
        P ! {m, lists:seq(1, 3000)},
        P ! go,
        receive taken -> ok end,
        A = told(T, P),
        exit(P, kill),
        A end);
%% Who is told isn't told of itself.
t(receiver) ->
    Me = self(),
    P = spawn(fun() ->
        Me ! {ready, cause(fun() -> erlang:system_monitor(self(), [{long_message_queue, {1, 3}}]) end)},
        receive go -> ok end,
        L = lists:sort([receive M -> M end || _ <- lists:seq(1, 5)]),
        Me ! {got, L, receive X -> X after 0 -> none end} end),
    Was = receive {ready, W} -> W end,
    [P ! {m, I} || I <- lists:seq(1, 5)],
    P ! go,
    R = receive {got, L, X} -> {Was, L, X} end,
    erlang:system_monitor(undefined),
    R;
%% Nobody is told any more when the one who was has ended.
t(gone) ->
    P = spawn(fun() -> receive stop -> ok end end),
    erlang:system_monitor(P, [{long_message_queue, {3, 10}}]),
    M = erlang:monitor(process, P),
    exit(P, kill),
    receive {'DOWN', M, _, _, _} -> ok end,
    Q = queue(),
    fill(Q, 20),
    take(Q, 20),
    exit(Q, kill),
    erlang:system_monitor();
%% One whose queue was long when the watch ended, and a process that ends with a long queue.
t(ended) ->
    Q = queue(),
    A = with([{long_message_queue, {3, 10}}], fun(T) -> fill(Q, 12), told(T, Q) end),
    take(Q, 12),
    B = with([{long_message_queue, {3, 10}}], fun(T) -> fill(Q, 12), exit(Q, kill), told(T, Q) end),
    {A, B};
t(session_refused) ->
    S = trace:session_create(a, self(), []),
    L = [{long_gc, true}, {long_gc, -1}, {foo, 1}, {busy_port, 1}, {long_message_queue, {2, 1}}, {long_message_queue, true}, {large_heap, x}],
    R = [{O, cause(fun() -> trace:system(S, K, V) end)} || {K, V} = O <- L],
    trace:session_destroy(S),
    {R, cause(fun() -> trace:system(S, long_gc, 1) end), cause(fun() -> trace:system(x, long_gc, 1) end)};
t(session) ->
    T = teller(),
    S = trace:session_create(a, T, []),
    ok = trace:system(S, long_message_queue, {3, 10}),
    Q = queue(),
    fill(Q, 12), take(Q, 5), take(Q, 6), fill(Q, 20), take(Q, 20),
    A = told(T, Q),
    exit(Q, kill),
    I = trace:info(S, system, all),
    trace:session_destroy(S),
    {A, I, erlang:system_monitor()};
%% Two sessions and the functions without one: each has its own limits.
t(two) ->
    [T1, T2, T3] = [teller() || _ <- [1, 2, 3]],
    [S1, S2] = [trace:session_create(a, T, []) || T <- [T1, T2]],
    ok = trace:system(S1, long_message_queue, {3, 10}),
    ok = trace:system(S2, long_message_queue, {6, 8}),
    erlang:system_monitor(T3, [{long_message_queue, {0, 15}}]),
    Q = queue(),
    fill(Q, 9), take(Q, 4), fill(Q, 11), take(Q, 10), take(Q, 6),
    A = [told(T, Q) || T <- [T1, T2, T3]],
    exit(Q, kill),
    erlang:system_monitor(undefined),
    [trace:session_destroy(S) || S <- [S1, S2]],
    A;
t(changed) ->
    T = teller(),
    S = trace:session_create(a, T, []),
    I = fun() -> {system, L} = trace:info(S, system, all), L end,
    A = [begin ok = trace:system(S, K, V), I() end
         || {K, V} <- [{long_gc, 0}, {large_heap, 3}, {busy_port, true}, {long_message_queue, {1, 2}}, {long_schedule, 5}, {busy_dist_port, true},
                       {long_gc, false}, {long_message_queue, false}, {busy_port, false}, {large_heap, false}, {long_schedule, false},
                       {busy_dist_port, false}]],
    trace:session_destroy(S),
    A;
%% A session that is over tells nothing, and what it was told of a queue is forgotten.
t(over) ->
    T = teller(),
    Q = queue(),
    S = trace:session_create(a, T, []),
    ok = trace:system(S, long_message_queue, {3, 10}),
    fill(Q, 12),
    trace:session_destroy(S),
    take(Q, 12),
    A = told(T, Q),
    S2 = trace:session_create(a, T, []),
    ok = trace:system(S2, long_message_queue, {3, 10}),
    fill(Q, 12),
    take(Q, 12),
    B = told(T, Q),
    trace:session_destroy(S2),
    exit(Q, kill),
    {A, B}.

with(Options, F) ->
    T = teller(),
    erlang:system_monitor(T, Options),
    R = F(T),
    erlang:system_monitor(undefined),
    exit(T, kill),
    R.

long_queue(T, Q) ->
    fill(Q, 9),
    A = told(T, Q),
    fill(Q, 1), take(Q, 6), fill(Q, 20), take(Q, 21),
    B = told(T, Q),
    fill(Q, 30), take(Q, 33),
    C = told(T, Q),
    exit(Q, kill),
    {A, B, C}.
