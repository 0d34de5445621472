%% Another node sends monitor and spawn requests with references of this node, references of any
%% length, and one reference for several requests. Checks the replies, the state of the process, and
%% which close the connection. Also checks the options of outgoing spawn requests. @seconds 200
-module(monitors_by_any_reference).
-export([main/0, forward/2]).

%% Mandatory ones, monitors, senders, payloads of exits, numbers of unlinks; spawn, large
%% references, aliases.
-define(PASS, 16#34F5FBC bor (16#D bsl 32)).
-define(CACHE, 16#2000).
-define(FRAGMENTS, 16#800000).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Me = list_to_atom("any_reference" ++ os:getpid()),
    {ok, _} = net_kernel:start(Me, #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    application:set_env(kernel, dist_auto_connect, never),
    net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    put(flags, ?PASS band (bnot (?CACHE bor ?FRAGMENTS))),
    put(evil, node_name("evil")),
    register(main, self()),
    connect(),
    own_references(),
    lengths(),
    several(),
    spawns(),
    outgoing(),
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

own_references() ->
    P = pid(1),
    Kinds = [{plain, fun(_) -> make_ref() end}, {alias, fun(_) -> alias() end}, {monitor, fun(_) -> monitor(process, whereis(main)) end},
             {alias_of_monitor, fun(_) -> monitor(process, whereis(main), [{alias, explicit_unalias}]) end}, {magic, fun(_) -> atomics:new(1, []) end},
             {former, fun(_) -> former(make_ref()) end}, {zero, fun(_) -> zero(make_ref()) end}],
    [begin
        B = fun(L) -> F(L) end,
        go({monitor, K}, B, [fun(L, R) -> {19, P, L, R} end]),
        go({name, K}, fun(L) -> register(some_name, self()), B(L) end, [fun(_, R) -> {19, P, some_name, R} end]),
        go({nobody, K}, B, [fun(_, R) -> {19, P, nobody_there, R} end]),
        %% Stock's emulator ends or hangs on requests to end a monitor by a reference of its own.
        [begin
            go({demonitor, K}, B, [fun(L, R) -> {19, P, L, R} end, fun(L, R) -> {20, P, L, R} end]),
            go({only_demonitor, K}, B, [fun(L, R) -> {20, P, L, R} end])
         end || K =:= former orelse K =:= zero]
     end || {K, F} <- Kinds].

%% References of this node and of the other with one to six words.
lengths() ->
    P = pid(1),
    [go({words, N, Whose}, fun no/1, [fun(L, _) -> {19, P, L, words(N, Whose)} end, fun(L, _) -> {19, P, L, words(N, Whose)} end])
     || N <- [1, 2, 3, 5], Whose <- [own, evil], N =:= 3 orelse Whose =:= evil].

words(N, own) ->
    <<131, 90, _:16, R/binary>> = term_to_binary(make_ref_once(), [{minor_version, 2}]),
    At = byte_size(R) - 12,
    <<Front:At/binary, W:12/binary>> = R,
    binary_to_term(<<131, 90, N:16, Front/binary, W/binary, (binary:copy(<<0:32>>, N - 3))/binary>>);
words(N, evil) ->
    binary_to_term(<<131, 90, N:16, (atom(node_name("evil")))/binary, 77:32, (binary:copy(<<5:32>>, N))/binary>>).
make_ref_once() -> case get(once) of undefined -> R = make_ref(), put(once, R), R; R -> R end.

%% More than one request to end such monitors makes stock's emulator fail.
several() ->
    P = pid(1), Q = pid(2), R = ref(1),
    M = fun(By, X) -> fun(L, _) -> {19, By, case X of target -> L; _ -> X end, R} end end,
    D = fun(By, X) -> fun(L, _) -> {20, By, case X of target -> L; _ -> X end, R} end end,
    Named = fun(_) -> register(some_name, self()) end,
    [go({several, N}, Named, Ms) || {N, Ms} <- [
        {same, [M(P, target), M(P, target)]}, {three, [M(P, target), M(P, target), M(P, target)]}, {by_two, [M(P, target), M(Q, target)]},
        {pid_and_name, [M(P, target), M(P, some_name)]}, {name_and_pid, [M(P, some_name), M(P, target)]}, {names, [M(P, some_name), M(P, some_name)]},
        {same_less_one, [M(P, target), M(P, target), D(P, target)]}]].

spawns() ->
    P = pid(1),
    A = fun(M) -> term_to_binary([whereis(main), M]) end,
    Go = fun(K, T, B) -> go({spawn, K}, fun no/1, [fun(_, _) -> {raw, [control(T), B]} end]), say(got, next()) end,
    MFA = {?MODULE, forward, 2},
    Local = make_ref(),
    [Go({K, O}, {29, R, P, P, MFA, O}, A(K)) || {K, R} <- [{former, former(Local)}, {other, other_ref()}, {old, oldref(1)}], O <- [[], [monitor]]],
    [Go({options, O}, {29, ref(N), P, P, MFA, O}, A(options)) || {N, O} <- lists:enumerate([[{min_bin_vheap_size, 1 bsl 31}], [{min_bin_vheap_size, 1 bsl 40}], [{min_bin_vheap_size, -1}],
        [{fullsweep_after, 65536}], [{fullsweep_after, 1 bsl 40}], [{fullsweep_after, -1}], [{async_dist, true}], [{min_heap_size, -1}], [{min_heap_size, 1 bsl 20}], [{priority, high}],
        [{scheduler, 1}], [{message_queue_data, off_heap}], [{message_queue_data, x}], [{max_heap_size, 0}], [{max_heap_size, 1}], [{link, []}], [link | x], x, [monitor, link], [{monitor, []}],
        [{monitor, [{tag, x}]}], [{monitor, [{alias, demonitor}]}], [{reply, yes}], [{reply_tag, x}], [{foo, bar}]])].

%% What goes out.
outgoing() ->
    E = get(evil),
    Out = fun(N, F) ->
        R = try F() catch C:X -> {C, X} end,
        io:format("out ~0p: ~0p ~0p~n", [N, is_reference(R) orelse is_pid(R) orelse R, case R of {error, _} -> none; _ -> case get_answer() of {29, _, _, _, MFA, O} -> {MFA, O, get(message)}; A -> element(1, A) end end])
    end,
    [Out(O, fun() -> spawn_request(E, m, f, [1], O) end) || O <- [[], [link], [monitor], [link, monitor], [monitor, link], [{priority, high}, link, {min_heap_size, 100}],
        [{min_heap_size, 100}, monitor, {fullsweep_after, 5}, link, {priority, low}], [{reply, yes}, {priority, high}], [{priority, high}, {reply_tag, x}, link], [link, link], [{fullsweep_after, 1}, {fullsweep_after, 2}],
        [{monitor, [{tag, x}]}], [{monitor, [{alias, demonitor}]}, {foo, bar}, link], [{foo, bar}], [{message_queue_data, off_heap}, {reply, no}, monitor, {x, y}], [{async_dist, true}], [foo], [link | foo]]].

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
