%% Checks the trace event `send`, the sequential trace token and the saved calls for each way of
%% sending and each kind of receiver. @stress
-module(messages_told_by_way_of_sending).
-export([main/0]).

main() ->
    code:ensure_loaded(seq_trace),
    logger:set_primary_config(level, none),
    [ways(W) || W <- ways()],
    ok.

ways() ->
    [{'!', fun(T, M) -> T ! M end},
     {send2, fun(T, M) -> erlang:send(T, M) end},
     {send2_applied, fun(T, M) -> apply(erlang, id(send), [T, M]) end},
     {bang_applied, fun(T, M) -> apply(erlang, id('!'), [T, M]) end},
     {send3, fun(T, M) -> erlang:send(T, M, id([])) end},
     {send3_nosuspend, fun(T, M) -> erlang:send(T, M, [nosuspend]) end},
     {send3_noconnect, fun(T, M) -> erlang:send(T, M, [noconnect, nosuspend]) end},
     {send3_bad, fun(T, M) -> erlang:send(T, M, [x]) end},
     {send_nosuspend2, fun(T, M) -> erlang:send_nosuspend(T, M) end},
     {send_nosuspend3, fun(T, M) -> erlang:send_nosuspend(T, M, [noconnect]) end}].

id(X) -> X.

ways({Name, F}) ->
    Me = self(),
    Q = spawn(fun() -> receive never -> ok end end),
    Dead = spawn(fun() -> ok end),
    ended(Dead),
    register(told_process, Q),
    %% The process owns its port from the start.
    P = spawn(fun() ->
        process_flag(trap_exit, true),
        Port = open_port({spawn, "cat 2>/dev/null"}, []),
        Closed = open_port({spawn, "cat 2>/dev/null"}, []),
        register(told_port, Port),
        port_close(Closed),
        Me ! {self(), Port, Closed},
        served(F, Me)
    end),
    {Port, Closed} = receive {P, P1, P2} -> {P1, P2} end,
    Alias = alias(),
    Old = alias(),
    unalias(Old),
    X = spawn(fun() -> Me ! {self(), alias()} end),
    DeadAlias = receive {X, A} -> ended(X), A end,
    Ds = [{live, Q}, {dead, Dead}, {never, list_to_pid("<0.32000.7>")}, {name, told_process}, {nobody, told_nobody},
          {port_name, told_port}, {name_here, {told_process, node()}}, {port_name_here, {told_port, node()}},
          {nobody_here, {told_nobody, node()}}, {name_there, {told_process, 'x@y'}},
          {alias, Alias}, {old_alias, Old}, {dead_alias, DeadAlias}, {reference, make_ref()}, {port, Port}, {closed, Closed},
          {far_pid, far(88, "a@b", <<1:32, 0:32, 1:32>>)}, {old_pid, far(88, "nonode@nohost", <<5:32, 0:32, 99:32>>)},
          {far_port, far(89, "a@b", <<5:32, 1:32>>)}, {old_port, far(89, "nonode@nohost", <<5:32, 99:32>>)},
          {far_ref, far_ref("a@b", 1)}, {old_ref, far_ref("nonode@nohost", 99)},
          {number, 17}, {pair, {1, 2}}, {half_pair, {a, 2}}, {triple, {a, b, c}}, {nil, []}],
    Names = [{P, tracee}, {Me, tester} | [{V, K} || {K, V} <- Ds, not is_atom(V), not is_tuple(V)]],
    io:format("~p~n", [Name]),
    [show(P, K, D, message(P, K, D, Port), Names) || {K, D} <- Ds],
    show(P, to_port, Port, {no, command}, Names),
    [begin exit(Z, kill), ended(Z) end || Z <- [P, Q]].

far(Tag, Node, Rest) -> binary_to_term(<<131, Tag, 119, (length(Node)), (list_to_binary(Node))/binary, Rest/binary>>).
far_ref(Node, Creation) -> binary_to_term(<<131, 90, 3:16, 119, (length(Node)), (list_to_binary(Node))/binary, Creation:32, 5:32, 6:32, 7:32>>).

message(P, K, D, Port) ->
    case D =:= Port orelse D =:= told_port orelse D =:= {told_port, node()} of
        true -> {P, {command, "x"}};
        false -> {m, K}
    end.

show(P, K, D, M, Names) ->
    erlang:trace(P, true, [send]),
    P ! {go, D, M},
    {R, Token, Saved} = receive {P, A, B, C} -> {A, B, C} end,
    Ref = erlang:trace_delivered(P),
    receive {trace_delivered, P, Ref} -> ok end,
    [io:format("    ~0p~n", [named({K, T}, Names)]) || T <- [R, got(), Token, Saved]].

got() ->
    receive
        {trace, _, _, {tell, _}, _} -> got();
        T when element(1, T) =:= trace -> [T | got()]
    after 0 -> []
    end.

named(X, Names) ->
    case lists:keyfind(X, 1, Names) of
        {_, N} -> N;
        false when is_tuple(X) -> list_to_tuple([named(E, Names) || E <- tuple_to_list(X)]);
        false when is_list(X) -> [named(E, Names) || E <- X];
        false when is_pid(X); is_port(X); is_reference(X) -> other;
        false -> X
    end.

ended(P) -> R = monitor(process, P), receive {'DOWN', R, _, _, _} -> ok end.

served(F, Tester) ->
    receive
        {go, D, M} ->
            Me = self(),
            process_flag(save_calls, 10),
            R = try F(D, M) of V -> {ok, V} catch C:E -> {C, E} end,
            {last_calls, L} = process_info(Me, last_calls),
            process_flag(save_calls, 0),
            T = spawn(fun() -> collect([]) end),
            seq_trace:set_system_tracer(T),
            seq_trace:set_token(send, true),
            try F(D, M) catch _:_ -> ok end,
            seq_trace:set_token([]),
            seq_trace:set_system_tracer(false),
            T ! {tell, Me},
            receive {T, Told} -> ok end,
            erlang:trace(Me, false, [send]),
            Tester ! {Me, R, [element(3, X) || X <- Told], [S || S <- L, saved(S)]},
            served(F, Tester)
    end.

%% What the libraries do about a wrong argument is no concern here.
saved({erlang, F, _}) -> lists:member(F, [send, '!', send_nosuspend]);
saved(S) -> is_atom(S).

collect(L) -> receive {tell, P} -> P ! {self(), lists:reverse(L)}; M -> collect([M | L]) end.
