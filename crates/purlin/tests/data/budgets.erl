%% Budgets of processes. Each function prints what holds; stock has no such functions.
-module(budgets).
-export([main/1, log/2, flood/3]).

main([Name]) ->
    Run = list_to_existing_atom(Name),
    case Run of
        counts -> counts();
        rights -> rights();
        refusals -> refusals();
        ends -> ends();
        behind -> behind();
        wait -> wait();
        drop -> drop();
        exits -> exits();
        nosuspend -> nosuspend();
        circle -> circle();
        awaited -> awaited();
        many -> many();
        ended -> ended();
        share -> share();
        weights -> weights();
        notified -> notified();
        told_above -> told_above();
        self_sends -> self_sends();
        port_queue -> port_queue();
        lines -> lines();
        far -> far();
        far_beside -> far_beside();
        ports_with_output -> ports_with_output();
        given_away -> given_away();
        reads -> reads();
        billed_once -> [billed_once(K) || K <- [set, ordered_set]];
        dictionary -> dictionary();
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

%% A budget pays for tables that were given to processes outside of it, until it ends.
given_away() ->
    {ok, B} = purlin:budget(#{tables => 2}),
    Other = spawn(fun idle/0),
    Made = in_budget(B, fun() ->
        [catching(fun() -> ets:give_away(ets:new(x, []), Other, gift) end) || _ <- [1, 2, 3]]
    end),
    #{use := #{tables := Paid}} = purlin:budget_info(B),
    ok = purlin:end_budget(B),
    io:format("~p~n", [{Made, Paid}]),
    io:format("~p~n", [{gone(B, 100), length([T || T <- ets:all(), ets:info(T, owner) =:= Other])}]).

gone(_, 0) -> there;
gone(B, N) ->
    try purlin:budget_info(B) of _ -> timer:sleep(10), gone(B, N - 1)
    catch error:badarg -> gone end.

%% A read for which there is no room is refused, and the place in the file stays.
reads() ->
    {ok, B} = purlin:budget(#{memory => 8 bsl 20}),
    Name = "reads_of_budgets.tmp",
    ok = file:write_file(Name, binary:copy(<<"0123456789">>, 1200000)),
    R = in_budget(B, fun() ->
        {ok, Zeros} = file:open("/dev/zero", [read, raw, binary]),
        {ok, F} = file:open(Name, [read, raw, binary]),
        {ok, <<"0123">>} = file:read(F, 4),
        [catching(fun() -> Size(element(2, Read())) end) || Size <- [fun byte_size/1], Read <- [
            fun() -> file:read(Zeros, 800 bsl 20) end,
            fun() -> file:pread(Zeros, 0, 800 bsl 20) end,
            fun() -> file:read(F, 800 bsl 20) end,
            fun() -> file:pread(F, 1, 1 bsl 40) end,
            fun() -> prim_file:read_file(Name) end,
            fun() -> prim_file:read_file("/dev/zero") end,
            fun() -> file:read(F, 1000000) end]] ++ [file:read(F, 3)]
    end),
    file:delete(Name),
    io:format("~p~n", [R]).

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

%% What is refused is not given back, so the limit stays.
refusals() ->
    {ok, B} = purlin:budget(#{tables => 2, ports => 1}),
    R = in_budget(B, fun() ->
        Ts = [catching(fun() -> ets:new(x, []) end) || _ <- lists:seq(1, 30)],
        Ps = [catching(fun() -> open_port({spawn, "cat"}, []) end) || _ <- lists:seq(1, 20)],
        [catching(fun() -> purlin:budget_info(make_ref()) end) || _ <- lists:seq(1, 20)],
        #{use := #{tables := T, ports := P, processes := N}} = purlin:budget_info(B),
        {[X || X <- Ts, is_reference(X)] =:= lists:sublist(Ts, 2), length([X || X <- Ps, is_port(X)]), T, P, N}
    end),
    io:format("~p~n", [R]),
    ok = purlin:end_budget(B).

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
%% Processes that may use a share of the processor run after others that were woken later.
behind() ->
    erlang:system_flag(schedulers_online, 1),
    {ok, B} = purlin:budget(#{cpu => 50}),
    Self = self(),
    Answers = fun(What) -> fun() -> receive go -> Self ! What end end end,
    Many = [spawn_opt(Answers(limited), [{budget, B}]) || _ <- lists:seq(1, 50)],
    Urgent = spawn_opt(Answers(limited), [{budget, B}, {priority, high}]),
    Other = spawn(Answers(other)),
    erlang:yield(),
    [P ! go || P <- [Urgent | Many] ++ [Other]],
    First = receive F -> F end,
    Rest = [receive R -> R end || _ <- [Other | Many]],
    io:format("~w ~w~n", [First, lists:usort(Rest)]).

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
        {call, From, Ref, {ask, Who}} ->
            R = monitor(process, Who),
            Who ! {ask, self(), R},
            receive {R, Answer} -> demonitor(R, [flush]), From ! {Ref, Answer} end
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
    receive {ref, Answer} -> io:format("answer ~p~n", [Answer]) end,
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

%% Siblings share what there is by their weights. With one of them, nothing is left idle.
weights() ->
    Bs = [begin {ok, B} = purlin:budget(#{cpu_weight => W}), B end || W <- [100, 300]],
    [spawn_opt(fun busy/0, [{budget, B}]) || B <- Bs, _ <- lists:seq(1, 8)],
    timer:sleep(2000),
    [X, Y] = [cpu_ms(B) || B <- Bs],
    io:format("~p~n", [(Y / X > 1.7 andalso Y / X < 4.5) orelse {X, Y}]),
    purlin:end_budget(lists:last(Bs)),
    timer:sleep(200),
    Before = cpu_ms(hd(Bs)),
    Total = fun() -> element(1, erlang:statistics(runtime)) end,
    T = Total(),
    timer:sleep(500),
    Alone = cpu_ms(hd(Bs)) - Before,
    All = Total() - T,
    io:format("~p~n", [Alone * 10 > All * 8 orelse {Alone, All}]),
    purlin:end_budget(hd(Bs)).

cpu_ms(B) ->
    #{use := #{cpu_ms := Ms}} = purlin:budget_info(B),
    Ms.

%% The process that a budget notifies learns the reason, the process and the largest ones with their lines
%% before it ends.
notified() ->
    logger:remove_handler(default),
    {ok, B} = purlin:budget(#{memory => 8 bsl 20, notify => self()}),
    {P, R} = spawn_opt(fun() -> heap([]) end, [{budget, B}, monitor]),
    receive
        {budget, B, memory, #{process := P, limit := L, used := U, largest := [{P, N, Stack} | _]}} ->
            [{budgets, heap, 1, [{file, _}, {line, Line}]} | _] = Stack,
            io:format("~p ~p ~p ~p~n", [L, U > L, N > L div 2, is_integer(Line)])
    end,
    receive {'DOWN', R, _, _, Why} -> io:format("~p~n", [Why]) end,
    {ok, C} = purlin:budget(#{messages => 3, over_messages => exit, notify => self()}),
    {Q, S} = spawn_opt(fun idle/0, [{budget, C}, monitor]),
    [Q ! I || I <- lists:seq(1, 5)],
    receive First -> io:format("~p~n", [First =:= {budget, C, messages,
        #{process => Q, limit => 3, used => 3}}]) end,
    receive {'DOWN', S, _, _, Reason} -> io:format("~p~n", [Reason]) end,
    Self = self(),
    #{notify := Self} = purlin:budget_info(C),
    ok = purlin:set_budget(C, #{notify => undefined}),
    #{notify := undefined} = purlin:budget_info(C),
    io:format("~p~n", [[catching(fun() -> purlin:budget(#{notify => X}) end) || X <- [a, 1, []]]]).

%% A budget without such a process leaves it to the one above it.
told_above() ->
    logger:remove_handler(default),
    {ok, A} = purlin:budget(#{notify => self()}),
    {_, R} = spawn_opt(fun() ->
        {ok, B} = purlin:budget(#{name => below, memory => 8 bsl 20}),
        {_, M} = spawn_opt(fun() -> heap([]) end, [{budget, B}, monitor]),
        receive {'DOWN', M, _, _, Why} -> exit({Why, B}) end
    end, [{budget, A}, monitor]),
    Below = receive {budget, X, memory, #{}} -> X end,
    receive {'DOWN', R, _, _, {Why, B}} -> io:format("~p ~p~n", [Why, B =:= Below]) end.

%% A process that sends to itself does not wait: it is let through, and counted as a circle.
self_sends() ->
    [begin
        {ok, B} = purlin:budget(#{messages => 5, over_messages => Over}),
        {_, R} = spawn_opt(fun() ->
            [self() ! {m, I} || I <- lists:seq(1, 9)],
            receive never -> ok after 100 -> exit({queued, queued(self())}) end
        end, [{budget, B}, monitor]),
        receive {'DOWN', R, _, _, Why} -> io:format("~p ~p ~p~n", [Over, Why, reached(B)]) end
    end || Over <- [wait, drop, exit]].

%% What waits in the queue of a port is on the bill, until the port takes it or is closed.
port_queue() ->
    {ok, B} = purlin:budget(#{}),
    Self = self(),
    spawn_opt(fun() ->
        {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
        {ok, No} = inet:port(L),
        {ok, S} = gen_tcp:connect({127, 0, 0, 1}, No, [{high_watermark, 100 bsl 20}]),
        [ok = gen_tcp:send(S, lists:duplicate(10000, $a)) || _ <- lists:seq(1, 2000)],
        erlang:garbage_collect(),
        Self ! ready,
        idle()
    end, [{budget, B}]),
    Used = fun() -> #{use := #{memory := M}} = purlin:budget_info(B), M end,
    %% The system takes some of it.
    receive ready -> timer:sleep(50) end,
    io:format("~p~n", [Used() > 12000000 orelse Used()]),
    purlin:end_budget(B),
    until(fun() -> catching(fun() -> purlin:budget_info(B) end) =:= {error, badarg} end).

%% The report has the largest processes with their lines.
lines() ->
    ok = logger:remove_handler(default),
    ok = logger:add_handler(here, ?MODULE, #{config => self()}),
    {ok, B} = purlin:budget(#{name => {a, tenant}, memory => 8 bsl 20}),
    P = spawn_opt(fun() -> heap([]) end, [{budget, B}]),
    receive {report, Text} ->
        Flat = [C || C <- Text, C > $\s],
        [io:format("~p~n", [string:find(Flat, [C || C <- X, C > $\s]) =/= nomatch orelse Text]) || X <- [pid_to_list(P),
            "memory limit of a budget reached", "{a,tenant}", "8388608", "{budgets,heap,1,[{file,"]]
    end.

log(#{msg := {F, As}}, #{config := To}) -> To ! {report, lists:flatten(io_lib:format(F, As))};
log(_, _) -> ok.

%% A process that uses ever more memory in one of several ways, beside one that does not.
bomb(Way) ->
    logger:remove_handler(default),
    Limit = 16 bsl 20,
    [load_old() || Way =:= old_appends],
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
grow(sequences) -> sequences(1);
grow(mapping) -> mapping(lists:seq(1, 1000));
grow(merges) -> exit(catching(fun() -> merges(#{a => 1}, 0) end));
grow(from_list) -> exit(catching(fun() -> from_list(1000) end));
grow(tuples) -> exit(catching(fun() -> tuples([]) end));
grow(decoded) ->
    %% A million tuples: three bytes of each become four words.
    B = iolist_to_binary([131, 108, <<500000:32>>, binary:copy(<<104, 1, 106>>, 500000), 106]),
    exit(catching(fun() -> length(binary_to_term(B)) end));
grow(map_update) -> updates(maps:from_list([{I, I} || I <- lists:seq(1, 50000)]), []);
grow(sorts) -> sorts([I * 7919 rem 10007 || I <- lists:seq(1, 8000)], []);
grow(flattening) -> flattening(lists:seq(1, 50000));
grow(lookups) -> T = ets:new(x, []), ets:insert(T, {k, lists:seq(1, 200000)}), lookups(T, []);
grow(requests) -> requests();
grow(peeking) ->
    [self() ! lists:seq(1, 100) || _ <- lists:seq(1, 2500)],
    P = self(),
    Ps = [spawn_monitor(fun() -> exit(catching(fun() -> peeking(P, []) end)) end)
          || _ <- lists:seq(1, 10)],
    exit(lists:usort([receive {'DOWN', R, _, _, Why} -> Why end || {_, R} <- Ps]));
grow(large) ->
    N = 100 bsl 20,
    B = binary:copy(<<0>>, 2 bsl 20),
    exit(lists:usort([catching(F) || F <- [
        fun() -> binary:copy(<<0>>, N) end,
        fun() -> <<0:(N * 8)>> end,
        fun() -> erlang:make_tuple(4000000, x) end,
        fun() -> erlang:make_tuple(4000000, x, []) end,
        fun() -> binary_to_list(B) end,
        fun() -> binary_to_list(B, 1, 2000000) end,
        fun() -> bitstring_to_list(<<B/binary, 1:1>>) end,
        fun() -> term_to_binary(lists:duplicate(10, B)) end,
        fun() -> unicode:characters_to_list(B) end]]));
grow(update_table) ->
    T = ets:new(x, []),
    ets:insert(T, [{I, a} || I <- lists:seq(1, 5000)]),
    [ets:update_element(T, I, {2, lists:seq(I, I + 500)}) || I <- lists:seq(1, 5000)],
    exit(all);
grow(replaced) ->
    T = ets:new(x, []),
    ets:insert(T, [{I, a} || I <- lists:seq(1, 2000)]),
    replaced(T, 1);
grow(insert_lists) -> insert_lists(50, 10);
grow(many_inserts) -> insert_lists(50, 8000);
grow(counters) -> counters([]);
grow(counter_table) -> counter_table(ets:new(x, []), 0);
grow(appends) -> exit(element(2, catching(fun() -> appends(<<>>) end)));
grow(copied_appends) -> exit(element(2, catching(fun() -> copied_appends(<<>>) end)));
grow(old_appends) -> exit(element(2, catching(fun() -> budgets_old:copied_appends(<<>>) end)));
grow(processes) -> forks().

appends(B) -> appends(<<B/binary, 0:80000>>).
%% The second binary is a copy, since the first has taken the room.
copied_appends(B) ->
    put(first, <<B/binary, 0:500000>>),
    copied_appends(<<B/binary, 1:500000>>).
%% The same in code of OTP 24.
load_old() ->
    Forms = [begin {ok, Ts, _} = erl_scan:string(S), {ok, F} = erl_parse:parse_form(Ts), F end || S <- [
        "-module(budgets_old).", "-export([copied_appends/1]).",
        "copied_appends(B) -> put(first, <<B/binary, 0:500000>>), copied_appends(<<B/binary, 1:500000>>)."]],
    {ok, M, Code} = compile:forms(Forms, [r24]),
    {module, M} = code:load_binary(M, "budgets_old", Code).

%% Ever larger terms in place of others.
replaced(T, N) ->
    ets:select_replace(T, [{{'$1', '_'}, [], [{{'$1', {const, lists:seq(1, N)}}}]}]),
    replaced(T, N * 2).
%% Ever more objects in one call. Their common part is too small to be shared in the table.
insert_lists(Length, Objects) ->
    {T, L} = {ets:new(x, []), lists:seq(1, Length)},
    exit(element(2, catching(fun() -> insert_lists(T, L, Objects) end))).
insert_lists(T, L, Objects) ->
    ets:insert(T, [{{Objects, I}, L} || I <- lists:seq(1, Objects)]),
    insert_lists(T, L, Objects * 2).
counters(L) -> counters([counters:new(1000, []), atomics:new(1000, []) | L]).
heap(L) -> heap([{L, make_ref()} | L]).
sequences(N) -> L = lists:seq(1, N), sequences(2 * length(L)).
mapping(L) -> mapping(lists:map(fun(X) -> X + 1 end, L ++ L)).
merges(M, N) ->
    New = maps:from_keys([{N, K} || K <- lists:seq(1, maps:size(M))], x),
    merges(maps:merge(M, New), N + 1).
from_list(N) -> put(m, maps:from_list([{I, I} || I <- lists:seq(1, N)])), from_list(2 * N).
tuples(L) -> tuples([erlang:make_tuple(50000, L) | L]).
updates(M, L) -> updates(M#{1 => L}, [M, L]).
sorts(L, A) -> sorts(L, [lists:sort(L), lists:usort([length(A) | L]) | A]).
flattening(L) -> lists:flatten([L, L, L, L]), flattening([L | L]).
lookups(T, L) -> lookups(T, [ets:lookup(T, k) | L]).
requests() -> erlang:spawn_request(fun() -> ok end), requests().
peeking(P, L) -> peeking(P, [process_info(P, messages) | L]).
binaries(L) -> binaries([binary:copy(<<1>>, 100000) | L]).
messages(P) -> P ! lists:seq(1, 100), messages(P).
binary_messages(P) -> P ! binary:copy(<<1>>, 100000), binary_messages(P).
region_messages(P) -> P ! lists:seq(1, 10000), region_messages(P).
binary_table(T, N) -> ets:insert(T, {N, binary:copy(<<1>>, 100000)}), binary_table(T, N + 1).
timers() -> erlang:send_after(100000000, self(), lists:seq(1, 100)), timers().
outside(P) -> P ! binary:copy(<<1>>, 100000), outside(P).
counter_table(T, N) ->
    ets:update_counter(T, N, {2, 1}, {N, 0, lists:seq(1, 100)}),
    counter_table(T, N + 1).
table(T, N) -> ets:insert(T, {N, lists:seq(1, 50)}), table(T, N + 1).
forks() ->
    case catching(fun() -> spawn(fun() -> L = lists:seq(1, 1000), idle(), L end) end) of
        {error, system_limit} -> exit(full);
        _ -> forks()
    end.

%% Senders on another node wait, as for a busy connection: one of the same runtime, and one of the
%% installation.
far() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Name = list_to_atom("far" ++ os:getpid()),
    {ok, _} = net_kernel:start(Name, #{name_domain => shortnames}),
    Stock = filename:join([code:root_dir(), "bin", "erl"]),
    [far(O) || O <- [#{}, #{exec => {Stock, []}, env => [{"ERL_AFLAGS", ""}]}]].

%% A process of another node floods a full mailbox, and then sends to a process without a budget.
%% Meanwhile a node of a second connection is called, and processes of this node send each other
%% messages.
far_beside() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("far" ++ os:getpid()), #{name_domain => shortnames}),
    Stock = filename:join([code:root_dir(), "bin", "erl"]),
    [far_beside(O) || O <- [#{}, #{exec => {Stock, []}, env => [{"ERL_AFLAGS", ""}]}]].

far_beside(Options) ->
    Args = ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie",
            atom_to_list(erlang:get_cookie())],
    [{First, Node}, {Second, Other}] = [begin
        {ok, Peer, Name} = peer:start(Options#{name => peer:random_name(), wait_boot => 240000, args => Args}),
        {Peer, Name}
    end || _ <- [1, 2]],
    1 = erpc:call(Other, erlang, abs, [-1]),
    {ok, B} = purlin:budget(#{messages => 10}),
    {P, Me} = {spawn_opt(fun idle/0, [{budget, B}]), self()},
    spawn(Node, fun() -> [P ! N || N <- lists:seq(1, 1000)], Me ! {at, first} end),
    until(fun() -> queued(P) >= 10 end),
    spawn(fun() ->
        [1 = erpc:call(Other, erlang, abs, [-1]) || _ <- lists:seq(1, 20)],
        Me ! {at, second},
        Echo = spawn(fun F() -> receive {From, X} -> From ! X, F() end end),
        [begin Echo ! {self(), N}, receive N -> ok end end || N <- lists:seq(1, 1000)],
        Me ! {at, here}
    end),
    Order = [receive {at, Who} -> Who after 100000 -> late end || _ <- [1, 2, 3]],
    io:format("~p~n", [{arrived, Order}]),
    purlin:end_budget(B),
    [peer:stop(X) || X <- [First, Second]].

%% Ports with output that their programs never read: those of an ended process, and open ones.
ports_with_output() ->
    {ok, B} = purlin:budget(#{ports => 10}),
    Me = self(),
    Opened = fun() ->
        Port = open_port({spawn, "sleep 60 2>/dev/null"}, [binary]),
        true = port_command(Port, binary:copy(<<1>>, 1000000), [nosuspend]),
        Me ! {opened, Port}
    end,
    {_, R} = spawn_opt(Opened, [{budget, B}, monitor]),
    receive {'DOWN', R, _, _, _} -> ok end,
    spawn_opt(fun() -> Opened(), idle() end, [{budget, B}]),
    Ports = [receive {opened, P} -> P end || _ <- [1, 2]],
    Of = fun() -> maps:get(ports, maps:get(use, purlin:budget_info(B))) end,
    Before = Of(),
    ok = purlin:end_budget(B),
    Late = spawn(fun() -> timer:sleep(30000) end),
    until(fun() -> not lists:member(B, purlin:budgets()) orelse not is_process_alive(Late) end),
    io:format("~p~n", [{Before, [erlang:port_info(P, id) || P <- Ports], is_process_alive(Late)}]).

far(Options) ->
    Args = ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie",
            atom_to_list(erlang:get_cookie())],
    {ok, Peer, Node} = peer:start(Options#{name => peer:random_name(), wait_boot => 240000, args => Args}),
    {ok, B} = purlin:budget(#{messages => 100}),
    Me = self(),
    N = 10000,
    P = spawn_opt(fun() -> Me ! {taken, slow(N, [])} end, [{budget, B}]),
    Flood = spawn_monitor(Node, ?MODULE, flood, [P, N, Me]),
    Most = most_queued(P, Flood, 0),
    Busy = receive {busy, Times} -> Times > 0 end,
    Order = receive {taken, Taken} -> Taken =:= lists:seq(1, N) end,
    [Waited | _] = reached(B),
    {ok, D} = purlin:budget(#{messages => 10, over_messages => drop}),
    Q = spawn_opt(fun idle/0, [{budget, D}]),
    {_, R} = spawn_monitor(Node, ?MODULE, flood, [Q, 50, Me]),
    receive {'DOWN', R, _, _, _} -> ok end,
    until(fun() -> queued(Q) =:= 10 end),
    [_, Dropped | _] = reached(D),
    io:format("~p ~p~n", [{Busy, Order, Most =< 300 orelse Most, Waited > 0}, Dropped]),
    [purlin:end_budget(X) || X <- [B, D]],
    peer:stop(Peer).

%% Sends numbered messages in order. Says how often the connection was busy.
flood(P, N, To) ->
    Data = binary:copy(<<1>>, 2000),
    Send = fun(I) ->
        case erlang:send(P, {I, Data}, [nosuspend]) of
            nosuspend -> P ! {I, Data}, 1;
            ok -> 0
        end
    end,
    Busy = lists:sum([Send(I) || I <- lists:seq(1, N)]),
    N > 100 andalso (To ! {busy, Busy}).

slow(0, L) -> lists:reverse(L);
slow(N, L) ->
    N rem 5 =:= 0 andalso timer:sleep(1),
    receive {I, _} -> slow(N - 1, [I | L]) end.

most_queued(P, {_, R} = Flood, Most) ->
    receive {'DOWN', R, _, _, _} -> Most
    after 2 ->
        case process_info(P, message_queue_len) of
            {_, Len} -> most_queued(P, Flood, max(Most, Len));
            undefined -> most_queued(P, Flood, Most)
        end
    end.

%% What the objects of a table have in common is in memory, and on the bill, once.
billed_once(Kind) ->
    {ok, B} = purlin:budget(#{name => billed_once}),
    Me = self(),
    {P, _} = spawn_opt(fun() -> sharing(Kind, Me) end, [{budget, B}, monitor]),
    Bills = [receive {P, Words} -> {Words, billed(B, P)} end || _ <- lists:seq(1, 4)],
    [{_, Empty}, {Words, Full}, {_, Half}, {_, Rest}] = Bills,
    %% 2,000 lists of 2,000 words each.
    io:format("~p ~p~n", [Words * 8 > 32000000 andalso Full - Empty < 2000000,
                          Empty =< Rest andalso Rest < Half andalso Half < Full]).

billed(B, P) ->
    #{use := #{memory := N}} = purlin:budget_info(B),
    P ! go,
    N.

sharing(Kind, To) ->
    T = ets:new(x, [Kind]),
    L = lists:seq(1, 1000),
    Then = fun(F) -> F(), To ! {self(), ets:info(T, memory)}, receive go -> ok end end,
    Then(fun() -> ets:insert(T, {0, L}) end),
    Then(fun() -> [ets:insert(T, {I, L}) || I <- lists:seq(1, 2000)] end),
    Then(fun() -> [ets:delete(T, I) || I <- lists:seq(1, 1000)] end),
    Then(fun() -> ets:match_delete(T, {'_', L}), ets:insert(T, {0, L}) end).

%% A dictionary that would not fit does not grow.
dictionary() ->
    {ok, B} = purlin:budget(#{name => dictionary, memory => 16 bsl 20}),
    {_, R} = spawn_opt(fun() -> exit(element(2, catching(fun() -> entries(0) end))) end,
                       [{budget, B}, monitor]),
    Why = receive {'DOWN', R, _, _, W} -> W end,
    #{peak := #{memory := Peak}} = purlin:budget_info(B),
    io:format("~p~n", [{lists:member(Why, [system_limit, {budget, memory}]),
                        Peak =< 18 bsl 20 orelse Peak}]).

entries(N) -> put(N, {N, N}), entries(N + 1).
