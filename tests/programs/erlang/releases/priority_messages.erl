%% Checks priority messages (OTP 28): through aliases, monitors, links and exit signals. Earlier
%% releases reject the options. @stress @shared @fence
-module(priority_messages).
-export([main/0, deep/1]).

main() ->
    process_flag(trap_exit, true),
    [case what(F) of
         R -> io:format("~w: ~p~n", [F, R])
     end || F <- [order, behind, refused, signals, kill, link, link_again, link_plain, link_unlinked, link_bad, link_self, monitors,
                  monitor_alias, dead, spawned, spawned_bad, requested, marker, waiting, alias_once, alias_exit, unaliased, many, markers, kept]].

what(F) ->
    try t(F) of R -> {R, flush()} catch C:R -> {C, R, flush()} end.

flush() -> receive M -> [shown(M) | flush()] after 50 -> [] end.

shown({'EXIT', _, W}) -> {exit, W};
shown({_, _, process, _, W}) -> {down, W};
shown({spawn_reply, _, R, _}) -> {reply, R};
shown(M) -> M.

child() -> spawn(fun() -> receive stop -> exit(bye) end end).

ends(P) ->
    self() ! a,
    M = erlang:monitor(process, P),
    P ! stop,
    receive {'DOWN', M, _, _, _} -> ok end.

t(order) ->
    {A, B} = {alias([priority]), alias([])},
    self() ! a, self() ! b, erlang:send(A, p1, [priority]), erlang:send(A, n1, []), erlang:send(A, {p2, lists:seq(1, 30)}, [priority]), A ! n2,
    erlang:send(B, nb, [priority]), erlang:send(self(), x, [priority]);
t(behind) ->
    A = alias([priority]),
    self() ! a, self() ! b, erlang:send(A, p1, [priority]), timer:sleep(20),
    {messages, Ms} = process_info(self(), messages),
    erlang:send(A, p2, [priority, nosuspend]),
    receive p1 -> ok end,
    erlang:send(A, p3, [priority]), Ms;
t(refused) -> erlang:send(self(), x, [prio]);
t(signals) ->
    {A, B} = {alias([priority]), alias([])},
    self() ! a, erlang:exit(A, r1, [priority]), erlang:exit(B, r2, [priority]), erlang:exit(A, r3, []), exit(A, r4), erlang:exit(self(), r5, [priority]);
t(kill) ->
    Me = self(),
    {_, R} = spawn_monitor(fun() -> process_flag(trap_exit, true), Me ! {al, catch alias([priority])}, receive X -> exit({got, X}) end end),
    receive {al, A} when is_reference(A) -> erlang:exit(A, kill, [priority]); {al, _} -> error(none) end,
    receive {'DOWN', R, _, _, Why} -> Why end;
t(link) -> P = child(), erlang:link(P, [priority]), ends(P);
t(link_again) -> P = child(), erlang:link(P, [priority]), link(P), ends(P);
t(link_plain) -> P = child(), link(P), erlang:link(P, [priority]), ends(P);
t(link_unlinked) -> P = child(), erlang:link(P, [priority]), unlink(P), link(P), ends(P);
t(link_bad) -> erlang:link(self(), [foo]);
t(link_self) -> erlang:link(self(), [priority]);
t(monitors) -> P = child(), erlang:monitor(process, P, [priority, {tag, mine}]), erlang:monitor(process, P, []), erlang:monitor(process, P, [priority]), ends(P);
%% An exit signal is no reply: an alias that ends with the first one stays, until a message has come
%% by it.
t(alias_exit) ->
    P = fun() -> element(2, process_info(self(), priority_messages)) end,
    A = alias([reply, priority]),
    B = alias([reply]),
    Exit = fun(To, W, O) -> spawn(fun() -> erlang:exit(To, W, O) end), receive {'EXIT', _, W} -> {W, P()} after 2000 -> none end end,
    Send = fun(To, M) -> spawn(fun() -> To ! M end), receive M -> M after 2000 -> none end end,
    [P(), Exit(A, why, [priority]), Exit(A, again, []), Exit(B, plain, []), Send(B, m), Send(A, n), Send(B, late)];
t(monitor_alias) ->
    P = child(),
    R = erlang:monitor(process, P, [priority, {alias, explicit_unalias}]),
    self() ! q, erlang:send(R, by_alias, [priority]), ends(P), self() ! r, erlang:send(R, by_alias, [priority]);
t(dead) ->
    P = spawn(fun() -> ok end), timer:sleep(20),
    self() ! a, erlang:monitor(process, P, [priority]), erlang:link(P, [priority]), ok;
t(spawned) ->
    P = spawn_opt(fun() -> receive stop -> exit(bye) end end, [{link, [priority]}]),
    {Q, _} = spawn_opt(fun() -> receive stop -> exit(bye) end end, [{monitor, [priority]}]),
    ends(P), ends(Q);
t(spawned_bad) -> spawn_opt(fun() -> ok end, [{link, [foo]}]);
t(requested) ->
    R = spawn_request(fun() -> receive stop -> exit(bye) end end, [{link, [priority]}, {monitor, [priority]}]),
    receive {spawn_reply, R, ok, P} -> ends(P); {spawn_reply, R, _, Why} -> Why end;
t(marker) ->
    %% What it waits for comes before where it was asked for.
    P = child(),
    [self() ! {junk, I} || I <- lists:seq(1, 5)],
    spawn(fun() -> timer:sleep(30), P ! stop end),
    R = erlang:monitor(process, P, [priority]),
    receive {'DOWN', R, _, _, W} -> W after 5000 -> timeout end;
t(waiting) ->
    A = alias([priority]),
    self() ! a,
    spawn(fun() -> timer:sleep(30), erlang:send(A, {urgent, lists:seq(1, 300)}, [priority]) end),
    receive {urgent, L} -> lists:sum(L) after 5000 -> timeout end;
t(alias_once) ->
    A = alias([reply, priority]),
    self() ! a, erlang:send(A, one, [priority]), erlang:send(A, two, [priority]);
t(unaliased) ->
    A = alias([priority]),
    unalias(A), erlang:send(A, gone, [priority]), erlang:exit(A, r, [priority]);
t(many) ->
    %% Among many that wait, from several, with collections between.
    {A, Me} = {alias([priority]), self()},
    Ps = [spawn_monitor(fun() -> [begin Me ! {n, W, I, deep(20)}, erlang:send(A, {p, W, I, deep(20)}, [priority]) end || I <- lists:seq(1, 50)] end) || W <- [1, 2, 3]],
    [receive {'DOWN', R, _, _, Why} -> Why end || {_, R} <- Ps],
    Got = [receive {K, W, I, T} -> true = (T =:= deep(20)), {K, W, I} end || _ <- lists:seq(1, 300)],
    {Urgent, Plain} = lists:splitwith(fun({K, _, _}) -> K =:= p end, Got),
    {length(Urgent), length(Plain), [[I || {_, V, I} <- L, V =:= W] =:= lists:seq(1, 50) || L <- [Urgent, Plain], W <- [1, 2, 3]]};
t(markers) ->
    %% A receive by a reference, again and again, while others come with priority.
    {A, Me} = {alias([priority]), self()},
    S = spawn(fun F() -> receive {From, R, T} -> erlang:send(A, {u, T}, [priority]), From ! {R, T}, F() end end),
    [self() ! {old, I} || I <- lists:seq(1, 20)],
    L = [begin R = make_ref(), S ! {Me, R, deep(N rem 7)}, receive {R, T} -> erlang:phash2(T) =:= erlang:phash2(deep(N rem 7)) end end || N <- lists:seq(1, 100)],
    U = [receive {u, T} -> erts_debug:flat_size(T) end || _ <- lists:seq(1, 100)],
    exit(S, kill),
    {lists:usort(L), lists:sum(U)};
t(kept) ->
    %% What has gone is not kept: many monitors with priority that are taken back.
    P = child(),
    [demonitor(erlang:monitor(process, P, [priority]), [flush]) || _ <- lists:seq(1, 5000)],
    [begin erlang:link(P, [priority]), unlink(P) end || _ <- lists:seq(1, 1000)],
    exit(P, kill), ok.

deep(0) -> [];
deep(N) -> {N, [deep(N - 1), <<N:64>>, lists:duplicate(3, N)]}.
