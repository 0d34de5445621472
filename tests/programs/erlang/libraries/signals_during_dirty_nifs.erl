%% Signals reach processes that run a dirty function of a library, and are handled at once.
%% @nif lent @stress @shared @fence @seconds 120
-module(signals_during_dirty_nifs).
-export([main/0, work/3, work_io/3, idle/2, ends/0, held/2]).

work(_, _, _) -> erlang:nif_error(stub).
work_io(_, _, _) -> erlang:nif_error(stub).
idle(_, _) -> erlang:nif_error(stub).
ends() -> erlang:nif_error(stub).

show(What, F) ->
    R = try F() catch C:E -> {C, E} end,
    io:format("~0p: ~0p~n", [What, R]).

main() ->
    ok = erlang:load_nif("../ebin/lent", 0),
    process_flag(trap_exit, true),
    one_by_one(),
    ends_at_once(),
    many(),
    code().

%% A process that is in a function which asks for nothing, for so long, and what it has then.
idler(Ms) ->
    Me = self(),
    P = spawn(fun() -> put(key, value), Me ! {begins, self()}, R = idle(Ms, [a, "list"]), held(Me, R) end),
    receive {begins, P} -> P end,
    in_call(P, 1000).

in_call(P, N) ->
    case process_info(P, current_function) of
        {_, {?MODULE, idle, 2}} -> P;
        _ when N > 0 -> timer:sleep(1), in_call(P, N - 1)
    end.

held(Me, R) ->
    {messages, L} = process_info(self(), messages),
    Me ! {done, self(), R, length(L)},
    receive stop -> ok after 100 -> ok end.

%% All of these are over long before the function is.
one_by_one() ->
    P = idler(3000),
    T0 = erlang:monotonic_time(millisecond),
    show(info, fun() -> process_info(P, [status, links, dictionary, message_queue_len, trap_exit, registered_name]) end),
    show(link, fun() -> link(P), {links, L} = process_info(P, links), M = lists:member(self(), L), unlink(P), {M, process_info(P, links)} end),
    show(monitors, fun() -> R = monitor(process, P), {monitored_by, L} = process_info(P, monitored_by), demonitor(R), {lists:member(self(), L), process_info(P, monitored_by)} end),
    show(messages, fun() -> [P ! {I, "text"} || I <- [1, 2, 3]], process_info(P, messages) end),
    show(leader, fun() -> group_leader(whereis(init), P), process_info(P, group_leader) =:= {group_leader, whereis(init)} end),
    show(register, fun() -> register(idle_one, P), R = process_info(P, registered_name), unregister(idle_one), R end),
    show(trapped, fun() -> exit(P, normal), is_process_alive(P) end),
    show(check, fun() -> erlang:check_process_code(P, lists) end),
    T1 = erlang:monotonic_time(millisecond),
    show(in_time, fun() -> T1 - T0 < 2500 end),
    show(done, fun() -> receive {done, P, R, N} -> {R, N} end end),
    %% Who wants it collected waits for the end of the call.
    Q = idler(100),
    show(collect, fun() -> {erlang:garbage_collect(Q), receive {done, Q, R, N} -> {R, N} end} end).

%% It is gone for all others at once.
ends_at_once() ->
    P = idler(2000),
    register(idle_one, P),
    T0 = erlang:monotonic_time(millisecond),
    R = monitor(process, P),
    link(P),
    exit(P, kill),
    show(down, fun() -> receive {'DOWN', R, _, P, W} -> W end end),
    show(exit, fun() -> receive {'EXIT', P, W} -> W end end),
    show(gone, fun() -> {is_process_alive(P), whereis(idle_one), process_info(P), lists:member(P, processes())} end),
    Q = idler(2000),
    show(linked, fun() -> exit(Q, because), S = monitor(process, Q), receive {'DOWN', S, _, Q, W} -> W end end),
    T1 = erlang:monotonic_time(millisecond),
    show(in_time, fun() -> T1 - T0 < 1500 end).

%% Workers that ask for much, and others that ask for all kinds of things of them, or end them.
many() ->
    Me = self(),
    Work = fun(I) -> case I rem 2 of 0 -> work(60, 200, Me); 1 -> work_io(60, 200, none) end end,
    Ps = [{I, spawn_monitor(fun() -> Me ! {result, self(), Work(I)} end)} || I <- lists:seq(1, 40)],
    Asker = spawn_link(fun() -> ask([P || {_, {P, _}} <- Ps], 300) end),
    timer:sleep(30),
    [exit(P, kill) || {I, {P, _}} <- Ps, I rem 5 =:= 0],
    Ends = [{I, receive {'DOWN', M, _, P, W} -> W end} || {I, {P, M}} <- Ps],
    Asker ! stop,
    receive {'EXIT', Asker, normal} -> ok end,
    %% One that had come to its end before it was killed has ended normally.
    show(ended, fun() -> lists:usort([{I rem 5 =:= 0 andalso W =:= killed, W} || {I, W} <- Ends, I rem 5 =/= 0 orelse W =/= normal]) end),
    Results = fun F() -> receive {result, P, N} -> [{P, N} | F()] after 0 -> [] end end(),
    Normal = [P || {I, {P, _}} <- Ps, {I, normal} =:= lists:keyfind(I, 1, Ends)],
    show(results, fun() -> {lists:usort([N || {_, N} <- Results]), Normal -- [P || {P, _} <- Results]} end),
    Sent = fun F() -> receive {P, I} when is_pid(P), is_integer(I) -> [{P, I} | F()] after 0 -> [] end end(),
    show(in_order, fun() -> [] =:= [P || {_, {P, _}} <- Ps, L <- [[I || {Q, I} <- Sent, Q =:= P]], L =/= lists:seq(0, length(L) - 1)] end),
    %% What they made ends, that of the killed too.
    show(resources, fun() -> all_end(1000) end).

all_end(N) ->
    erlang:garbage_collect(),
    case ends() >= 60 * 32 of
        true -> true;
        false when N > 0 -> timer:sleep(10), all_end(N - 1);
        false -> ends()
    end.

ask(_, 0) -> receive stop -> ok end;
ask(Ps, N) ->
    [case I rem 7 of
        0 -> process_info(P);
        1 -> process_info(P, [messages, dictionary, memory]);
        2 -> P ! {some, lists:seq(1, 20)};
        3 -> R = monitor(process, P), demonitor(R, [flush]);
        4 -> process_flag(trap_exit, true), catch link(P), unlink(P);
        5 -> erlang:garbage_collect(P, [{async, I}]);
        6 -> catch register(worker, P), catch unregister(worker)
     end || {I, P} <- lists:zip(lists:seq(1, length(Ps)), Ps)],
    receive stop -> ok after 1 -> ask(Ps, max(0, N - 1)) end.

%% Old code in which such a process is goes at once, and the process with it.
code() ->
    {ok, n_lent_code, Bin} = compile:forms([{attribute, 1, module, n_lent_code}, {attribute, 1, export, [{call, 1}]},
        {function, 1, call, 1, [{clause, 1, [{var, 1, 'F'}], [], [{call, 1, {var, 1, 'F'}, [{string, 1, "a literal"}]}, {atom, 1, after_it}]}]}], []),
    {module, n_lent_code} = code:load_binary(n_lent_code, "none", Bin),
    Me = self(),
    T0 = erlang:monotonic_time(millisecond),
    {P, M} = spawn_monitor(fun() -> n_lent_code:call(fun(L) -> Me ! begins, idle(2000, L) end) end),
    receive begins -> in_call(P, 1000) end,
    {module, n_lent_code} = code:load_binary(n_lent_code, "none", Bin),
    show(soft, fun() -> {code:soft_purge(n_lent_code), is_process_alive(P)} end),
    show(purge, fun() -> {code:purge(n_lent_code), receive {'DOWN', M, _, P, W} -> W end} end),
    T1 = erlang:monotonic_time(millisecond),
    show(in_time, fun() -> T1 - T0 < 1500 end),
    timer:sleep(200).
