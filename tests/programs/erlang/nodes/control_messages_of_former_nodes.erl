%% Another node sends control messages with processes and references of earlier incarnations of both
%% nodes, and of a third node, and unlinks that cross. Checks the replies, the state of the process,
%% and which messages close the connection. @seconds 200
-module(control_messages_of_former_nodes).
-export([main/0, forward/2]).

%% Mandatory ones, monitors, senders, payloads of exits, numbers of unlinks; spawn, large
%% references, aliases.
-define(PASS, 16#34F5FBC bor (16#D bsl 32)).
-define(CACHE, 16#2000).
-define(FRAGMENTS, 16#800000).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Me = list_to_atom("former_life" ++ os:getpid()),
    {ok, _} = net_kernel:start(Me, #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    application:set_env(kernel, dist_auto_connect, never),
    net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    put(flags, ?PASS band (bnot (?CACHE bor ?FRAGMENTS))),
    put(evil, node_name("evil")),
    register(main, self()),
    connect(),
    demonitors(),
    monitor_exits(),
    unlinks(),
    spawns(),
    gen_tcp:close(get(socket)),
    ok = net_kernel:stop(),
    init:stop().

forward(To, Term) -> To ! Term.

%% One case: a new target, messages to the node (terms with fun of target), then end of target;
%% prints answers, info and messages.
go(Name, Before, Msgs) ->
    go(Name, Before, Msgs, over).
go(Name, Before, Msgs, How) ->
    L = spawn(fun() -> process_flag(trap_exit, true), target([]) end),
    put(target, L),
    Env = ask(L, fun() -> Before(L) end),
    put(env, Env),
    Early0 = answers(L),
    put(number, case [I || {35, I, _, _} <- Early0] of [I | _] -> I; _ -> 1 end),
    Early = [case A of {35, _, X, Y} -> {35, number, X, Y}; _ -> A end || A <- Early0],
    Sent = [message(M(L, Env)) || M <- Msgs],
    [packet(S) || S <- Sent],
    case sync() of
        ended ->
            exit(L, kill),
            say(Name, {ended, Early}),
            connect();
        ok ->
            Answers = answers(L),
            Info = [ask(L, fun() -> {links, Ls} = process_info(self(), links), lists:sort(Ls) end),
                    ask(L, fun() -> {_, Ls} = process_info(self(), monitored_by), lists:sort(Ls) end),
                    ask(L, fun() -> {_, Ls} = process_info(self(), monitors), lists:sort(Ls) end)],
            Messages = ask_messages(L),
            Ref = monitor(process, L),
            exit(L, {How, kill}),
            L ! {die, How},
            receive {'DOWN', Ref, _, _, _} -> ok after 5000 -> say(Name, not_down) end,
            Last = last_answers(),
            say(Name, {Early, Answers, Info, Messages, Last})
    end.

ask(L, F) -> L ! {ask, self(), F}, receive {L, X} -> X after 5000 -> timeout end.
ask_messages(L) -> ask(L, messages).
target(Ms) ->
    receive
        {ask, From, messages} -> From ! {self(), lists:reverse(Ms)}, target(Ms);
        {ask, From, F} -> From ! {self(), try F() catch C:E -> {C, E} end}, target(Ms);
        {ping, P} -> P ! pong, target(Ms);
        {die, R} -> exit(R);
        {'EXIT', _, {over, kill}} -> target(Ms);
        M -> target([M | Ms])
    end.

%% What comes back until the target's own message.
answers(L) -> L ! {ping, pid(99)}, collect(pong, []).
last_answers() ->
    X = spawn(fun() -> receive {ping, P} -> P ! pong end end),
    receive after 15 -> ok end,
    lists:sort(answers(X)).
collect(Until, Acc) ->
    case get_answer() of
        {C, _, _} when C =:= 2 orelse C =:= 22 ->
            case get(message) of
                Until -> lists:reverse(Acc);
                M -> collect(Until, [{C, msg, M} | Acc])
            end;
        {'end'} -> lists:reverse([closed | Acc]);
        {A} -> lists:reverse([A | Acc]);
        T -> collect(Until, [case get(message) of none -> T; M -> {T, M} end | Acc])
    end.

sync() ->
    R = make_ref(),
    packet(case get(flags) band ?FRAGMENTS of
        0 -> [control({22, pid(1), self()}), term_to_binary(R)];
        _ -> [<<131, 68, 0>>, ext({22, pid(1), self()}), ext(R)]
    end),
    receive
        R -> receive {nodedown, _, _} -> ended after 30 -> ok end;
        {nodedown, _, _} -> ended
    after 10000 -> timeout
    end.

say(N, X) -> io:format("~0p: ~0p~n", [N, show(X)]).
show(T) when is_tuple(T) -> list_to_tuple(show(tuple_to_list(T)));
show([H | T]) -> [show(H) | show(T)];
show(T) when is_pid(T); is_reference(T) ->
    L = get(target),
    if T =:= L -> target; T =:= self() -> main;
       true ->
        case [K || {K, V} <- named(), V =:= T] of
            [K | _] -> K;
            [] when node(T) =:= node(), is_pid(T) -> a_pid;
            [] when node(T) =:= node() -> case get(env) of T -> env; _ -> a_ref end;
            [] -> {unknown, node(T) =:= get(evil), ext(T)}
        end
    end;
show(T) when is_atom(T) -> case T =:= get(evil) of true -> evil; _ when T =:= node() -> this; _ -> T end;
show(T) when is_port(T) -> {port, node(T)};
show(T) when is_map(T) -> maps:from_list(show(maps:to_list(T)));
show(T) -> T.

named() ->
    [{{pid, N}, pid(N)} || N <- [1, 2, 3, 99]] ++ [{{old_pid, N}, oldpid(N)} || N <- [1, 2]] ++ [{{ref, N}, ref(N)} || N <- [1, 2, 3, 4]]
    ++ [{{old_ref, N}, oldref(N)} || N <- [1, 2]] ++ [{other_pid, other()}, {other_ref, other_ref()}, {zero_pid, zeropid(1)}, {zero_ref, zeroref(1)}]
    ++ case get(target) of undefined -> []; L -> [{former_target, former(L)}, {zero_target, zero(L)}] end
    ++ case get(env) of R when is_reference(R) -> [{former_env, former(R)}]; _ -> [] end.

no(_) -> none.
dead() -> {D, R} = spawn_monitor(fun() -> ok end), receive {'DOWN', R, _, _, _} -> D end.

demonitors() ->
    P = pid(1),
    Named = fun(_) -> register(some_name, self()) end,
    go(by_name, Named, [fun(_, _) -> {19, P, some_name, ref(1)} end, fun(_, _) -> {20, P, some_name, ref(1)} end]),
    go(by_pid, Named, [fun(_, _) -> {19, P, some_name, ref(1)} end, fun(L, _) -> {20, P, L, ref(1)} end]),
    go(pid_by_name, Named, [fun(L, _) -> {19, P, L, ref(1)} end, fun(_, _) -> {20, P, some_name, ref(1)} end]),
    [go({demonitor, K}, fun no/1, [fun(L, _) -> {19, P, L, ref(1)} end, fun(L, _) -> {20, P, L, R} end]) || {K, R} <- [{good, ref(1)}, {old, oldref(1)}, {zero, zeroref(1)}]].

targets() -> [{dead, fun(_) -> dead() end}, {former, fun former/1}, {zero, fun zero/1}, {former_dead, fun(_) -> former(dead()) end}].

monitor_exits() ->
    P = pid(1),
    E = get(evil),
    MonN2 = fun(_) -> monitor(process, {there, E}) end,
    Mon2 = fun(_) -> monitor(process, P) end,
    Refs = [{good, fun(R) -> R end}, {former, fun former/1}, {zero, fun zero/1}],
    [go({monitor_exit, K, M}, B, [fun(L, R) -> {21, W, L, F(R), why} end, fun(L, R) -> {21, W, L, F(R), again} end])
     || {M, B} <- [{pid, Mon2}, {name, MonN2}], {K, F} <- Refs, W <- [P, there, other()]].

froms() -> [{good, pid(1)}, {old, oldpid(1)}, {zero, zeropid(1)}, {other, other()}, {mine, whereis(main)}].

unlinks() ->
    Lk = fun(L, _) -> {1, pid(1), L} end,
    [go({unlink_of, K}, fun no/1, [Lk, fun(L, _) -> {35, 7, pid(1), F(L)} end]) || {K, F} <- targets()],
    P = pid(1),
    Un = fun(_) -> link(P), unlink(P) end,
    [go({ack, K, N}, Un, [fun(L, _) -> {36, N * get(number), F, L} end, fun(L, _) -> {1, P, L} end, fun(L, _) -> {3, P, L, why} end])
      || {K, F} <- froms(), N <- [1, 2]],
    [go({ack_number, N}, Un, [fun(L, _) -> {36, N, P, L} end]) || N <- [0, -1, a, 1.0, 1 bsl 63, 1 bsl 64, (1 bsl 64) - 1]],
    [go({ack_to, K}, Un, [fun(L, _) -> {36, get(number), P, F(L)} end]) || {K, F} <- targets()],
    go(crossing_exit, Un, [fun(L, _) -> {3, P, L, why} end]),
    go(crossing_link, Un, [fun(L, _) -> {1, P, L} end, fun(L, _) -> {3, P, L, why} end]),
    go(crossing_unlink, Un, [fun(L, _) -> {35, 9, P, L} end, fun(L, _) -> {3, P, L, why} end]),
    go(crossing_old_unlink, Un, [fun(L, _) -> {4, P, L} end, fun(L, _) -> {3, P, L, why} end]).

spawns() ->
    P = pid(1),
    A = fun(M) -> term_to_binary([whereis(main), M]) end,
    Go = fun(K, T, B) -> go({spawn, K}, fun no/1, [fun(_, _) -> {raw, [control(T), B]} end]), say(got, next()) end,
    MFA = {?MODULE, forward, 2},
    [Go({from, K}, {29, ref(1), F, P, MFA, []}, A(K)) || {K, F} <- froms()],
    E = get(evil),
    R2 = fun(O) -> fun(_) -> spawn_request(E, m, f, [], O) end end,
    [go({reply, O, K, N}, R2(O), [fun(L, R) -> {31, F(R), L, N, X} end, fun(L, R) -> {31, F(R), L, N, X} end])
     || O <- [[], [monitor], [link]], {K, F, X} <- [{good, fun(R) -> R end, pid(2)}, {former, fun former/1, pid(2)},
            {error, fun(R) -> R end, some_error}, {old, fun(R) -> R end, oldpid(2)}, {other, fun(R) -> R end, other()}], N <- [0, 1]].

next() -> receive M -> M after 20 -> none end.

%% The handshake, as the node that asks for the connection.

node_name(Name) ->
    [_, Host] = string:split(atom_to_list(node()), "@"),
    list_to_atom(Name ++ "@" ++ Host).

connect() ->
    catch gen_tcp:close(get(socket)),
    receive {nodedown, _, _} -> ok after 0 -> ok end,
    put(socket, open(get(flags), "evil", 300)).

open(Flags, Name, N) ->
    Node = atom_to_list(node_name(Name)),
    [Short, Host] = string:split(atom_to_list(node()), "@"),
    {port, Port, _} = erl_epmd:port_please(Short, Host),
    {ok, S} = gen_tcp:connect(Host, Port, [{active, false}, binary, {packet, 2}]),
    ok = gen_tcp:send(S, <<$N, Flags:64, 77:32, (length(Node)):16, (list_to_binary(Node))/binary>>),
    case gen_tcp:recv(S, 0, 5000) of
        {ok, <<"sok">>} -> opened(S);
        _ when N > 0 ->
            catch gen_tcp:send(S, <<"false">>),
            gen_tcp:close(S),
            receive after 20 -> ok end,
            open(Flags, Name, N - 1)
    end.

opened(S) ->
    {ok, <<$N, _:64, Challenge:32, _:32, _/binary>>} = gen_tcp:recv(S, 0, 5000),
    Digest = fun(C) -> erlang:md5(["biscuit", integer_to_list(C)]) end,
    ok = gen_tcp:send(S, <<$r, 4711:32, (Digest(Challenge))/binary>>),
    {ok, <<$a, Ack:16/binary>>} = gen_tcp:recv(S, 0, 5000),
    Ack = Digest(4711),
    inet:setopts(S, [{packet, 4}]),
    receive {nodeup, _, _} -> ok after 5000 -> io:format("no nodeup~n") end,
    S.

message({raw, B}) -> B;
message(T) -> control(T).
packet(F) -> _ = gen_tcp:send(get(socket), F).
control(T) -> B = term_to_binary(T), <<112, B/binary>>.

get_answer() ->
    case gen_tcp:recv(get(socket), 0, 3000) of
        {ok, <<>>} -> get_answer();
        {ok, <<112, B/binary>>} ->
            {T, N} = binary_to_term(B, [used]),
            <<_:N/binary, Rest/binary>> = B,
            put(message, case Rest of <<>> -> none; _ -> binary_to_term(Rest) end),
            T;
        {ok, <<131, 68, B/binary>>} -> head(B);
        {error, closed} -> {'end'};
        E -> {E}
    end.

%% A header with atoms.
head(<<0, B/binary>>) -> body(B, []);
head(<<N, B/binary>>) ->
    S = N div 2 + 1,
    <<Flags:S/binary, R/binary>> = B,
    Half = fun(I) -> (binary:at(Flags, I div 2) bsr (4 * (I rem 2))) band 15 end,
    Long = Half(N) band 1,
    {As, Rest} = head(N, 0, Half, Long, R, []),
    body(Rest, As).
head(N, N, _, _, R, As) -> {lists:reverse(As), R};
head(N, I, Half, Long, <<Slot, R/binary>>, As) ->
    H = Half(I),
    Key = {slot, ((H band 7) bsl 8) bor Slot},
    case H band 8 of
        0 -> head(N, I + 1, Half, Long, R, [get(Key) | As]);
        _ ->
            Bits = case Long of 1 -> 16; 0 -> 8 end,
            <<Len:Bits, A:Len/binary, Rest/binary>> = R,
            put(Key, A),
            head(N, I + 1, Half, Long, Rest, [A | As])
    end.
body(B, As) ->
    {T, R} = dec(B, As),
    put(message, case R of <<>> -> none; _ -> {M, _} = dec(R, As), M end),
    T.
%% Small decoder: replaces cache references with atoms, then binary_to_term.
dec(B, As) ->
    X = replace_refs(B, As),
    {T, Used} = binary_to_term(<<131, X/binary>>, [used]),
    %% bytes left over, of the replaced form
    Rest = binary:part(X, Used - 1, byte_size(X) - Used + 1),
    {T, Rest}.
replace_refs(<<82, I, R/binary>>, As) when I < length(As) ->
    A = lists:nth(I + 1, As), <<118, (byte_size(A)):16, A/binary, (replace_refs(R, As))/binary>>;
replace_refs(<<104, N, R/binary>>, As) -> <<104, N, (replace_refs(R, As))/binary>>;
replace_refs(<<97, N, R/binary>>, As) -> <<97, N, (replace_refs(R, As))/binary>>;
replace_refs(<<88, 82, I, X:12/binary, R/binary>>, As) -> A = lists:nth(I + 1, As), <<88, 118, (byte_size(A)):16, A/binary, X/binary, (replace_refs(R, As))/binary>>;
replace_refs(<<90, N:16, 82, I, R0/binary>>, As) -> K = 4 * N + 4, <<X:K/binary, R/binary>> = R0, A = lists:nth(I + 1, As), <<90, N:16, 118, (byte_size(A)):16, A/binary, X/binary, (replace_refs(R, As))/binary>>;
replace_refs(B, _) -> B.

%% Things of the other node.
atom(A) -> B = atom_to_binary(A), <<119, (byte_size(B)), B/binary>>.
pid(N) -> mkpid(N, 77).
oldpid(N) -> mkpid(N, 76).
zeropid(N) -> mkpid(N, 0).
mkpid(N, C) -> binary_to_term(<<131, 88, (atom(node_name("evil")))/binary, N:32, 0:32, C:32>>).
ref(N) -> mkref(N, 77).
oldref(N) -> mkref(N, 76).
zeroref(N) -> mkref(N, 0).
mkref(N, C) -> binary_to_term(<<131, 90, 3:16, (atom(node_name("evil")))/binary, C:32, N:32, 0:32, 0:32>>).
other() -> binary_to_term(<<131, 88, 119, 3, "a@b", 0:32, 0:32, 1:32>>).
other_ref() -> binary_to_term(<<131, 90, 3:16, 119, 3, "a@b", 1:32, 1:32, 1:32, 1:32>>).
former(T) -> creation(T, fun(C) -> C + 1 end).
zero(T) -> creation(T, fun(_) -> 0 end).
creation(T, F) when is_pid(T) ->
    <<131, 88, R/binary>> = term_to_binary(T, [{minor_version, 2}]),
    At = byte_size(R) - 4,
    <<Front:At/binary, C:32>> = R,
    binary_to_term(<<131, 88, Front/binary, (F(C)):32>>);
creation(T, F) when is_reference(T) ->
    <<131, 90, N:16, R/binary>> = term_to_binary(T, [{minor_version, 2}]),
    At = byte_size(R) - 4 * N - 4,
    <<Front:At/binary, C:32, Words/binary>> = R,
    binary_to_term(<<131, 90, N:16, Front/binary, (F(C)):32, Words/binary>>).
ext(T) -> <<131, B/binary>> = term_to_binary(T, [{minor_version, 2}]), B.
