%% Unreferenced atoms are collected. Atoms stay that lists, dictionaries, messages, tables,
%% persistent terms, timers, monitors by name and their tags, funs, names of processes and ports,
%% data of ports, continuations, patterns of traces, pids of other nodes, or binaries that are
%% decoded later refer to. @atoms @stress @fence @shared @seconds 120
-module(collected_atoms).
-export([main/0, loop/1, traced/1]).

main() ->
    Holders = [{Kind, holder(Kind)} || Kind <- [list, dictionary, message, table, key, persistent, timer, monitor, closure, name, map,
                                                table_name, export, tag, port_data, port_name,
                                                continuation, hibernated, far, trace, alone]],
    [begin
         spend(Round, 1500),
         [io:format("~p: ~p~n", [Kind, check(Kind, Pid)]) || {Kind, Pid} <- Holders]
     end || Round <- [1, 2]],
    [exit(Pid, kill) || {_, Pid} <- Holders],
    %% A name that died and is made again is an atom like all others.
    Again = atom("spent_1_", 7),
    io:format("~p ~p ~p~n", [Again, Again =:= atom("spent_1_", 7), lists:sort([atom("b", 1), atom("a", 1), Again])]),
    io:format("~p~n", [binary_to_term(term_to_binary([atom("sent", I) || I <- [1, 2, 3]]))]),
    init:stop().

atom(Kind, N) ->
    list_to_atom(lists:concat([Kind, "_", N])).

%% Atoms that are dead at once.
spend(_, 0) -> ok;
spend(Round, N) ->
    A = list_to_atom(lists:concat(["spent_", Round, "_", N])),
    true = is_atom(A),
    spend(Round, N - 1).

names(Kind) ->
    [lists:concat([Kind, "_", N]) || N <- lists:seq(1, 20)].

%% Whether the names of all atoms are still there, and lead to the same atoms.
same(Kind, Atoms) ->
    {[atom_to_list(A) || A <- Atoms] =:= names(Kind), [list_to_existing_atom(N) || N <- names(Kind)] =:= Atoms}.

check(Kind, Pid) ->
    Pid ! {check, self()},
    receive {Pid, Atoms} -> same(Kind, Atoms) after 30000 -> {Kind, timeout} end.

holder(Kind) ->
    Me = self(),
    Pid = spawn(fun() ->
        Get = hold(Kind, [list_to_atom(N) || N <- names(Kind)]),
        Me ! {self(), ready},
        loop(Get)
    end),
    receive {Pid, ready} -> Pid end.

loop(Get) ->
    receive {check, From} -> From ! {self(), Get()} end,
    loop(Get).

%% Leaves the atoms in one place, and returns a function that gets them from there.
hold(list, Atoms) ->
    fun() -> Atoms end;
hold(dictionary, Atoms) ->
    [put({key, N}, A) || {N, A} <- lists:zip(lists:seq(1, 20), Atoms)],
    fun() -> [get({key, N}) || N <- lists:seq(1, 20)] end;
hold(message, Atoms) ->
    self() ! {kept, Atoms},
    fun() -> receive {kept, As} -> self() ! {kept, As}, As end end;
hold(table, Atoms) ->
    T = ets:new(t, [ordered_set]),
    [ets:insert(T, {N, A}) || {N, A} <- lists:zip(lists:seq(1, 20), Atoms)],
    fun() -> [A || {_, A} <- ets:tab2list(T)] end;
hold(key, Atoms) ->
    T = ets:new(t, [compressed]),
    [ets:insert(T, {A, N}) || {N, A} <- lists:zip(lists:seq(1, 20), Atoms)],
    fun() -> [A || {A, _} <- lists:keysort(2, ets:tab2list(T))] end;
hold(persistent, Atoms) ->
    persistent_term:put(?MODULE, Atoms),
    fun() -> persistent_term:get(?MODULE) end;
hold(timer, Atoms) ->
    [erlang:send_after(1000, self(), {timer, N, A}) || {N, A} <- lists:zip(lists:seq(1, 20), Atoms)],
    fun() ->
        As = [receive {timer, N, A} -> A end || N <- lists:seq(1, 20)],
        [erlang:send_after(1000, self(), {timer, N, A}) || {N, A} <- lists:zip(lists:seq(1, 20), As)],
        As
    end;
hold(monitor, Atoms) ->
    Watch = fun(As) ->
        [begin
             Pid = spawn(fun() -> receive stop -> ok end end),
             register(A, Pid),
             erlang:monitor(process, A),
             unregister(A),
             Pid
         end || A <- As]
    end,
    put(watched, Watch(Atoms)),
    fun() ->
        As = [begin Pid ! stop, receive {'DOWN', _, process, {A, _}, _} -> A end end || Pid <- get(watched)],
        put(watched, Watch(As)),
        As
    end;
hold(closure, Atoms) ->
    Funs = [fun() -> A end || A <- Atoms],
    fun() -> [F() || F <- Funs] end;
hold(name, Atoms) ->
    Pids = [begin P = spawn(fun() -> receive stop -> ok end end), register(A, P), P end || A <- Atoms],
    fun() -> [element(2, process_info(P, registered_name)) || P <- Pids] end;
hold(map, Atoms) ->
    M = maps:from_list(lists:zip(Atoms, lists:seq(1, 20))),
    fun() -> [A || {A, _} <- lists:keysort(2, maps:to_list(M))] end;
hold(table_name, Atoms) ->
    Tables = [ets:whereis(ets:new(A, [named_table])) || A <- Atoms],
    fun() -> [ets:info(T, name) || T <- Tables] end;
hold(export, Atoms) ->
    Funs = [fun A:A/1 || A <- Atoms],
    fun() -> [element(2, erlang:fun_info(F, module)) || F <- Funs] end;
hold(tag, Atoms) ->
    Watch = fun(As) ->
        [begin
             Pid = spawn(fun() -> receive stop -> ok end end),
             erlang:monitor(process, Pid, [{tag, A}]),
             Pid
         end || A <- As]
    end,
    put(tagged, Watch(Atoms)),
    fun() ->
        As = [begin Pid ! stop, receive {A, _, process, Pid, _} -> A end end || Pid <- get(tagged)],
        put(tagged, Watch(As)),
        As
    end;
hold(port_data, Atoms) ->
    Ports = [begin P = open_port({spawn, "cat"}, []), erlang:port_set_data(P, A), P end || A <- Atoms],
    fun() -> [erlang:port_get_data(P) || P <- Ports] end;
hold(port_name, Atoms) ->
    Ports = [begin P = open_port({spawn, "cat"}, []), register(A, P), P end || A <- Atoms],
    fun() -> [element(2, erlang:port_info(P, registered_name)) || P <- Ports] end;
hold(continuation, Atoms) ->
    T = ets:new(t, [ordered_set]),
    [ets:insert(T, {N, x}) || N <- lists:seq(1, 20)],
    {[_], C} = ets:select(T, [{{'$1', x}, [], [Atoms]}], 1),
    fun() -> {[_], _} = ets:select(C), {[As], _} = ets:select(C), As end;
hold(hibernated, Atoms) ->
    Pid = spawn(fun() -> put(atoms, Atoms), erlang:hibernate(?MODULE, loop, [fun() -> get(atoms) end]) end),
    fun() -> Pid ! {check, self()}, receive {Pid, As} -> As end end;
hold(far, Atoms) ->
    %% Pids of nodes that are unknown.
    Pid = fun(A) ->
        Name = atom_to_binary(A),
        binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, 1:32, 0:32, 1:32>>)
    end,
    Pids = [Pid(A) || A <- Atoms],
    fun() -> [node(P) || P <- Pids] end;
hold(trace, Atoms) ->
    erlang:trace_pattern({?MODULE, traced, 1}, [{[hd(Atoms)], [], [{message, Atoms}]}], [local]),
    fun() ->
        {match_spec, [{[_], [], [{message, As}]}]} = erlang:trace_info({?MODULE, traced, 1}, match_spec),
        As
    end;
hold(alone, Atoms) ->
    %% No heap has the name: only the monitor does.
    Me = self(),
    Of = fun(A) ->
        Pid = spawn(fun() -> receive stop -> ok end end),
        register(A, Pid),
        spawn(fun() ->
            erlang:monitor(process, A),
            unregister(A),
            Me ! {self(), ready},
            receive {'DOWN', _, process, {Name, _}, _} -> Me ! {self(), Name} end
        end),
        receive {_, ready} -> Pid end
    end,
    put(alone, [Of(A) || A <- Atoms]),
    fun() ->
        As = [begin Pid ! stop, receive {_, Name} when is_atom(Name) -> Name end end || Pid <- get(alone)],
        put(alone, [Of(A) || A <- As]),
        As
    end.

traced(X) -> X.
