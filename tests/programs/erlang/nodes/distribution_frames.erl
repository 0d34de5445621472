%% Another node sends hand-made frames. Checks the effects and replies of valid ones, with and
%% without atom cache and fragments, and of those that close the connection.
%% @stress @shared @fence @seconds 200
-module(distribution_frames).
-export([main/0]).

%% Mandatory ones, monitors, senders, payloads of exits, numbers of unlinks; spawn, large
%% references, aliases.
-define(PASS, 16#34F5FBC bor (16#D bsl 32)).
-define(CACHE, 16#2000).
-define(FRAGMENTS, 16#800000).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Me = list_to_atom("frames" ++ os:getpid()),
    {ok, _} = net_kernel:start(Me, #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    register(main, self()),
    process_flag(trap_exit, true),
    net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    Plain = ?PASS band (bnot (?CACHE bor ?FRAGMENTS)),
    both_ways(Plain),
    bad(Plain),
    headers(Plain bor ?CACHE),
    fragments(Plain bor ?CACHE bor ?FRAGMENTS),
    slow(Plain),
    ok = net_kernel:stop(),
    say(stopped, [node(), nodes()]),
    init:stop().

say(What, Value) ->
    io:format("~p: ~p~n", [What, Value]).

%% Messages that another node sends, and its answers.
both_ways(Flags) ->
    S = open(Flags, "evil"),
    P = pid(1),
    send(S, {22, P, self()}, hello),
    say(sent, next()),
    send(S, {6, P, '', main}, {by, name}),
    say(named, next()),
    send(S, {6, P, '', nobody_there}, lost),
    A = alias(),
    send(S, {33, P, reference(A)}, by_alias),
    say(alias, next()),
    unalias(A),
    send(S, {33, P, reference(A)}, too_late),
    %% Links.
    L = spawn_link(fun looper/0),
    ctrl(S, {1, P, L}),
    ctrl(S, {1, P, pid_of_old_life()}),
    say(linked, [is_linked(L, P), answer(S)]),
    ctrl(S, {35, 7, P, L}),
    say(unlinked, [answer(S), is_linked(L, P)]),
    ctrl(S, {1, P, L}),
    send(S, {24, P, L}, {why, [1, 2, 3]}),
    say(link_broke, down(L)),
    Dead = spawn(fun() -> ok end),
    wait_dead(Dead),
    ctrl(S, {1, P, Dead}),
    say(link_of_dead, answer(S)),
    %% Monitors.
    W = spawn(fun looper/0),
    R = ref(5),
    ctrl(S, {19, P, W, R}),
    say(monitored, {ok, [P]} =:= {ok, monitored_by(W)}),
    exit(W, {gone, #{a => 1}}),
    say(down, answer(S)),
    ctrl(S, {19, P, nobody_there, ref(6)}),
    say(down, answer(S)),
    V = spawn(fun looper/0),
    ctrl(S, {19, P, V, ref(7)}),
    ctrl(S, {20, P, V, ref(7)}),
    say(demonitored, monitored_by(V)),
    %% Exit signals.
    send(S, {26, P, V}, kill),
    say(killed, gone(V)),
    send(S, {26, P, self()}, told),
    say(exit, next()),
    %% What this side asks for.
    M = monitor(process, P),
    say(asks, answer(S)),
    ctrl(S, {28, P, self(), reference(M)}, why_not),
    say(told, next()),
    link(P),
    say(asks, answer(S)),
    unlink(P),
    {Unlink, Id} = case get_answer(S) of {35, Number, _, _} -> {unlink, Number}; O -> {O, 0} end,
    send(S, {24, P, self()}, crossed),
    ctrl(S, {36, Id, P, self()}),
    say(Unlink, none()),
    Q = spawn_request(node_name("evil"), m, f, [1, 2], [{reply_tag, here}, link]),
    say(asks, answer(S)),
    ctrl(S, {31, reference(Q), self(), 1, pid(9)}),
    say(spawned, next()),
    say(linked, is_linked(self(), pid(9))),
    send(S, {24, pid(9), self()}, over),
    say(exit, next()),
    %% What it asks for.
    ctrl(S, {29, ref(20), P, P, {erlang, send, 2}, [link, monitor]}, [self(), started]),
    Answer = get_answer(S),
    say(spawn, erlang:delete_element(5, Answer)),
    say(spawn, lists:sort([next(), erlang:delete_element(2, get_answer(S)), erlang:delete_element(2, get_answer(S))])),
    ctrl(S, {29, ref(21), P, P, {erlang, send, 2}, [{no, such}]}, [self(), started]),
    say(spawn, answer(S)),
    Member = spawn(fun looper/0),
    ctrl(S, {7, P, Member}),
    say(leader, wait_leader(P, Member, 100)),
    %% Ties end with the connection.
    link(P),
    M2 = monitor(process, {x, node_name("evil")}),
    erlang:monitor_node(node_name("evil"), true),
    gen_tcp:close(S),
    say(lost, lists:sort([case N1 of {'DOWN', M2, A1, B1, C1} -> {'DOWN', A1, B1, C1}; _ -> N1 end || N1 <- [next(), next(), next(), next()]])).

looper() -> receive stop -> ok end.

is_linked(A, B) ->
    {links, L} = process_info(A, links),
    case lists:member(B, L) of
        true -> true;
        false -> receive after 50 -> {links, K} = process_info(A, links), lists:member(B, K) end
    end.
monitored_by(W) ->
    receive after 100 -> ok end,
    element(2, process_info(W, monitored_by)).
wait_dead(P) -> case is_process_alive(P) of true -> erlang:yield(), wait_dead(P); false -> ok end.
gone(P) ->
    R = monitor(process, P),
    receive {'DOWN', R, _, _, _} -> ok after 3000 -> timeout end.
down(P) -> receive {'EXIT', P, R} -> R after 3000 -> timeout end.
next() -> receive M -> M after 3000 -> timeout end.
none() -> receive M -> M after 200 -> none end.
wait_leader(_, _, 0) -> too_late;
wait_leader(P, Member, N) ->
    case process_info(Member, group_leader) of
        {group_leader, P} -> ok;
        _ -> receive after 20 -> wait_leader(P, Member, N - 1) end
    end.

%% Frames that end the connection, and that the node outlives.
bad(Flags) ->
    P = pid(1),
    Other = <<131, 88, 119, 3, "a@b", 0:32, 0:32, 1:32>>,
    Frames = [{garbage, <<112, 1, 2, 3>>},
              {no_version, <<112, 104, 1, 97, 1>>},
              {cut, <<112, 131, 104, 3, 97, 22>>},
              {number, <<112, 131, 97, 22>>},
              {empty_tuple, <<112, 131, 104, 0>>},
              {unknown, control({99, P, self()})},
              {large_number, control({1 bsl 70, P, self()})},
              {arity, control({22, P})},
              {to_nobody, control({22, P, foo})},
              {from_other, [control({1, binary_to_term(Other), self()})]},
              {link_from_here, control({1, self(), self()})},
              {zero, control({35, 0, P, self()})},
              {negative, control({35, -1, P, self()})},
              {no_reference, control({19, P, self(), notref})},
              {no_message, control({22, P, self()})},
              {bad_message, [control({22, P, self()}), <<131, 255, 1>>]},
              {long_list, [control({22, P, self()}), <<131, 108, 255, 255, 255, 255, 106>>]},
              {bad_spawn, [control({29, ref(1), P, P, foo, []}), term_to_binary([])]},
              {bad_reply, control({31, ref(1), self(), 0, self()})},
              {header, <<131, 68, 0>>},
              {fragment, <<131, 69, 1:64, 2:64, 0>>},
              {nothing, <<>>},
              {one, <<112>>}],
    [begin
         S = open(Flags, "bad"),
         packet(S, F),
         say(Name, ended(S)),
         gen_tcp:close(S),
         say(Name, [nodeup_down(next()), none()])
     end || {Name, F} <- Frames],
    ok.

nodeup_down({nodedown, _, #{nodedown_reason := R}}) -> R;
nodeup_down(O) -> O.

%% Whether the other side closes the connection.
ended(S) ->
    case gen_tcp:recv(S, 0, 500) of
        {error, closed} -> closed;
        {error, timeout} -> open;
        {error, E} -> E;
        {ok, _} -> ended(S)
    end.

%% Frames with atoms in their header.
headers(Flags) ->
    S = open(Flags, "heads"),
    To = ext(self()),
    From = ext(pid(1)),
    Control = fun(Msg) -> [<<104, 3, 97, 22>>, From, To, Msg] end,
    packet(S, [<<131, 68, 0>>, Control(<<97, 1>>)]),
    say(no_atoms, next()),
    packet(S, [<<131, 68, 1, 16#0F, 255, 3, "one">>, Control(<<82, 0>>)]),
    say(new, next()),
    packet(S, [<<131, 68, 1, 16#07, 255>>, Control(<<82, 0>>)]),
    say(known, next()),
    packet(S, [<<131, 68, 2, 16#8F, 0, 255, 3, "two", 3, 5, "three">>, Control(<<104, 2, 82, 0, 82, 1>>)]),
    say(replaced, next()),
    packet(S, [<<131, 68, 2, 16#07, 1, 255, 3>>, Control(<<104, 2, 82, 1, 82, 0>>)]),
    say(known, next()),
    packet(S, [<<131, 68, 1, 16#18, 9, 3:16, "far">>, Control(<<82, 0>>)]),
    say(long, next()),
    %% This side uses the cache as well.
    P = pid(1),
    P ! {an_atom_that_is_new, and_another, [an_atom_that_is_new]},
    {ok, One} = gen_tcp:recv(S, 0, 3000),
    P ! {an_atom_that_is_new, and_another, [an_atom_that_is_new]},
    {ok, Two} = gen_tcp:recv(S, 0, 3000),
    say(told_once, [has(One, "an_atom_that_is_new"), has(Two, "an_atom_that_is_new"), byte_size(Two) < byte_size(One)]),
    packet(S, [<<131, 68, 1, 16#07, 77>>, Control(<<82, 0>>)]),
    say(unknown, ended(S)),
    gen_tcp:close(S),
    next(),
    [begin
         T = open(Flags, "heads"),
         packet(T, F),
         say(bad, ended(T)),
         gen_tcp:close(T),
         next()
     end || F <- [<<131, 68, 5>>, <<131, 68, 1, 8, 1, 200, "short">>, <<131, 68, 1, 8, 1, 2, 255, 255>>,
                  [<<112>>, control({22, P, self()}), <<131, 97, 1>>],
                  [<<131, 68, 0>>, Control(<<82, 0>>)], <<131, 70, 1:64, 1:64>>]],
    ok.

has(B, Text) -> binary:match(B, list_to_binary(Text)) =/= nomatch.

%% Messages in fragments.
fragments(Flags) ->
    S = open(Flags, "frags"),
    To = ext(self()),
    From = ext(pid(1)),
    Control = [<<104, 3, 97, 22>>, From, To],
    <<131, M/binary>> = term_to_binary(lists:seq(1, 1000) ++ [<<I:32>> || I <- lists:seq(1, 2000)]),
    <<M1:500/binary, M2:5000/binary, M3/binary>> = M,
    packet(S, [<<131, 69, 77:64, 3:64, 0>>, Control, M1]),
    packet(S, [<<131, 69, 78:64, 2:64, 1, 8, 5, 5, "other">>, Control, <<104, 2, 82>>]),
    packet(S, [<<131, 70, 77:64, 2:64>>, M2]),
    packet(S, [<<131, 68, 0>>, Control, <<97, 5>>]),
    say(overtakes, next()),
    packet(S, [<<131, 70, 78:64, 1:64>>, <<0, 97, 6>>]),
    say(between, next()),
    packet(S, [<<131, 70, 77:64, 1:64>>, M3]),
    say(whole, erlang:md5(term_to_binary(next()))),
    packet(S, [<<131, 69, 79:64, 1:64, 0>>, Control, <<97, 7>>]),
    say(single, next()),
    %% What this side sends in fragments, and another message between.
    P = pid(1),
    Big = binary:copy(<<"0123456789">>, 20000),
    P ! {Big, [Big], lists:seq(1, 10000)},
    spawn(fun() -> P ! small end),
    say(sent, lists:sort(collect(S, [], []))),
    packet(S, [<<131, 69, 80:64, 3:64, 0>>, Control, M1]),
    gen_tcp:close(S),
    say(cut_off, nodeup_down(next())),
    [begin
         T = open(Flags, "frags"),
         [packet(T, F) || F <- Fs],
         say(bad, ended(T)),
         gen_tcp:close(T),
         next()
     end || Fs <- [[<<131, 70, 1:64, 1:64>>],
                   [[<<131, 69, 1:64, 3:64, 0>>, Control, M1], [<<131, 70, 1:64, 1:64>>, M2]],
                   [[<<131, 69, 1:64, 3:64, 0>>, Control, M1], [<<131, 69, 1:64, 3:64, 0>>, Control, M1]],
                   [<<131, 69, 1:32>>]]],
    ok.

%% Puts together what came: the sizes of the messages in the order in which they were whole.
collect(_, _, [_, _] = Done) -> lists:reverse(Done);
collect(S, Parts, Done) ->
    case gen_tcp:recv(S, 0, 3000) of
        {ok, <<131, 69, Seq:64, N:64, R/binary>>} -> part(S, Seq, N, R, Parts, Done);
        {ok, <<131, 70, Seq:64, N:64, R/binary>>} -> part(S, Seq, N, R, Parts, Done);
        {ok, <<131, 68, R/binary>>} -> collect(S, Parts, [size_class(R) | Done]);
        {ok, _} -> collect(S, Parts, Done);
        E -> {E, Parts}
    end.
part(S, Seq, N, R, Parts, Done) ->
    Before = proplists:get_value(Seq, Parts, <<>>),
    All = <<Before/binary, R/binary>>,
    true = byte_size(R) =< 66000,
    case N of
        1 -> collect(S, lists:keydelete(Seq, 1, Parts), [size_class(All) | Done]);
        _ -> collect(S, lists:keystore(Seq, 1, Parts, {Seq, All}), Done)
    end.
size_class(B) when byte_size(B) > 400000 -> large;
size_class(_) -> small.

%% A node that doesn't read: who sends waits, others don't.
slow(Flags) ->
    S = open(Flags, "slow"),
    P = pid(1),
    Big = binary:copy(<<0>>, 1000000),
    Sender = spawn(fun() -> [P ! Big || _ <- lists:seq(1, 30)], exit(done) end),
    R = monitor(process, Sender),
    receive {'DOWN', R, _, _, Why} -> say(not_held, Why) after 500 -> say(held, process_info(Sender, message_queue_len)) end,
    say(nosuspend, erlang:send(P, Big, [nosuspend])),
    gen_tcp:close(S),
    say(released, lists:sort([case next() of {'DOWN', R, _, _, D} -> D; N -> nodeup_down(N) end || _ <- [1, 2]])).

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
ctrl(S, T) -> packet(S, control(T)).
ctrl(S, T, Msg) -> send(S, T, Msg).
send(S, T, Msg) -> packet(S, [control(T), term_to_binary(Msg)]).

%% A control message that comes back, with what follows it.
answer(S) ->
    T = get_answer(S),
    case T of
        {29, _, _, _, MFA, O} -> {29, MFA, O, get(message)};
        {31, _, _, F, R} -> {31, F, R};
        {19, _, _, _} -> 19;
        {36, N, _, _} -> {36, N};
        _ -> {element(1, T), lists:last(tuple_to_list(T)) =:= pid(1), get(message)}
    end.
get_answer(S) ->
    case gen_tcp:recv(S, 0, 3000) of
        {ok, <<>>} -> get_answer(S);
        {ok, <<112, B/binary>>} ->
            {T, N} = binary_to_term(B, [used]),
            <<_:N/binary, Rest/binary>> = B,
            put(message, case Rest of <<>> -> none; _ -> binary_to_term(Rest) end),
            T;
        E -> {E}
    end.

%% Things of the other node.
atom(A) -> B = atom_to_binary(A), <<119, (byte_size(B)), B/binary>>.
pid(N) -> binary_to_term(<<131, 88, (atom(get(evil)))/binary, N:32, 0:32, 77:32>>).
ref(N) -> binary_to_term(<<131, 90, 3:16, (atom(get(evil)))/binary, 77:32, N:32, 0:32, 0:32>>).
pid_of_old_life() ->
    <<131, 88, R/binary>> = ext_v(self()),
    At = byte_size(R) - 4,
    <<Front:At/binary, C:32>> = R,
    binary_to_term(<<131, 88, Front/binary, (C + 1):32>>).
reference(R) -> R.
ext_v(T) -> term_to_binary(T, [{minor_version, 2}]).
ext(T) -> <<131, B/binary>> = ext_v(T), B.
