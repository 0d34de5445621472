%% A malicious or broken node sends links and monitors of processes that do not exist, many of them,
%% compressed terms, long exit reasons, valid and invalid, replies for others, endless messages, and
%% made-up nodes. It also stops reading while large terms are sent to it.
%% @stress @shared @fence @seconds 200
-module(hostile_node).
-export([main/0, forward/2]).

%% Mandatory ones, monitors, senders, payloads of exits, numbers of unlinks; spawn, large
%% references, aliases.
-define(PASS, 16#34F5FBC bor (16#D bsl 32)).
-define(CACHE, 16#2000).
-define(FRAGMENTS, 16#800000).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Me = list_to_atom("hostile" ++ os:getpid()),
    {ok, _} = net_kernel:start(Me, #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    application:set_env(kernel, dist_auto_connect, never),
    register(main, self()),
    process_flag(trap_exit, true),
    net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    Plain = ?PASS band (bnot (?CACHE bor ?FRAGMENTS)),
    ties(Plain),
    compressed(Plain),
    reasons(Plain),
    one_for_many(Plain),
    answers(Plain),
    flood(Plain),
    large(Plain),
    busy(Plain),
    endless(Plain bor ?CACHE bor ?FRAGMENTS),
    made_up(),
    ok = net_kernel:stop(),
    say(stopped, [node(), nodes()]),
    init:stop().

say(What, Value) ->
    io:format("~p: ~p~n", [What, Value]).
next() -> receive M -> M after 20000 -> timeout end.
none() -> receive M -> M after 200 -> none end.
down() -> receive {nodedown, _, #{nodedown_reason := R}} -> R after 20000 -> timeout end.

%% Ties with processes that have ended, and of processes that end.
ties(Flags) ->
    S = open(Flags, "ties"),
    P = pid(1),
    Dead = [begin {D, R} = spawn_monitor(fun() -> ok end), receive {'DOWN', R, _, _, _} -> D end end
            || _ <- lists:seq(1, 300)],
    [begin ctrl(S, {1, P, D}), ctrl(S, {19, P, D, ref(1)}), ctrl(S, {35, 5, P, D}) end || D <- Dead],
    Codes = [element(1, get_answer(S)) || _ <- Dead, _ <- [1, 2, 3]],
    say(dead, [length([C || C <- Codes, C =:= N]) || N <- [24, 28, 36]]),
    Watch = fun() -> monitor(process, P), link(P), erlang:monitor_node(node(P), true) end,
    [receive {'DOWN', R, _, _, Why} -> Why end || _ <- lists:seq(1, 300), {_, R} <- [spawn_monitor(Watch)]],
    Asked = [element(1, get_answer(S)) || _ <- lists:seq(1, 1200)],
    say(ended, [length([C || C <- Asked, C =:= N]) || N <- [19, 1, 20, 24]]),
    %% One that stays, with ties of before and after.
    {Stays, SR} = spawn_monitor(fun() -> Watch(), receive stop -> ok end end),
    [19, 1] = [element(1, get_answer(S)) || _ <- [1, 2]],
    gen_tcp:close(S),
    say(lost, down()),
    receive {'DOWN', SR, process, Stays, Reason} -> say(lost, Reason) end,
    none = none().

%% Terms that `term_to_binary/2` has compressed are none between nodes.
compressed(Flags) ->
    Big = term_to_binary(lists:duplicate(100000, 0), [compressed]),
    Noise = term_to_binary([rand:uniform(1 bsl 60) || _ <- lists:seq(1, 5000)] ++ lists:duplicate(3000, 0), [compressed]),
    131 = binary:first(Big),
    [begin
         S = open(Flags, "packed"),
         packet(S, F(pid(1))),
         R = receive {nodedown, _, #{nodedown_reason := Why}} -> Why after 20000 -> timeout end,
         gen_tcp:close(S),
         say(Name, [R, none()])
     end || {Name, F} <- [{control, fun(P) -> <<112, (term_to_binary({22, P, self(), lists:duplicate(1000, 0)}, [compressed]))/binary>> end},
                          {reason, fun(P) -> [control({26, P, self()}), Big] end},
                          {long_reason, fun(P) -> [control({26, P, self()}), Noise] end}]],
    S = open(Flags, "packed"),
    P = pid(1),
    packet(S, [control({22, P, self()}), Noise]),
    say(long, [down(), none()]),
    gen_tcp:close(S),
    none = none().

%% Reasons that are decoded by whom they are for keep their place among what else comes.
reasons(Flags) ->
    S = open(Flags, "reasons"),
    P = pid(1),
    Long = {because, lists:seq(1, 3000), #{a => binary:copy(<<7>>, 5000)}},
    send(S, {22, P, self()}, before),
    send(S, {26, P, self()}, Long),
    send(S, {22, P, self()}, behind),
    say(exit, [is(M, P, Long) || M <- [next(), next(), next()]]),
    L = spawn(fun looper/0),
    R = monitor(process, L),
    send(S, {26, P, L}, Long),
    send(S, {22, P, L}, stop),
    receive {'DOWN', R, _, _, Why} -> say(killed, is(Why, P, Long)) end,
    link(P),
    1 = element(1, get_answer(S)),
    M = monitor(process, P),
    19 = element(1, get_answer(S)),
    N = monitor(process, {there, node(P)}),
    19 = element(1, get_answer(S)),
    send(S, {28, P, self(), M}, Long),
    send(S, {28, there, self(), N}, Long),
    send(S, {28, P, self(), M}, Long),
    send(S, {24, P, self()}, Long),
    send(S, {24, P, self()}, Long),
    say(ties, [case next() of
                   {'DOWN', M, process, P, Why1} -> {by_pid, is(Why1, P, Long)};
                   {'DOWN', N, process, {there, _}, Why1} -> {by_name, is(Why1, P, Long)};
                   O -> is(O, P, Long)
               end || _ <- [1, 2, 3]]),
    none = none(),
    %% To nobody, and such as are no terms.
    Dead = spawn(fun() -> ok end),
    D = monitor(process, Dead),
    receive {'DOWN', D, _, _, _} -> ok end,
    send(S, {26, P, Dead}, Long),
    <<Cut:8000/binary, _/binary>> = term_to_binary(Long),
    packet(S, [control({26, P, Dead}), Cut]),
    send(S, {22, P, self()}, lives),
    say(nobody, next()),
    gen_tcp:close(S),
    down(),
    [begin
         T = open(Flags, "reasons"),
         Q = spawn(fun looper/0),
         F(T, pid(1), Q),
         say(bad, [down(), is_process_alive(Q)]),
         exit(Q, kill),
         gen_tcp:close(T)
     end || F <- [fun(T, B, Q) -> packet(T, [control({26, B, Q}), Cut]) end,
                  fun(T, B, Q) -> packet(T, [control({26, B, Q}), <<131, 97>>]) end,
                  fun(T, B, Q) -> packet(T, control({26, B, Q})) end]],
    none = none().

%% The reason of a process that many watch and are linked with.
one_for_many(Flags) ->
    S = open(Flags, "many"),
    Small = {because, <<"of">>, [this]},
    Large = {because, binary:copy(<<8>>, 3000), lists:seq(1, 3000), [<<1:5>>, binary:copy(<<9>>, 200000)]},
    [begin
         L = spawn(fun() -> receive die -> exit(Reason) end end),
         [begin ctrl(S, {1, pid(N), L}), ctrl(S, {19, pid(N), L, ref(N)}) end || N <- lists:seq(1, 4)],
         ctrl(S, {22, pid(1), L}, die),
         Told = [begin
                     Code = element(1, get_answer(S)),
                     {Code, get(message) =:= Reason}
                 end || _ <- lists:seq(1, 8)],
         say(many, lists:sort(Told))
     end || Reason <- [Small, Large]],
    gen_tcp:close(S),
    down().

is({'EXIT', P, R}, P, R) -> exit;
is(R, _, R) -> same;
is(O, _, _) -> O.

looper() -> receive stop -> ok end.

%% Who was not asked doesn't answer.
answers(Flags) ->
    S = open(Flags, "asked"),
    Asked = node_name("asked"),
    Q = spawn_request(Asked, m, f, [1], [{reply_tag, here}]),
    29 = element(1, get_answer(S)),
    ctrl(S, {31, Q, self(), 0, pid(9)}),
    {here, Q, ok, Nine} = next(),
    say(answered, Nine =:= pid(9)),
    ctrl(S, {31, Q, self(), 0, pid(10)}),
    send(S, {22, pid(1), self()}, behind),
    say(again, next()),
    gen_tcp:close(S),
    down().

%% Many small messages, to a process, and to nobody.
flood(Flags) ->
    S = open(Flags, "flood"),
    P = pid(1),
    N = 20000,
    Sink = spawn(fun() -> sink(N) end),
    R = monitor(process, Sink),
    Pack = fun(B) -> B1 = iolist_to_binary(B), [<<(byte_size(B1)):32>>, B1] end,
    To = Pack([control({22, P, Sink}), term_to_binary({some, <<"message">>})]),
    Nobody = Pack([control({6, P, '', nobody_of_that_name}), term_to_binary({some, <<"message">>})]),
    inet:setopts(S, [{packet, raw}]),
    [ok = gen_tcp:send(S, lists:duplicate(1000, [To, Nobody])) || _ <- lists:seq(1, N div 1000)],
    receive {'DOWN', R, _, _, Why} -> say(flooded, Why) end,
    gen_tcp:close(S),
    say(over, down()).

sink(0) -> exit(all);
sink(N) -> receive {some, <<"message">>} -> sink(N - 1) end.

%% Large terms are encoded where they hold nobody up.
large(Flags) ->
    S = open(Flags, "large"),
    P = pid(1),
    Large = {lists:seq(1, 150000), [<<I:16>> || I <- lists:seq(1, 20000)]},
    P ! Large,
    say(sent, got(S, Large)),
    {there, node(P)} ! Large,
    say(named, got(S, Large)),
    Large = erlang:send(P, Large),
    say(sent, got(S, Large)),
    ok = erlang:send(P, Large, [nosuspend, noconnect]),
    say(options, got(S, Large)),
    true = exit(P, Large),
    say(exit, got(S, Large)),
    Q = spawn_request(node(P), ?MODULE, forward, [self(), Large], [{reply_tag, here}]),
    say(asked, got(S, [self(), Large])),
    ctrl(S, {31, Q, self(), 0, pid(9)}),
    {here, Q, ok, _} = next(),
    %% And one that this node is asked for.
    ctrl(S, {29, ref(20), P, P, {?MODULE, forward, 2}, []}, [self(), Large]),
    31 = element(1, get_answer(S)),
    say(forwarded, next() =:= Large),
    gen_tcp:close(S),
    down().

forward(To, Term) -> To ! Term.

got(S, Term) ->
    Code = element(1, get_answer(S)),
    {Code, get(message) =:= Term}.

%% A node that doesn't read for a while: who sends waits, and is told of as sending no more than
%% once for each message.
busy(Flags) ->
    S = open(Flags, "busy"),
    P = pid(1),
    Main = self(),
    Tracer = spawn(fun() -> tracer(0) end),
    List = lists:seq(1, 300000),
    Binary = binary:copy(<<0>>, 1000000),
    Sender = spawn(fun() -> receive go -> ok end, [P ! Binary || _ <- lists:seq(1, 12)], Main ! sent end),
    R = monitor(process, Sender),
    1 = erlang:trace(Sender, true, [send, {tracer, Tracer}]),
    Sender ! go,
    held(Sender),
    say(held, element(2, process_info(Sender, status))),
    %% Ends don't wait.
    {Q, QR} = spawn_monitor(fun() -> link(P), exit(over) end),
    held(Q),
    exit(Q, kill),
    receive {'DOWN', QR, _, _, Why} -> say(ended, Why) end,
    say(read, lists:usort([message_of(S, Binary) || _ <- lists:seq(1, 12)])),
    receive sent -> ok end,
    receive {'DOWN', R, _, _, Sent} -> say(released, Sent) end,
    Ref = erlang:trace_delivered(Sender),
    receive {trace_delivered, Sender, Ref} -> ok end,
    Tracer ! {self(), count},
    receive {Tracer, N} -> say(traced, N =< 13) end,
    %% The same, of a connection that ends meanwhile.
    {Other, OR} = spawn_monitor(fun() -> [P ! X || _ <- lists:seq(1, 12), X <- [List, Binary]], exit(done) end),
    held(Other),
    gen_tcp:close(S),
    say(lost, down()),
    receive {'DOWN', OR, _, _, Done} -> say(released, Done) end.

%% The next message: stock has queued the link of a process that then waited, too.
message_of(S, Term) ->
    case element(1, get_answer(S)) of
        22 -> get(message) =:= Term;
        Code when Code =:= 1; Code =:= 24 -> message_of(S, Term);
        Code -> Code
    end.

held(P) ->
    case process_info(P, status) of
        {_, suspended} -> ok;
        _ -> receive after 20 -> held(P) end
    end.

tracer(N) ->
    receive
        {trace, _, Send, _, _} when Send =:= send; Send =:= send_to_non_existing_process -> tracer(N + 1);
        {Who, count} -> Who ! {self(), N}
    end.

%% Messages whose ends never come, and a node that dies in the midst of them.
endless(Flags) ->
    Before = erlang:memory(binary),
    S = open(Flags, "endless"),
    To = ext(self()),
    From = ext(pid(1)),
    Control = [<<104, 3, 97, 22>>, From, To],
    Part = binary:copy(<<1>>, 50000),
    [packet(S, [<<131, 69, I:64, 1000:64, 0>>, Control, <<109, 50000000:32>>, Part]) || I <- lists:seq(1, 100)],
    [packet(S, [<<131, 70, I:64, 999:64>>, Part]) || I <- lists:seq(1, 100)],
    packet(S, [<<131, 68, 0>>, Control, <<97, 1>>]),
    say(between, next()),
    say(held, erlang:memory(binary) > Before + 5000000),
    gen_tcp:close(S),
    say(died, down()),
    say(given_up, settles(Before + 2000000, 200)).

settles(_, 0) -> erlang:memory(binary);
settles(Limit, N) ->
    erlang:garbage_collect(),
    case erlang:memory(binary) < Limit of
        true -> yes;
        false -> receive after 50 -> settles(Limit, N - 1) end
    end.

%% Nodes that somebody has made up, to which messages go.
made_up() ->
    N = 2500,
    [begin
         Name = list_to_atom("made_up_" ++ integer_to_list(I) ++ "@nowhere"),
         put(evil, Name),
         pid(1) ! hello,
         {there, Name} ! hello
     end || I <- lists:seq(1, N)],
    M = monitor(process, {there, 'made_up_1@nowhere'}),
    receive {'DOWN', M, process, {there, 'made_up_1@nowhere'}, Why} -> say(made_up, Why) end,
    say(connected, [V || V <- nodes(connected)]).

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

%% A control message that comes back; what follows it is in the dictionary.
get_answer(S) ->
    case gen_tcp:recv(S, 0, 30000) of
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
ext_v(T) -> term_to_binary(T, [{minor_version, 2}]).
ext(T) -> <<131, B/binary>> = ext_v(T), B.
