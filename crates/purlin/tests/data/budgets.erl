%% Budgets of processes. Each function prints what holds; stock has no such functions.
-module(budgets).
-export([main/1]).

main([Name]) ->
    Run = list_to_existing_atom(Name),
    case Run of
        counts -> counts();
        rights -> rights();
        ends -> ends();
        wait -> wait();
        drop -> drop();
        exits -> exits();
        nosuspend -> nosuspend();
        circle -> circle();
        awaited -> awaited();
        many -> many();
        ended -> ended();
        share -> share();
        _ -> bomb(Run)
    end,
    io:format("done~n"),
    halt().

%% Classes and reasons, in place of stack traces.
catching(F) ->
    try F() catch C:R -> {C, R} end.

in_budget(B, F) ->
    Self = self(),
    {P, R} = spawn_opt(fun() -> Self ! {self(), F()} end, [{budget, B}, monitor]),
    receive
        {P, X} -> erlang:demonitor(R, [flush]), X;
        {'DOWN', R, _, _, Why} -> {down, Why}
    end.

idle() -> timer:sleep(infinity).

%% Each resource beyond its limit raises system_limit, and what is given back can be used again.
counts() ->
    {ok, B} = purlin:budget(#{name => tenant, processes => 3, tables => 1, ports => 1, atoms => 2}),
    io:format("~p~n", [in_budget(B, fun inside/0)]),
    #{use := Use} = purlin:budget_info(B),
    io:format("~p~n", [maps:without([memory, cpu_ms], Use)]),
    ok = purlin:end_budget(B).

inside() ->
    Ps = [catching(fun() -> spawn(fun idle/0) end) || _ <- lists:seq(1, 4)],
    Ts = [catching(fun() -> ets:new(x, []) end) || _ <- [1, 2]],
    ets:delete(hd(Ts)),
    T = catching(fun() -> ets:new(x, []) end),
    Os = [catching(fun() -> open_port({spawn, "cat"}, []) end) || _ <- [1, 2]],
    As = [catching(fun() -> list_to_atom("fresh_" ++ integer_to_list(I)) end) || I <- [1, 2, 3]],
    {[is_pid(P) || P <- Ps], lists:last(Ps), is_reference(T), tl(Ts), tl(Os), As}.

%% Nothing leaves its budget, or raises its own limits.
rights() ->
    {ok, A} = purlin:budget(#{name => a, processes => 5}),
    {ok, C} = purlin:budget(#{name => c}),
    io:format("~p~n", [in_budget(A, fun() ->
        {ok, B} = purlin:budget(#{name => b}),
        #{parent := A} = purlin:budget_info(B),
        [catching(fun() -> purlin:set_budget(A, #{processes => 1000}) end),
         catching(fun() -> purlin:end_budget(A) end),
         catching(fun() -> purlin:join_budget(C) end),
         catching(fun() -> purlin:budget_info(C) end),
         catching(fun() -> spawn_opt(fun idle/0, [{budget, C}]) end),
         catching(fun() -> purlin:set_budget(B, #{processes => 7}) end),
         length(purlin:budgets()),
         catching(fun() -> purlin:join_budget(B) end),
         catching(fun() -> purlin:join_budget(A) end)]
    end)]),
    io:format("~p~n", [[catching(fun() -> purlin:budget(M) end)
        || M <- [#{sizes => 1}, #{processes => -1}, #{processes => a}, #{over_messages => x}, []]]]),
    io:format("~p~n", [catching(fun() -> purlin:budget_info(make_ref()) end)]),
    [catching(fun() -> purlin:end_budget(X) end) || X <- purlin:budgets()],
    ok.

%% A budget that is ended kills what is in it and below it, and is forgotten.
ends() ->
    {ok, A} = purlin:budget(#{}),
    Self = self(),
    spawn_opt(fun() ->
        {ok, B} = purlin:budget(#{}),
        Ps = [spawn_opt(fun idle/0, [{budget, B}]) || _ <- lists:seq(1, 50)],
        ets:new(known, [named_table]),
        Self ! {ready, [self() | Ps]},
        idle()
    end, [{budget, A}]),
    Ps = receive {ready, X} -> X end,
    Rs = [monitor(process, P) || P <- Ps],
    ok = purlin:end_budget(A),
    io:format("~p~n", [lists:usort([receive {'DOWN', R, _, _, W} -> W end || R <- Rs])]),
    io:format("~p ~p~n", [ets:whereis(known), catching(fun() -> spawn_opt(fun idle/0, [{budget, A}]) end)]),
    gone(A).

gone(B) ->
    case catching(fun() -> purlin:budget_info(B) end) of
        {error, badarg} -> io:format("gone ~p~n", [purlin:budgets()]);
        #{ended := true} -> timer:sleep(10), gone(B)
    end.

%% A receiver, which takes messages when it is told to.
receiver() ->
    receive
        {call, From, Ref, {take, N}} ->
            [receive {m, _} -> ok end || _ <- lists:seq(1, N)],
            From ! {Ref, ok};
        {call, _, _, {ask, Who}} ->
            R = monitor(process, Who),
            Who ! {ask, self(), R},
            receive {R, Answer} -> demonitor(R, [flush]), io:format("answer ~p~n", [Answer]) end
    end,
    receiver().

start(Limits) ->
    {ok, B} = purlin:budget(Limits),
    {B, spawn_opt(fun receiver/0, [{budget, B}])}.

reached(B) ->
    #{reached := R} = purlin:budget_info(B),
    [maps:get(K, R) || K <- [waited, dropped, exited, circles]].

queued(P) -> element(2, process_info(P, message_queue_len)).

until(F) ->
    case F() of
        true -> ok;
        false -> timer:sleep(5), until(F)
    end.

wait() ->
    {B, P} = start(#{messages => 10}),
    %% This process takes no part: its own messages would wait, too.
    P ! {call, self(), ref, {take, 25}},
    erlang:suspend_process(P),
    S = spawn_monitor(fun() -> [P ! {m, I} || I <- lists:seq(1, 25)] end),
    {Pid, R} = S,
    until(fun() -> process_info(Pid, status) =:= {status, suspended} end),
    io:format("~p ~p~n", [process_info(Pid, status), reached(B)]),
    erlang:resume_process(P),
    receive {ref, ok} -> ok end,
    receive {'DOWN', R, _, _, Why} -> io:format("~p ~p~n", [Why, queued(P)]) end,
    purlin:end_budget(B).

drop() ->
    {B, P} = start(#{messages => 10, over_messages => drop}),
    [P ! {m, I} || I <- lists:seq(1, 25)],
    until(fun() -> queued(P) =:= 10 end),
    io:format("~p~n", [reached(B)]),
    purlin:end_budget(B).

exits() ->
    {B, P} = start(#{messages => 10, over_messages => exit}),
    R = monitor(process, P),
    [P ! {m, I} || I <- lists:seq(1, 25)],
    receive {'DOWN', R, _, _, Why} -> io:format("~p ~p~n", [Why, reached(B)]) end,
    purlin:end_budget(B).

nosuspend() ->
    {B, P} = start(#{messages => 2}),
    io:format("~p~n", [[erlang:send(P, {m, I}, [nosuspend]) || I <- lists:seq(1, 4)]]),
    purlin:end_budget(B).

%% Two processes that fill each other's mailboxes.
circle() ->
    {ok, B} = purlin:budget(#{messages => 3}),
    Self = self(),
    F = fun(Other) ->
        [Other ! {m, I} || I <- lists:seq(1, 20)],
        [receive {m, J} -> ok end || J <- lists:seq(1, 20)],
        Self ! {self(), ok}
    end,
    Ps = [X, Y] = [spawn_opt(fun() -> receive {go, O} -> F(O) end end, [{budget, B}]) || _ <- [1, 2]],
    X ! {go, Y},
    Y ! {go, X},
    [receive {P, ok} -> ok end || P <- Ps],
    [_, _, _, C] = reached(B),
    io:format("~p~n", [C > 0]),
    purlin:end_budget(B).

%% The process that the receiver monitors and waits for goes on, however full the mailbox is.
awaited() ->
    {B, P} = start(#{messages => 2}),
    Server = spawn(fun() ->
        receive {ask, From, R} -> [From ! {other, I} || I <- lists:seq(1, 9)], From ! {R, 42} end
    end),
    P ! {call, self(), ref, {ask, Server}},
    until(fun() -> queued(P) =:= 9 end),
    io:format("~p~n", [reached(B)]),
    purlin:end_budget(B).

%% Sixteen senders and one receiver: nothing is lost, and the mailbox stays short.
many() ->
    {ok, B} = purlin:budget(#{messages => 100}),
    Self = self(),
    N = 16,
    K = 2000,
    P = spawn_opt(fun() -> Self ! {most, drain(N * K, 0)} end, [{budget, B}]),
    [spawn(fun() -> [P ! {m, I} || I <- lists:seq(1, K)] end) || _ <- lists:seq(1, N)],
    receive {most, M} -> io:format("~p~n", [M =< 100 + N]) end,
    purlin:end_budget(B).

drain(0, Most) -> Most;
drain(N, Most) ->
    receive {m, _} -> ok end,
    drain(N - 1, max(Most, queued(self()))).

%% Senders go on when the receiver ends.
ended() ->
    {B, P} = start(#{messages => 1}),
    L = [spawn_monitor(fun() -> P ! {m, 1}, P ! {m, 2} end) || _ <- lists:seq(1, 5)],
    until(fun() -> hd(reached(B)) >= 5 end),
    exit(P, kill),
    io:format("~p~n", [[receive {'DOWN', R, _, _, W} -> W end || {_, R} <- L]]),
    purlin:end_budget(B).

%% Processes that only compute get their share of a processor, and exits reach them while they wait.
share() ->
    {ok, B} = purlin:budget(#{cpu => 10}),
    Ps = [spawn_opt(fun busy/0, [{budget, B}]) || _ <- lists:seq(1, 100)],
    timer:sleep(1000),
    #{use := #{cpu_ms := Ms}, reached := #{cpu := N}} = purlin:budget_info(B),
    io:format("~p ~p~n", [Ms >= 60 andalso Ms =< 150, N > 0]),
    {T, ok} = timer:tc(fun() ->
        [{current_function, _} = process_info(P, current_function) || P <- lists:sublist(Ps, 5)],
        R = monitor(process, hd(Ps)),
        exit(hd(Ps), kill),
        receive {'DOWN', R, _, _, killed} -> ok end
    end),
    io:format("~p~n", [T < 1000000]),
    purlin:end_budget(B).

busy() -> busy().

%% A process that uses ever more memory in one of several ways, beside one that does not.
bomb(Way) ->
    logger:remove_handler(default),
    Limit = 16 bsl 20,
    {ok, B} = purlin:budget(#{name => bomb, memory => Limit, processes => 100000}),
    Small = spawn_opt(fun idle/0, [{budget, B}]),
    {P, R} = spawn_opt(fun() -> grow(Way) end, [{budget, B}, monitor]),
    receive
        {'DOWN', R, _, _, Why} -> io:format("~p~n", [Why])
    after 20000 ->
        io:format("~p ~p~n", [purlin:budget_info(B), process_info(P, [memory, current_stacktrace])])
    end,
    #{peak := #{memory := Peak}} = purlin:budget_info(B),
    io:format("~p ~p~n", [Peak =< Limit + Limit div 10 orelse Peak, is_process_alive(Small)]),
    purlin:end_budget(B).

grow(heap) -> heap([]);
grow(binaries) -> binaries([]);
grow(messages) -> messages(self());
grow(table) -> table(ets:new(x, []), 0);
grow(binary_messages) -> binary_messages(self());
grow(region_messages) -> region_messages(self());
grow(binary_table) -> binary_table(ets:new(x, []), 0);
grow(timers) -> timers();
grow(outside) -> outside(spawn_opt(fun idle/0, []));
grow(large) ->
    N = 100 bsl 20,
    exit([catching(fun() -> F() end) || F <- [fun() -> binary:copy(<<0>>, N) end, fun() -> <<0:(N * 8)>> end]]);
grow(processes) -> forks().

heap(L) -> heap([{L, make_ref()} | L]).
binaries(L) -> binaries([binary:copy(<<1>>, 100000) | L]).
messages(P) -> P ! lists:seq(1, 100), messages(P).
binary_messages(P) -> P ! binary:copy(<<1>>, 100000), binary_messages(P).
region_messages(P) -> P ! lists:seq(1, 10000), region_messages(P).
binary_table(T, N) -> ets:insert(T, {N, binary:copy(<<1>>, 100000)}), binary_table(T, N + 1).
timers() -> erlang:send_after(100000000, self(), lists:seq(1, 100)), timers().
outside(P) -> P ! binary:copy(<<1>>, 100000), outside(P).
table(T, N) -> ets:insert(T, {N, lists:seq(1, 50)}), table(T, N + 1).
forks() ->
    case catching(fun() -> spawn(fun() -> L = lists:seq(1, 1000), idle(), L end) end) of
        {error, system_limit} -> exit(full);
        _ -> forks()
    end.
