%% Messages of another node stay undecoded until a process looks at them: long ones, and ones that
%% are no valid terms. Their frames are made by hand. @stress @shared @fence @seconds 200
-module(undecoded_remote_messages).
-export([main/0, started/2]).

%% Mandatory ones, monitors, senders, payloads of exits, numbers of unlinks; spawn, large
%% references, aliases.
-define(PASS, 16#34F5FBC bor (16#D bsl 32)).
-define(CACHE, 16#2000).
-define(FRAGMENTS, 16#800000).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Me = list_to_atom("external" ++ os:getpid()),
    {ok, _} = net_kernel:start(Me, #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    register(main, self()),
    process_flag(trap_exit, true),
    net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    Plain = ?PASS band (bnot (?CACHE bor ?FRAGMENTS)),
    asked(Plain),
    received(Plain),
    old_connection(Plain),
    never_looked_at(Plain),
    small_heap(Plain),
    long(Plain),
    fragments(Plain bor ?CACHE bor ?FRAGMENTS),
    cut_off(Plain bor ?CACHE bor ?FRAGMENTS),
    ok = net_kernel:stop(),
    say(stopped, nodes()),
    init:stop().

say(What, Value) ->
    io:format("~p: ~p~n", [What, Value]).

%% Counts the messages of a process that doesn't run, and what they are.
asked(Flags) ->
    S = open(Flags, "bad"),
    P = pid(1),
    R = waiting(fun() -> receive never -> ok end end),
    [bad(S, P, R) || _ <- [1, 2, 3]],
    send(S, {22, P, R}, one),
    bad(S, P, R),
    send(S, {22, P, R}, {two, long_term()}),
    queued(R, 6),
    say(still_up, none()),
    [{message_queue_len, N}, {messages, [one, {two, T}]}] = process_info(R, [message_queue_len, messages]),
    say(asked, {N, T =:= long_term()}),
    say(down, next()),
    say(ended, ended(S)),
    {messages, [one, {two, T}]} = process_info(R, messages),
    exit(R, kill),
    gen_tcp:close(S).

%% They are dropped by who receives.
received(Flags) ->
    S = open(Flags, "bad"),
    P = pid(1),
    Me = self(),
    R = waiting(fun() ->
        Ref = make_ref(),
        self() ! {Ref, mine},
        receive {Ref, M} -> ok end,
        A = receive X1 -> X1 end,
        B = receive X2 -> X2 end,
        C = receive X3 -> X3 after 0 -> nothing end,
        Me ! {self(), [M, A, B, C]}
    end),
    bad(S, P, R),
    send(S, {22, P, R}, one),
    bad(S, P, R),
    bad(S, P, R),
    send(S, {22, P, R}, two),
    bad(S, P, R),
    queued(R, 6),
    say(still_up, none()),
    go(R),
    say(received, receive {R, All} -> All after 5000 -> timeout end),
    say(down, next()),
    say(ended, ended(S)),
    gen_tcp:close(S).

%% A newer connection to that node has nothing to do with it.
old_connection(Flags) ->
    S = open(Flags, "twice"),
    Me = self(),
    R = waiting(fun() -> Me ! {self(), receive X -> X after 300 -> nothing end}, receive Y -> Me ! {self(), Y} end end),
    bad(S, pid(1), R),
    queued(R, 1),
    gen_tcp:close(S),
    say(down, next()),
    T = open(Flags, "twice"),
    queued(R, 1),
    go(R),
    say(received, next() =:= {R, nothing}),
    send(T, {22, pid(1), R}, over_the_new_one),
    say(received, next() =:= {R, over_the_new_one}),
    say(still_up, none()),
    gen_tcp:close(T),
    say(down, next()).

%% A process ends with them.
never_looked_at(Flags) ->
    S = open(Flags, "ends"),
    P = pid(1),
    Before = erlang:memory(binary),
    R = waiting(fun() -> ok end),
    Big = binary:copy(<<"large">>, 400000),
    [send(S, {22, P, R}, {I, Big}) || I <- lists:seq(1, 5)],
    bad(S, P, R),
    queued(R, 6),
    M = monitor(process, R),
    exit(R, kill),
    receive {'DOWN', M, _, _, Why} -> say(ended, Why) end,
    send(S, {22, P, self()}, still_there),
    say(received, next()),
    say(given_back, less_than(Before + 3000000, 500)),
    gen_tcp:close(S),
    say(down, next()).

%% Binaries that wait don't count as heap.
small_heap(Flags) ->
    S = open(Flags, "small"),
    Me = self(),
    Gate = atomics:new(1, []),
    R = spawn_opt(fun() ->
        gate(Gate),
        erlang:garbage_collect(),
        Me ! {self(), [byte_size(B) || _ <- [1, 2, 3], {_, B} <- [receive M -> M end]]}
    end, [{max_heap_size, #{size => 100000, kill => true, error_logger => false}}]),
    Big = binary:copy(<<"large">>, 400000),
    [send(S, {22, pid(1), R}, {I, Big}) || I <- lists:seq(1, 3)],
    queued(R, 3),
    atomics:put(Gate, 1, 1),
    say(small_heap, receive {R, Sizes} -> Sizes after 5000 -> timeout end),
    gen_tcp:close(S),
    say(down, next()).

less_than(_, 0) -> erlang:memory(binary);
less_than(N, Times) ->
    erlang:garbage_collect(),
    case erlang:memory(binary) < N of
        true -> true;
        false -> receive after 10 -> less_than(N, Times - 1) end
    end.

%% Long ones, which are decoded in several turns: in their order, by aliases, with a token, told to
%% a tracer, as arguments.
long(Flags) ->
    S = open(Flags, "long"),
    P = pid(1),
    Me = self(),
    Long = long_term(),
    send(S, {22, P, self()}, {1, Long}),
    send(S, {22, P, self()}, small),
    send(S, {22, P, self()}, {2, Long}),
    send(S, {22, P, self()}, {3, Long}),
    say(small, receive small -> first after 5000 -> timeout end),
    say(third, receive {3, L3} -> L3 =:= Long after 5000 -> timeout end),
    Ref = make_ref(),
    Other = spawn_link(fun() -> receive {Ref, From} -> From ! {Ref, answer} end end),
    Other ! {Ref, self()},
    say(answer, receive {Ref, A0} -> A0 after 5000 -> timeout end),
    receive {'EXIT', Other, normal} -> ok end,
    say(first, receive {N1, L1} -> {N1, L1 =:= Long} after 5000 -> timeout end),
    say(second, receive {N2, L2} -> {N2, L2 =:= Long} after 5000 -> timeout end),
    %% By aliases.
    A = alias([reply]),
    send(S, {33, P, A}, {by_alias, Long}),
    send(S, {33, P, A}, {again, Long}),
    send(S, {22, P, self()}, behind),
    say(alias, receive {by_alias, L4} -> L4 =:= Long after 5000 -> timeout end),
    say(no_more, next()),
    %% With a token: of those who want what is received to be told.
    Teller = spawn_link(fun() -> tell(Me) end),
    seq_trace:set_system_tracer(Teller),
    Token = {3, 17, 5, P, 0},
    send(S, {23, P, self(), Token}, {with_token, Long}),
    With = receive {with_token, L5} -> {L5 =:= Long, seq_trace:get_token(label)} after 5000 -> timeout end,
    seq_trace:set_token([]),
    say(token, With),
    say(told, receive {seq, 17, {'receive', {_, _}, _, _, {with_token, L6}}} -> L6 =:= Long after 5000 -> timeout end),
    seq_trace:set_system_tracer(false),
    %% To a tracer.
    W = spawn_link(fun Wait() -> receive {stop, _} -> ok; stop -> ok after 100000 -> Wait() end end),
    erlang:trace(W, true, ['receive']),
    send(S, {22, P, W}, {stop, Long}),
    say(traced, receive {trace, W, 'receive', {stop, L7}} -> L7 =:= Long after 5000 -> timeout end),
    receive {'EXIT', W, normal} -> ok end,
    %% Sleepers.
    H = spawn_link(fun() -> proc_lib:hibernate(?MODULE, started, [Me, hibernated]) end),
    send(S, {22, P, H}, {wake, Long}),
    say(hibernated, receive {started, hibernated, Got} -> Got =:= {wake, Long} after 5000 -> timeout end),
    receive {'EXIT', H, normal} -> ok end,
    %% Arguments of a process.
    send(S, {29, ref(20), P, P, {?MODULE, started, 2}, []}, [Me, {arguments, Long}]),
    say(started, receive {started, {arguments, L8}, nothing} -> L8 =:= Long after 5000 -> timeout end),
    %% Processes that are asked for their messages, and end, in the midst of one.
    Killed = [begin
        {K, KM} = spawn_monitor(fun Loop() -> receive _ -> Loop() end end),
        [send(S, {22, P, K}, {I, Long}) || I <- lists:seq(1, 4)],
        send(S, {22, P, self()}, {sent, N}),
        receive {sent, N} -> ok end,
        {messages, Ms} = process_info(K, messages),
        true = lists:all(fun({_, T}) -> T =:= Long end, Ms),
        exit(K, kill),
        receive {'DOWN', KM, process, K, Why} -> Why end
    end || N <- [1, 2, 3, 4, 5]],
    say(killed, lists:usort(Killed)),
    gen_tcp:close(S),
    say(down, next()).

started(To, What) ->
    To ! {started, What, receive M -> M after 0 -> nothing end}.

tell(To) ->
    receive
        {seq_trace, Label, {'receive', _, _, _, {with_token, _}} = What} -> To ! {seq, Label, What}, tell(To);
        _ -> tell(To)
    end.

%% A large binary in fragments: it may be a part of what came.
fragments(Flags) ->
    S = open(Flags, "frags"),
    Control = [<<104, 3, 97, 22>>, ext(pid(1)), ext(self())],
    Data = binary:copy(<<"0123456789abcdef">>, 12500),
    <<131, M/binary>> = term_to_binary({large, Data, [tail]}),
    <<M1:60000/binary, M2:60000/binary, M3:60000/binary, M4/binary>> = M,
    packet(S, [<<131, 69, 7:64, 4:64, 0>>, Control, M1]),
    packet(S, [<<131, 70, 7:64, 3:64>>, M2]),
    packet(S, [<<131, 70, 7:64, 2:64>>, M3]),
    packet(S, [<<131, 70, 7:64, 1:64>>, M4]),
    {large, B, [tail]} = next(),
    say(same, B =:= Data),
    <<Front:100000/binary, Rest/binary>> = B,
    Longer = <<B/binary, "more">>,
    erlang:garbage_collect(),
    say(parts, [byte_size(Front), byte_size(Rest), byte_size(Longer), erlang:md5([Front, Rest]) =:= erlang:md5(Data)]),
    Keeper = spawn_link(fun() -> receive {From, X} -> erlang:garbage_collect(), From ! {self(), erlang:md5(X)} end end),
    Keeper ! {self(), Rest},
    say(kept, receive {Keeper, D} -> D =:= erlang:md5(binary:part(Data, 100000, 100000)) end),
    receive {'EXIT', Keeper, normal} -> ok end,
    %% What is no term is told with the atoms of its header, and dropped.
    packet(S, [<<131, 68, 1, 16#0F, 255, 3, "one">>, Control, <<104, 2, 82, 0, 82, 1>>]),
    say(nothing, none_but_down()),
    say(ended, ended(S)),
    gen_tcp:close(S).

%% A node ends in the midst of messages in fragments: what had come of them is given back.
cut_off(Flags) ->
    S = open(Flags, "cut"),
    Before = erlang:memory(binary),
    Control = [<<104, 3, 97, 22>>, ext(pid(1)), ext(self())],
    Part = binary:copy(<<109>>, 60000),
    [packet(S, [<<131, 69, I:64, 100:64, 0>>, Control, Part]) || I <- lists:seq(1, 50)],
    [packet(S, [<<131, 70, I:64, 99:64>>, Part]) || I <- lists:seq(1, 50)],
    packet(S, [<<131, 68, 0>>, Control, <<97, 5>>]),
    say(between, next()),
    say(held, erlang:memory(binary) > Before + 5000000),
    gen_tcp:close(S),
    say(down, next()),
    say(given_back, less_than(Before + 3000000, 500)).

none_but_down() ->
    receive {nodedown, _, #{nodedown_reason := R}} -> R; M -> M after 5000 -> timeout end.

%% More than is decoded where it comes in.
long_term() ->
    {lists:seq(1, 1500), [<<I:32>> || I <- lists:seq(1, 300)], #{a => [1.5, -7, 1 bsl 70], "b" => self()},
     maps:from_list([{I, {I}} || I <- lists:seq(1, 60)]), binary:copy(<<"long">>, 100), fun erlang:self/0}.

%% A process that doesn't look at its messages before it is told to go on.
waiting(F) ->
    Gate = atomics:new(1, []),
    P = spawn(fun() -> gate(Gate), F() end),
    put({gate, P}, Gate),
    P.

%% A wait without patterns looks at no message.
gate(Gate) ->
    case atomics:get(Gate, 1) of
        1 -> ok;
        0 -> receive after 5 -> gate(Gate) end
    end.

go(P) -> atomics:put(erase({gate, P}), 1, 1).

queued(R, N) -> queued(R, N, 500).
queued(R, N, 0) -> say({not_queued, N}, process_info(R, message_queue_len));
queued(R, N, Times) ->
    case process_info(R, message_queue_len) of
        {message_queue_len, N} -> ok;
        _ -> receive after 10 -> queued(R, N, Times - 1) end
    end.

%% Of a tag that there isn't.
bad(S, From, To) -> packet(S, [control({22, From, To}), <<131, 255, 1>>]).

next() -> receive {nodedown, _, #{nodedown_reason := R}} -> {nodedown, R}; M -> M after 5000 -> timeout end.
none() -> receive M -> M after 200 -> none end.

%% Whether the other side closes the connection.
ended(S) ->
    case gen_tcp:recv(S, 0, 5000) of
        {error, closed} -> closed;
        {error, timeout} -> open;
        {error, E} -> E;
        {ok, _} -> ended(S)
    end.

%% The handshake, as the node that asks for the connection.

node_name(Name) ->
    [_, Host] = string:split(atom_to_list(node()), "@"),
    list_to_atom(Name ++ "@" ++ Host).

open(Flags, Name) ->
    Node = atom_to_list(node_name(Name)),
    put(evil, node_name(Name)),
    [Short, Host] = string:split(atom_to_list(node()), "@"),
    {port, Port, _} = erl_epmd:port_please(Short, Host),
    {ok, S} = gen_tcp:connect(Host, Port, [{active, false}, binary, {packet, 2}]),
    ok = gen_tcp:send(S, <<$N, Flags:64, 77:32, (length(Node)):16, (list_to_binary(Node))/binary>>),
    {ok, <<"sok">>} = gen_tcp:recv(S, 0, 5000),
    {ok, <<$N, _:64, Challenge:32, _:32, _/binary>>} = gen_tcp:recv(S, 0, 5000),
    Digest = fun(C) -> erlang:md5(["biscuit", integer_to_list(C)]) end,
    ok = gen_tcp:send(S, <<$r, 4711:32, (Digest(Challenge))/binary>>),
    {ok, <<$a, Ack:16/binary>>} = gen_tcp:recv(S, 0, 5000),
    Ack = Digest(4711),
    inet:setopts(S, [{packet, 4}]),
    receive {nodeup, _, _} -> ok after 5000 -> say(no, nodeup) end,
    S.

packet(S, F) -> _ = gen_tcp:send(S, F).
control(T) -> <<112, (term_to_binary(T))/binary>>.
send(S, T, Msg) -> packet(S, [control(T), term_to_binary(Msg)]).

%% Things of the other node.
atom(A) -> B = atom_to_binary(A), <<119, (byte_size(B)), B/binary>>.
pid(N) -> binary_to_term(<<131, 88, (atom(get(evil)))/binary, N:32, 0:32, 77:32>>).
ref(N) -> binary_to_term(<<131, 90, 3:16, (atom(get(evil)))/binary, 77:32, N:32, 0:32, 0:32>>).
ext_v(T) -> term_to_binary(T, [{minor_version, 2}]).
ext(T) -> <<131, B/binary>> = ext_v(T), B.
