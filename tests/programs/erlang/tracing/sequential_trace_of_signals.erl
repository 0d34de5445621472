%% Checks sequential trace tokens with exit signals, monitors, ports and spawned processes.
%% @stress @shared
-module(sequential_trace_of_signals).
-export([main/0]).

main() ->
    Me = self(),
    T = spawn(fun() -> collect() end),
    process_flag(trap_exit, true),
    seq_trace:set_system_tracer(T),
    %% A linked process that has a token ends.
    P1 = spawn_link(fun() -> receive {go, R} -> exit(R) end end),
    token(17),
    P1 ! {go, bye},
    clear(),
    receive {'EXIT', P1, bye} -> ok end,
    show(seq_trace:get_token()),
    clear(),
    flush(T, "link exit", 4),
    %% One that has none takes the token away; so does exit/2.
    P2 = spawn_link(fun() -> receive go -> exit(bye) end end),
    P2 ! go,
    token(18),
    receive {'EXIT', P2, bye} -> ok end,
    show(seq_trace:get_token()),
    token(19),
    exit(Me, reason),
    receive {'EXIT', Me, reason} -> ok end,
    show(seq_trace:get_token()),
    flush(T, "no token", 0),
    %% What a monitor says: with a reason that is an atom the token stays.
    P3 = spawn(fun() -> receive go -> exit(bye) end end),
    M3 = monitor(process, P3),
    P3 ! go,
    token(20),
    receive {'DOWN', M3, _, _, bye} -> ok end,
    show(is_list(seq_trace:get_token())),
    show(seq_trace:get_token(label)),
    clear(),
    P4 = spawn(fun() -> receive go -> exit({bye, 4}) end end),
    M4 = monitor(process, P4),
    P4 ! go,
    token(21),
    receive {'DOWN', M4, _, _, {bye, 4}} -> ok end,
    show(seq_trace:get_token(label)),
    clear(),
    flush(T, "monitors", 0),
    %% A port.
    Port = open_port({spawn, "cat"}, [binary]),
    token(22),
    Port ! {Me, {command, "line"}},
    receive {Port, {data, D}} -> show(D) end,
    show(seq_trace:get_token(label)),
    port_command(Port, "more"),
    receive {Port, {data, D2}} -> show(D2) end,
    Port ! {Me, close},
    receive {Port, closed} -> ok end,
    show(seq_trace:get_token(label)),
    receive {'EXIT', Port, normal} -> ok end,
    show(seq_trace:get_token(label)),
    clear(),
    flush(T, "port", 2),
    %% Three in a row, linked.
    P5 = spawn(fun() ->
        process_flag(trap_exit, true),
        Q = spawn_link(fun() -> receive go -> exit(in_a_row) end end),
        Me ! {q, Q},
        receive {'EXIT', Q, R} -> exit({q_ended, R}) end
    end),
    link(P5),
    Q5 = receive {q, Q0} -> Q0 end,
    token(23),
    Q5 ! go,
    clear(),
    receive {'EXIT', P5, {q_ended, in_a_row}} -> ok end,
    show(seq_trace:get_token(label)),
    clear(),
    flush(T, "in a row", 6),
    %% Spawning in other ways.
    token(25),
    {P8, M8} = spawn_monitor(lists, seq, [1, 3]),
    clear(),
    receive {'DOWN', M8, _, P8, normal} -> ok end,
    flush(T, "spawn_monitor", 4),
    token(26),
    P9 = spawn(lists, seq, [1, 3]),
    clear(),
    show(is_pid(P9)),
    flush(T, "spawn", 4),
    token(27),
    R10 = spawn_request(fun() -> receive stop -> ok end end, [link, {reply_tag, made}]),
    clear(),
    P10 = receive {made, R10, ok, Pid10} -> Pid10 end,
    show(seq_trace:get_token(label)),
    clear(),
    unlink(P10),
    P10 ! stop,
    flush(T, "spawn_request", 4),
    %% A process that doesn't trap exits hears of nothing; neither does its token.
    P6 = spawn(fun() -> link(Me), receive go -> exit(normal) end end),
    P7 = spawn(fun() -> link(P6), Me ! linked, receive stop -> exit(done) end end),
    receive linked -> ok end,
    token(24),
    P6 ! go,
    clear(),
    receive {'EXIT', P6, normal} -> ok end,
    clear(),
    P7 ! stop,
    flush(T, "not trapping", 5).

token(Label) ->
    seq_trace:set_token(label, Label),
    seq_trace:set_token(serial, {0, 0}),
    [seq_trace:set_token(F, true) || F <- [send, 'receive', print]].

clear() -> seq_trace:set_token([]).

%% Shows what the tracer has got, when it has got that much.
flush(T, What, N) ->
    case process_info(T, message_queue_len) of
        {message_queue_len, K} when K < N -> timer:sleep(2), flush(T, What, N);
        _ -> flush(T, What)
    end.

flush(T, What) ->
    T ! {take, self()},
    receive {taken, All0} -> ok end,
    %% In which order links are told is not said.
    All = case What of
        "not trapping" -> lists:sort([setelement(3, E, unnumbered(element(3, E))) || E <- All0]);
        %% Stock has a wrapper of its own called.
        "spawn_request" -> [E || E <- All0, element(1, element(5, element(3, E))) =/= spawn_request];
        _ -> All0
    end,
    io:format("~s:~n", [What]),
    [io:format("  ~0p~n", [X]) || X <- lists:reverse(case erase(shown) of undefined -> []; S -> S end)],
    [io:format("  ~0p~n", [E]) || E <- All],
    ok.

unnumbered(T) -> setelement(2, T, number).

collect() ->
    receive {take, From} -> From ! {taken, all()} end,
    collect().

all() ->
    receive E -> [E | all()] after 0 -> [] end.

%% Printed later: what is written while there is a token is traced itself.
show(T) -> put(shown, [T | case get(shown) of undefined -> []; S -> S end]).
