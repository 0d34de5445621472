%% An alias ends. A message to it that is still in transit is dropped; one in the mailbox stays.
%% Checks which operations take signals over, for each way to end an alias. It does not run under
%% stress, where a process yields anywhere and takes its signals over when it is scheduled in.
-module(aliases_ended_before_their_messages).
-export([main/0]).

main() ->
    [io:format("~0p ~0p: ~0p~n", [O, N, alone(fun() -> ended(O, F) end)]) || O <- [[], [explicit_unalias], [reply]], {N, F} <- between()],
    [io:format("monitor ~0p ~0p: ~0p~n", [O, N, alone(fun() -> monitored(O, F) end)]) ||
        O <- [explicit_unalias, demonitor, reply_demonitor], {N, F} <- between()],
    [io:format("down ~0p: ~0p~n", [O, alone(fun() -> down(O) end)]) || O <- [explicit_unalias, demonitor, reply_demonitor]],
    [io:format("traced ~0p: ~0p~n", [O, traced(O)]) || O <- [[], [reply]]],
    io:format("port: ~0p~n", [alone(fun closed_port/0)]),
    ok.

%% What happens between the messages and the end of the alias.
between() ->
    [{nothing, fun() -> ok end},
     {'receive', fun() -> receive nothing -> ok after 0 -> ok end end},
     {receive_of_nothing, fun() -> receive after 0 -> ok end end},
     {yield, fun() -> erlang:yield() end},
     {process_info, fun() -> process_info(self(), links) end},
     {message_queue_len, fun() -> process_info(self(), message_queue_len) end},
     {trap_exit, fun() -> process_flag(trap_exit, true) end},
     {sensitive, fun() -> process_flag(sensitive, true), lists:reverse([1]), lists:sort([2, 1]), process_flag(sensitive, false) end},
     {send, fun() -> self() ! hello end},
     {spawn, fun() -> spawn(fun() -> ok end) end},
     {monitor, fun() -> demonitor(monitor(process, self())) end},
     {timer, fun() -> erlang:cancel_timer(erlang:start_timer(60000, self(), x)) end},
     {exit, fun() -> exit(whereis(init), normal) end}].

alone(F) ->
    {P, R} = spawn_monitor(fun() -> erlang:yield(), exit({F()}) end),
    receive {'DOWN', R, process, P, {X}} -> X; {'DOWN', R, process, P, X} -> {failed, X} end.

ended(O, F) ->
    A = alias(O),
    A ! 1, A ! 2,
    F(),
    Was = unalias(A),
    A ! 3,
    {Was, flush()}.

monitored(O, F) ->
    P = spawn(fun() -> receive stop -> ok end end),
    A = monitor(process, P, [{alias, O}]),
    A ! 1, A ! 2,
    F(),
    D = demonitor(A, [info]),
    A ! 3,
    U = unalias(A),
    A ! 4,
    exit(P, kill),
    {D, U, flush()}.

down(O) ->
    P = spawn(fun() -> receive stop -> ok end end),
    A = monitor(process, P, [{alias, O}]),
    R = monitor(process, P),
    exit(P, kill),
    receive {'DOWN', R, process, P, killed} -> ok end,
    A ! 1,
    U = unalias(A),
    {U, [case M of {'DOWN', _, _, _, _} -> down; _ -> M end || M <- flush()]}.

traced(O) ->
    P = spawn(fun() ->
        receive go -> ok end,
        A = alias(O), A ! 1, A ! 2, unalias(A), A ! 3,
        B = alias(O), B ! 4, process_info(self(), links), unalias(B), B ! 5,
        receive stop -> ok end
    end),
    erlang:trace(P, true, ['receive']),
    P ! go,
    timer:sleep(20),
    P ! stop,
    R = monitor(process, P),
    receive {'DOWN', R, process, P, _} -> ok end,
    D = erlang:trace_delivered(P),
    receive {trace_delivered, P, D} -> ok end,
    [M || {trace, _, 'receive', M} <- flush(), M =/= timeout].

%% The answer of a port comes after the signals that it sent before.
closed_port() ->
    process_flag(trap_exit, true),
    P = open_port({spawn, "cat"}, []),
    port_close(P),
    process_flag(trap_exit, false),
    [case M of {'EXIT', P, Why} -> {exit, Why} end || M <- flush()].

flush() -> receive hello -> flush(); M -> [M | flush()] after 0 -> [] end.
