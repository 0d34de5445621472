%% Processes are registered by others at once, even while they run a native that nothing interrupts,
%% and not after their end. @stress @fence @shared
-module(names_given_to_processes).
-export([main/0]).

show(What, F) ->
    R = try F() catch C:E -> {C, E} end,
    io:format("~0p: ~0p~n", [What, R]).

%% A process that is in a native for so long.
busy(Ms) ->
    Me = self(),
    P = spawn(fun() -> Me ! {begins, self()}, erts_debug:dirty_io(wait, Ms), receive stop -> ok after 2000 -> ok end end),
    receive {begins, P} -> ok end,
    timer:sleep(50),
    P.

ended(P) ->
    R = monitor(process, P),
    receive {'DOWN', R, _, _, _} -> ok end.

main() ->
    logger:set_primary_config(level, none),
    erts_debug:set_internal_state(available_internal_state, true),
    at_once(),
    killed(),
    taken(),
    told(),
    many(),
    ok.

at_once() ->
    T0 = erlang:monotonic_time(millisecond),
    P = busy(1000),
    Q = spawn(fun() -> receive stop -> ok end end),
    show(register, fun() -> register(a_name, P) end),
    show(whereis, fun() -> whereis(a_name) =:= P end),
    show(registered, fun() -> lists:member(a_name, registered()) end),
    show(again, fun() -> register(a_name, P) end),
    show(another, fun() -> register(b_name, P) end),
    show(taken, fun() -> register(a_name, Q) end),
    show(unregister, fun() -> unregister(a_name) end),
    show(whereis, fun() -> {whereis(a_name), lists:member(a_name, registered())} end),
    show(unregister, fun() -> unregister(a_name) end),
    show(other, fun() -> register(a_name, Q) end),
    show(another, fun() -> register(b_name, P) end),
    T1 = erlang:monotonic_time(millisecond),
    show(in_time, fun() -> T1 - T0 < 900 end),
    show(info, fun() -> process_info(P, registered_name) end),
    show(info, fun() -> process_info(Q, registered_name) end),
    b_name ! stop,
    a_name ! stop,
    ended(P), ended(Q),
    show(ended, fun() -> {whereis(a_name), whereis(b_name)} end),
    show(ended, fun() -> register(a_name, P) end).

killed() ->
    P = busy(300),
    show(register, fun() -> register(a_name, P) end),
    exit(P, kill),
    ended(P),
    show(killed, fun() -> {whereis(a_name), lists:member(a_name, registered())} end),
    show(free, fun() -> register(a_name, self()) end),
    show(free, fun() -> unregister(a_name) end),
    %% All that asks behind the signal hears of the end when it is one: the owner of many tables has
    %% none.
    Tables = [list_to_atom("table_" ++ integer_to_list(I)) || I <- lists:seq(1, 300)],
    Left = fun() -> {whereis(a_name), length([T || T <- Tables, ets:whereis(T) =/= undefined])} end,
    Asks = [{monitor, fun(Owner) -> ended(Owner) end},
        {link, fun(Owner) -> process_flag(trap_exit, true), catch link(Owner), receive {'EXIT', Owner, W} -> W end end},
        {info, fun(Owner) -> process_info(Owner, reductions) end}],
    [begin
        Me = self(),
        Owner = spawn(fun() ->
            [ets:new(T, [named_table, public]) || T <- Tables],
            Me ! made,
            erts_debug:dirty_io(wait, 100),
            receive stop -> ok after 2000 -> ok end
        end),
        receive made -> ok end,
        timer:sleep(20),
        register(a_name, Owner),
        exit(Owner, kill),
        Ask(Owner),
        show(What, Left)
    end || _ <- [1, 2, 3], {What, Ask} <- Asks].

%% What the process itself wants meanwhile.
taken() ->
    Me = self(),
    P = spawn(fun() ->
        Me ! begins,
        erts_debug:dirty_io(wait, 300),
        R = [catch register(own_name, self()), catch unregister(a_name), catch register(own_name, self())],
        Me ! {[case X of {'EXIT', {W, _}} -> W; W -> W end || X <- R], process_info(self(), registered_name)},
        receive stop -> ok end
    end),
    receive begins -> ok end,
    timer:sleep(50),
    show(register, fun() -> register(a_name, P) end),
    receive {R, I} -> io:format("~0p ~0p~n", [R, I]) end,
    show(whereis, fun() -> {whereis(a_name), whereis(own_name) =:= P} end),
    show(info, fun() -> process_info(P, registered_name) end),
    own_name ! stop,
    ended(P).

told() ->
    P = spawn(fun() -> receive stop -> ok end end),
    erlang:trace(P, true, [procs]),
    register(a_name, P), unregister(a_name), register(b_name, P), unregister(b_name),
    R = erlang:trace_delivered(P),
    process_info(P, links),
    receive {trace_delivered, P, R} -> ok end,
    P ! stop, ended(P),
    timer:sleep(20),
    io:format("~0p~n", [(fun F() -> receive {trace, P, T, N} -> [{T, N} | F()] after 0 -> [] end end)()]).

%% Processes that end while they are named.
many() ->
    Names = [list_to_atom("name_" ++ integer_to_list(I)) || I <- lists:seq(1, 20)],
    [begin
        Ps = [spawn(fun() -> case N rem 3 of 0 -> ok; 1 -> erlang:yield(), exit(some); 2 -> receive stop -> ok end end end) || _ <- Names],
        Ms = [monitor(process, P) || P <- Ps],
        [catch register(A, P) || {A, P} <- lists:zip(Names, Ps)],
        [catch unregister(A) || N rem 2 =:= 0, A <- Names],
        [P ! stop || P <- Ps],
        [receive {'DOWN', M, _, _, _} -> undefined = whereis(A) end || {A, M} <- lists:zip(Names, Ms)]
    end || N <- lists:seq(1, 200)],
    io:format("~0p~n", [[A || A <- Names, lists:member(A, registered())]]).
