%% One cluster of several runtimes and releases: what each member does with each other one.
%% `scripts/cluster.sh` starts the members and this module's `main` in a hidden node beside them.
%% Compiled by the oldest release of all.
%%
%% `main [Member...]` prints a line for each pair, `FROM -> TO: what worked`, and for what didn't
%% `FAILED FROM -> TO: what, why`.
-module(cluster).
-export([main/1, member/0, checks/1, echo/0, table/1, write/1, read/1, sleep/0]).

-define(WAIT, 60000).
-define(TABLE, cluster_table).

%% A member: it waits until it is told to end.
member() ->
    {ok, _} = pg:start(?MODULE),
    ok.

main(Names) ->
    Nodes = [list_to_atom(N) || N <- Names],
    [wait_for(N, 600) || N <- Nodes],
    Failed = lists:sum([pair(A, B) || A <- Nodes, B <- Nodes, A =/= B]) + mnesia(Nodes),
    io:format("~b members, ~b faults~n", [length(Nodes), Failed]),
    [erpc:cast(N, init, stop, []) || N <- Nodes],
    halt(min(Failed, 1)).

wait_for(N, 0) -> io:format("FAILED ~s: not there~n", [N]), halt(1);
wait_for(N, Times) ->
    case net_adm:ping(N) =:= pong andalso rpc:call(N, erlang, whereis, [?MODULE]) of
        P when is_pid(P) -> ok;
        _ -> receive after 100 -> wait_for(N, Times - 1) end
    end.

pair(A, B) ->
    Results = case rpc:call(A, ?MODULE, checks, [B], 10 * ?WAIT) of
        L when is_list(L) -> L;
        Other -> [{all, Other}]
    end,
    Good = [atom_to_list(W) || {W, ok} <- Results],
    io:format("~s -> ~s: ~s~n", [short(A), short(B), lists:join(" ", Good)]),
    Bad = [R || {_, V} = R <- Results, V =/= ok],
    [io:format("FAILED ~s -> ~s: ~p, ~0P~n", [short(A), short(B), W, V, 60]) || {W, V} <- Bad],
    length(Bad).

short(N) -> hd(string:split(atom_to_list(N), "@")).

%% What this node can do with another.
checks(B) ->
    [{Name, try F(B) of ok -> ok; true -> ok; Other -> {value, Other} catch C:R:S -> {C, R, S} end} || {Name, F} <- [
        {ping, fun(N) -> net_adm:ping(N) =:= pong end},
        {rpc, fun rpc/1}, {erpc, fun erpc/1}, {spawn, fun spawned/1}, {link, fun linked/1}, {monitor, fun monitored/1},
        {alias, fun aliased/1}, {large, fun large/1}, {leader, fun leader/1}, {code, fun code/1},
        {global, fun globally/1}, {pg, fun groups/1}, {trace, fun traced/1}, {atoms, fun atoms/1}, {priority, fun priority/1}]].

rpc(N) ->
    N = rpc:call(N, erlang, node, []),
    {badrpc, {'EXIT', {why, [_ | _]}}} = rpc:call(N, erlang, error, [why]),
    Key = rpc:async_call(N, lists, seq, [1, 1000]),
    L = lists:seq(1, 1000),
    L = rpc:yield(Key),
    {[N, N], []} = rpc:multicall([N, N], erlang, node, []),
    ok.

erpc(N) ->
    F = fun(X) -> fun() -> {X, node()} end end,
    {7, N} = erpc:call(N, F(7)),
    ok = try erpc:call(N, erlang, error, [why]) catch error:{exception, why, [_ | _]} -> ok end,
    ok = try erpc:call(N, erlang, throw, [it]) catch throw:it -> ok end,
    [{ok, N}, {throw, x}] = [hd(erpc:multicall([N], erlang, node, [])), hd(erpc:multicall([N], erlang, throw, [x]))],
    ok = try erpc:call(N, timer, sleep, [5000], 50) catch error:{erpc, timeout} -> ok end.

spawned(N) ->
    Me = self(),
    R = make_ref(),
    P = spawn(N, erlang, send, [Me, {R, from_there}]),
    N = node(P),
    ok = receive {R, from_there} -> ok after ?WAIT -> timeout end,
    Q = spawn_request(N, erlang, send, [Me, {R, again}], [monitor]),
    {ok, P2} = receive {spawn_reply, Q, ok, X} -> {ok, X} after ?WAIT -> timeout end,
    ok = receive {R, again} -> ok after ?WAIT -> timeout end,
    receive {'DOWN', Q, process, P2, normal} -> ok after ?WAIT -> timeout end.

linked(N) ->
    Old = process_flag(trap_exit, true),
    P = spawn_link(N, ?MODULE, sleep, []),
    exit(P, {reason, #{a => [1.5]}}),
    ok = receive {'EXIT', P, {reason, #{a := [1.5]}}} -> ok after ?WAIT -> timeout end,
    Q = spawn_link(N, ?MODULE, sleep, []),
    unlink(Q),
    exit(Q, kill),
    none = receive {'EXIT', Q, _} -> some after 100 -> none end,
    link(Q),
    ok = receive {'EXIT', Q, noproc} -> ok after ?WAIT -> timeout end,
    process_flag(trap_exit, Old),
    ok.

monitored(N) ->
    {P, M} = spawn_monitor(N, ?MODULE, sleep, []),
    exit(P, over),
    ok = receive {'DOWN', M, process, P, over} -> ok after ?WAIT -> timeout end,
    M2 = monitor(process, {no_such_name, N}),
    ok = receive {'DOWN', M2, process, {no_such_name, N}, noproc} -> ok after ?WAIT -> timeout end,
    M3 = monitor(process, {?MODULE, N}),
    demonitor(M3, [flush]),
    true = is_pid(erpc:call(N, erlang, whereis, [?MODULE])),
    ok.

aliased(N) ->
    E = spawn(N, ?MODULE, echo, []),
    A = alias([reply]),
    E ! {A, one},
    ok = receive {E, one} -> ok after ?WAIT -> timeout end,
    E ! {A, two},
    E ! {self(), three},
    ok = receive {E, two} -> passed; {E, three} -> ok after ?WAIT -> timeout end,
    exit(E, kill),
    %% What `gen_server:call/2` does.
    true = is_list(gen_server:call({kernel_sup, N}, which_children, ?WAIT)),
    ok.

large(N) ->
    E = spawn(N, ?MODULE, echo, []),
    Bin = binary:copy(<<"0123456789">>, 700000),
    Terms = {lists:seq(1, 100000), maps:from_list([{I, {I, <<I:64>>}} || I <- lists:seq(1, 2000)]), 1 bsl 5000, [Bin, Bin]},
    E ! {self(), Terms},
    ok = receive {E, Terms} -> ok after ?WAIT -> timeout end,
    exit(E, kill),
    ok.

echo() -> receive {To, M} -> To ! {self(), M}, echo() end.
sleep() -> receive never -> ok end.

%% What is written there comes out here.
leader(N) ->
    Me = self(),
    Old = group_leader(),
    L = spawn_link(fun() -> Me ! {self(), receive {io_request, From, As, Request} -> From ! {io_reply, As, ok}, Request end} end),
    group_leader(L, self()),
    ok = rpc:call(N, io, put_chars, ["text"]),
    group_leader(Old, self()),
    receive {L, Request} -> [] =/= [E || E <- tuple_to_list(Request), E =:= "text" orelse E =:= <<"text">>] after ?WAIT -> timeout end.

%% Older releases don't load what newer ones compile.
code(N) ->
    case release(N) < release(node()) of
        true -> ok;
        false -> load(N)
    end.

load(N) ->
    Name = list_to_atom(lists:concat([made_, erlang:unique_integer([positive])])),
    {ok, Name, Beam} = compile:forms([{attribute, 1, module, Name}, {attribute, 1, export, [{f, 1}]},
        {function, 1, f, 1, [{clause, 1, [{var, 1, 'X'}], [], [{tuple, 1, [{var, 1, 'X'}, {call, 1, {atom, 1, node}, []}]}]}]}]),
    {module, Name} = rpc:call(N, code, load_binary, [Name, "made", Beam]),
    {5, N} = rpc:call(N, Name, f, [5]),
    true = rpc:call(N, code, delete, [Name]),
    ok.

globally(N) ->
    Name = {made_by, node(), erlang:unique_integer()},
    P = spawn(?MODULE, sleep, []),
    yes = global:register_name(Name, P),
    P = rpc:call(N, global, whereis_name, [Name]),
    true = global:set_lock({Name, self()}),
    false = rpc:call(N, global, set_lock, [{Name, other}, [node(), N], 0]),
    true = global:del_lock({Name, self()}),
    true = rpc:call(N, global, set_lock, [{Name, other}, [node(), N], 5]),
    true = rpc:call(N, global, del_lock, [{Name, other}, [node(), N]]),
    exit(P, kill),
    until(fun() -> rpc:call(N, global, whereis_name, [Name]) =:= undefined end).

groups(N) ->
    Group = {group, node(), erlang:unique_integer()},
    P = spawn(?MODULE, sleep, []),
    ok = pg:join(?MODULE, Group, P),
    ok = until(fun() -> rpc:call(N, pg, get_members, [?MODULE, Group]) =:= [P] end),
    exit(P, kill),
    until(fun() -> rpc:call(N, pg, get_members, [?MODULE, Group]) =:= [] end).

%% A tracer is a process of the node that is traced.
traced(N) ->
    Me = self(),
    erpc:call(N, fun() ->
        Tracer = spawn(fun T() -> receive M -> Me ! {told, M}, T() end end),
        P = spawn(fun T() -> receive M -> Me ! {got, M}, T() end end),
        1 = erlang:trace(P, true, ['receive', {tracer, Tracer}]),
        Me ! {traced, P}
    end),
    P = receive {traced, P0} -> P0 after ?WAIT -> timeout end,
    P ! from_far,
    ok = receive {got, from_far} -> ok after ?WAIT -> timeout end,
    R = receive {told, {trace, P, 'receive', from_far}} -> ok after ?WAIT -> timeout end,
    exit(P, kill),
    R.

%% More atoms than the cache of a connection has places, some of them long and not of Latin-1.
atoms(N) ->
    E = spawn(N, ?MODULE, echo, []),
    All = [list_to_atom(lists:concat([atom_number_, I])) || I <- lists:seq(1, 3000)]
        ++ [list_to_atom(lists:duplicate(255, 16#3b1)), 'with space', ''],
    [begin E ! {self(), L}, receive {E, L} -> ok after ?WAIT -> exit(timeout) end end || L <- [All, lists:reverse(All)]],
    exit(E, kill),
    ok.

%% Between nodes that know it, what is sent by an alias with priority comes before what waits.
priority(N) ->
    case {can(node()), can(N)} of
        {true, true} ->
            Me = self(),
            E = spawn(N, ?MODULE, echo, []),
            A = erpc:call(node(E), erlang, node, []),
            N = A,
            P = alias([priority]),
            %% Ordinary ones first, and then one with priority: this process looks at none before
            %% the last has come.
            D = spawn(N, erlang, apply, [fun() ->
                [Me ! {ordinary, I} || I <- lists:seq(1, 10)],
                erlang:send(P, {urgent, here}, [priority]),
                Me ! sent
            end, []]),
            M = monitor(process, D),
            ok = wait_length(12, 500),
            First = receive X -> X after ?WAIT -> timeout end,
            [receive {ordinary, I} -> ok end || I <- lists:seq(1, 10)],
            receive sent -> ok end,
            receive {'DOWN', M, _, _, _} -> ok after ?WAIT -> timeout end,
            unalias(P),
            exit(E, kill),
            case First of {urgent, here} -> ok; _ -> First end;
        _ -> ok
    end.

can(N) -> release(N) >= 28.
release(N) -> list_to_integer(rpc:call(N, erlang, system_info, [otp_release])).

wait_length(_, 0) -> process_info(self(), message_queue_len);
wait_length(L, Times) ->
    case process_info(self(), message_queue_len) of
        {message_queue_len, N} when N >= L -> ok;
        _ -> receive after 20 -> wait_length(L, Times - 1) end
    end.

until(F) -> until(F, 1000).
until(F, 0) -> {never, F()};
until(F, Times) -> case F() of true -> ok; _ -> receive after 20 -> until(F, Times - 1) end end.

%% A table that all members have, to which each writes.
mnesia([First | Others] = Nodes) ->
    try
        [ok = rpc:call(N, mnesia, start, []) || N <- Nodes],
        {ok, Known} = rpc:call(First, mnesia, change_config, [extra_db_nodes, Others]),
        true = lists:sort(Known) =:= lists:sort(Others),
        ok = rpc:call(First, ?MODULE, table, [Nodes], ?WAIT),
        [ok = rpc:call(N, ?MODULE, write, [100], ?WAIT) || N <- Nodes],
        All = [rpc:call(N, ?MODULE, read, [Nodes], ?WAIT) || N <- Nodes],
        [{_, 100, ok}] = lists:usort([{hd(Nodes), lists:min(Counts), Total} || {Counts, Total} <- All]),
        %% One of them goes, and the others go on.
        Last = lists:last(Nodes),
        stopped = rpc:call(Last, mnesia, stop, []),
        ok = until(fun() -> lists:sort(rpc:call(First, mnesia, system_info, [running_db_nodes])) =:= lists:sort(Nodes -- [Last]) end),
        ok = rpc:call(First, ?MODULE, write, [200], ?WAIT),
        %% Its schema was in memory only.
        ok = rpc:call(Last, mnesia, start, []),
        {ok, [Last]} = rpc:call(First, mnesia, change_config, [extra_db_nodes, [Last]]),
        ok = until(fun() -> lists:sort(rpc:call(First, mnesia, system_info, [running_db_nodes])) =:= lists:sort(Nodes) end),
        io:format("mnesia: ~s~n", [lists:join(" ", [short(N) || N <- Nodes])]),
        0
    catch
        C:R:S ->
            io:format("FAILED mnesia: ~0P~n", [{C, R, S}, 60]),
            1
    end.

table(Nodes) ->
    {atomic, ok} = mnesia:create_table(?TABLE, [{ram_copies, Nodes}]),
    mnesia:wait_for_tables([?TABLE], ?WAIT).

write(N) ->
    {atomic, ok} = mnesia:transaction(fun() ->
        [mnesia:write({?TABLE, {node(), I}, #{from => node(), number => I}}) || I <- lists:seq(1, N)],
        ok
    end),
    ok.

%% How many of each node there are.
read(Nodes) ->
    {atomic, Counts} = mnesia:transaction(fun() ->
        Keys = mnesia:all_keys(?TABLE),
        [length([K || {N, _} = K <- Keys, N =:= M]) || M <- Nodes]
    end),
    {Counts, case mnesia:table_info(?TABLE, size) =:= lists:sum(Counts) of true -> ok; false -> differs end}.
