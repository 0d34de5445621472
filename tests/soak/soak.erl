%% A mixed load that goes on for as long as told, and counts: servers under a supervisor that crash
%% at random, tables that are filled and emptied, timers, modules compiled and loaded anew, programs
%% in ports, sockets, large messages.
%%
%%   erl -noshell -run soak main SECONDS [WORKER ...]
%%
%% Workers are those of `?WORKERS`; all of them unless some are named, which then run twice each.
%%
%% Prints a line of counts and memory every ten seconds, then what is left behind. Status 1 if a
%% message was lost, a worker is stuck, processes, ports, timers, tables or shared regions are left,
%% or memory grew.
-module(soak).
-behaviour(supervisor).
-export([main/1, init/1, start_server/1, server/2]).

-define(WORKERS, [{servers, fun servers/1}, {servers, fun servers/1}, {tables, fun tables/1}, {timers, fun timers/1},
                  {reloads, fun reloads/1}, {ports, fun ports/1}, {sockets, fun sockets/1}, {sharing, fun sharing/1},
                  {crashes, fun crashes/1}, {monitors, fun monitors/1}]).

main([Seconds | Names]) ->
    Chosen = case Names of
                 [] -> ?WORKERS;
                 _ -> [{N, F} || _ <- [1, 2], {N, F} <- lists:ukeysort(1, ?WORKERS), lists:member(atom_to_list(N), Names)]
             end,
    process_flag(trap_exit, true),
    logger:set_primary_config(level, none),
    {ok, Supervisor} = supervisor:start_link({local, servers}, ?MODULE, []),
    %% What is made once and stays (code, helpers of ports and names) is made before the first
    %% count.
    [{done, _} = once(F) || {_, F} <- Chosen],
    [erlang:garbage_collect(P) || P <- processes()],
    Before = left(),
    Until = now_ms() + list_to_integer(Seconds) * 1000,
    Me = self(),
    Workers = [{spawn_link(fun() -> worker(Me, Name, F, Until, now_ms()) end), Name} || {Name, F} <- Chosen],
    erlang:send_after(10000, self(), tick),
    Memory = watch(maps:from_list(Workers), #{}, Until, []),
    unlink(Supervisor),
    Ref = monitor(process, Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Ref, _, _, _} -> ok end,
    timer:sleep(500),
    [erlang:garbage_collect(P) || P <- processes()],
    After = left(),
    io:format("before ~p~nafter  ~p~n", [Before, After]),
    Left = [K || K <- [processes, ports, tables, regions, region_bytes], maps:get(K, After) > maps:get(K, Before)],
    Grown = grown(Memory),
    io:format("~s~n", [case {Left, Grown} of
                           {[], false} -> "nothing is left, memory is level";
                           {[], true} -> "memory grew";
                           _ -> io_lib:format("left behind: ~p", [Left])
                       end]),
    halt(case {Left, Grown} of {[], false} -> 0; _ -> 1 end).

left() ->
    #{processes => length(processes()) - length([1 || {servers, P} <- [{servers, whereis(servers)}], is_pid(P)]),
      ports => length(erlang:ports()), tables => length(ets:all()), regions => shared(regions), region_bytes => shared(region_bytes)}.

%% What only a runtime that shares terms counts.
shared(What) ->
    try maps:get(What, erlang:system_info(sharing)) catch error:_ -> 0 end.

%% Resident memory of the second half against that of the first, which has warmed up by then.
grown(Memory) when length(Memory) < 12 -> false;
grown(Memory) ->
    {First, Second} = lists:split(length(Memory) div 2, lists:nthtail(2, lists:reverse(Memory))),
    lists:max(Second) > lists:max(First) * 1.25 + 16384.

resident() ->
    case file:read_file("/proc/self/statm") of
        {ok, B} -> [_, R | _] = binary:split(B, <<" ">>, [global]), binary_to_integer(R) * 4;
        _ -> 0
    end.

now_ms() -> erlang:monotonic_time(millisecond).

watch(Workers, Done, _, Memory) when map_size(Workers) =:= 0 -> report(Done, Memory), Memory;
watch(Workers, Done, Until, Memory) ->
    receive
        {done, Name, N} -> watch(Workers, maps:update_with(Name, fun(M) -> M + N end, N, Done), Until, Memory);
        {'EXIT', Pid, normal} -> watch(maps:remove(Pid, Workers), Done, Until, Memory);
        {'EXIT', Pid, Why} when is_map_key(Pid, Workers) ->
            io:format("~s failed: ~0p~n", [maps:get(Pid, Workers), Why]),
            halt(1);
        tick ->
            erlang:send_after(10000, self(), tick),
            case now_ms() > Until + 60000 of
            true ->
                [io:format("~s is stuck: ~0p~n", [N, process_info(P, [current_stacktrace, message_queue_len])]) || {P, N} <- maps:to_list(Workers)],
                halt(1);
            false ->
                report(Done, Memory),
                watch(Workers, Done, Until, [resident() | Memory])
            end
    end.

report(Done, _) ->
    io:format("~s; ~b regions, ~b MiB~n", [lists:join(", ", [io_lib:format("~s ~b", [K, V]) || {K, V} <- lists:sort(maps:to_list(Done))]), shared(regions), resident() div 1024]).

%% One round in a process of its own, so that everything it made ends with it.
once(F) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({done, F(rand:uniform(1 bsl 30))}) end),
    receive {'DOWN', Ref, _, Pid, R} -> R end.

%% Tells at most ten times a second, so that the watcher sleeps in between.
worker(Watcher, Name, F, Until, Said) ->
    {done, N} = once(F),
    Now = now_ms(),
    put(count, case get(count) of undefined -> N; M -> M + N end),
    Tell = Now - Said >= 100 orelse Now >= Until,
    Tell andalso begin Watcher ! {done, Name, erase(count)} end,
    case Now >= Until of
        true -> ok;
        false -> worker(Watcher, Name, F, Until, case Tell of true -> Now; false -> Said end)
    end.

%% Servers that answer, and die of what they are asked now and then.
init([]) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 1000000, period => 1},
          [#{id => server, start => {?MODULE, start_server, []}, restart => temporary}]}}.
start_server(State) -> {ok, proc_lib:spawn_link(?MODULE, server, [State, 0])}.
server(State, N) ->
    receive
        {From, Ref, add, X} -> From ! {Ref, N + X}, server(State, N + X);
        {_, _, crash} -> error(State);
        stop -> ok
    after 20000 -> exit(forgotten)
    end.

servers(Seed) ->
    rand:seed(exsss, Seed),
    L = [begin {ok, P} = supervisor:start_child(servers, [lists:seq(1, rand:uniform(50))]), P end || _ <- lists:seq(1, 20)],
    Sum = lists:sum([begin R = monitor(process, P), N = ask(P, R, 50, 0), demonitor(R, [flush]), N end || P <- L]),
    true = Sum =:= 20 * 50,
    Refs = [begin R = monitor(process, P), P ! case rand:uniform(2) of 1 -> {self(), R, crash}; 2 -> stop end, R end || P <- L],
    [receive {'DOWN', R, _, _, _} -> ok after 30000 -> error(stuck) end || R <- Refs],
    Sum.
ask(_, _, 0, N) -> N;
ask(P, R, K, _) ->
    P ! {self(), R, add, 1},
    receive {R, N} -> ask(P, R, K - 1, N); {'DOWN', R, _, _, Why} -> error({gone, Why}) after 30000 -> error(lost) end.

tables(_) ->
    T = ets:new(t, [public, element(1 + rand:uniform(2), {x, set, ordered_set})]),
    [true = ets:insert(T, {I, lists:seq(1, I rem 20), <<I:512>>}) || I <- lists:seq(1, 2000)],
    Me = self(),
    Ps = [spawn_link(fun() -> N = length([1 || I <- lists:seq(K, 2000, 4), ets:lookup(T, I) =/= []]), Me ! {found, N} end) || K <- lists:seq(1, 4)],
    2000 = lists:sum([receive {found, N} -> N after 30000 -> error(lost) end || _ <- Ps]),
    2000 = ets:select_delete(T, [{'_', [], [true]}]),
    persistent_term:put({?MODULE, key}, lists:seq(1, rand:uniform(100))),
    persistent_term:erase({?MODULE, key}),
    2000.

timers(_) ->
    Refs = [begin R = make_ref(), {R, erlang:send_after(rand:uniform(20), self(), R)} end || _ <- lists:seq(1, 500)],
    {Stopped, Kept} = lists:split(100, Refs),
    Lost = length([1 || {R, T} <- Stopped, erlang:cancel_timer(T) =:= false,
                                          %% A timer that is over may still be about to send.
                                          receive R -> false after 30000 -> true end]),
    0 = Lost,
    [receive R -> ok after 30000 -> error(lost) end || {R, _} <- Kept],
    500.

reloads(_) ->
    V = rand:uniform(1000000),
    Forms = [{attribute, 1, module, soak_loaded}, {attribute, 1, export, [{version, 0}, {wait, 0}]},
             {function, 1, version, 0, [{clause, 1, [], [], [{integer, 1, V}]}]},
             {function, 2, wait, 0, [{clause, 2, [], [], [{'receive', 2, [{clause, 2, [{atom, 2, go}], [], [{integer, 2, V}]}]}]}]}],
    {ok, M, B} = compile:forms(Forms, []),
    code:purge(M),
    {module, M} = code:load_binary(M, "soak_loaded.erl", B),
    V = M:version(),
    {P, R} = spawn_monitor(fun() -> exit({went, M:wait()}) end),
    P ! go,
    receive {'DOWN', R, _, _, {went, V}} -> 1 after 30000 -> error(stuck) end.

ports(_) ->
    Port = open_port({spawn_executable, "/bin/cat"}, [binary, {packet, 4}, exit_status]),
    Parts = [binary:copy(<<I>>, rand:uniform(20000)) || I <- lists:seq(1, 20)],
    [true = port_command(Port, P) || P <- Parts],
    [receive {Port, {data, P}} -> ok after 30000 -> error(lost) end || P <- Parts],
    true = port_close(Port),
    "soak\n" = os:cmd("echo soak"),
    20.

sockets(_) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {packet, 4}, {ip, {127, 0, 0, 1}}, {reuseaddr, true}]),
    {ok, Number} = inet:port(L),
    Server = spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), echo(S) end),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Number, [binary, {active, false}, {packet, 4}]),
    [begin B = binary:copy(<<I>>, rand:uniform(10000)), ok = gen_tcp:send(C, [B, "x", B]), {ok, Back} = gen_tcp:recv(C, 0, 30000),
           true = Back =:= <<B/binary, "x", B/binary>> end || I <- lists:seq(1, 50)],
    R = monitor(process, Server),
    ok = gen_tcp:close(C),
    receive {'DOWN', R, _, _, normal} -> ok after 30000 -> error(stuck) end,
    ok = gen_tcp:close(L),
    50.
echo(S) -> case gen_tcp:recv(S, 0, 30000) of {ok, B} -> ok = gen_tcp:send(S, B), echo(S); {error, closed} -> ok end.

sharing(Seed) -> soak_sharing:round(Seed).

crashes(_) ->
    process_flag(trap_exit, true),
    Ps = [spawn_link(fun() -> case rand:uniform(4) of 1 -> error(oops); 2 -> exit(lists:seq(1, 100)); 3 -> throw(x); 4 -> exit(self(), kill) end end)
          || _ <- lists:seq(1, 100)],
    [receive {'EXIT', P, _} -> ok after 30000 -> error(stuck) end || P <- Ps],
    100.

monitors(_) ->
    Ps = [spawn(fun() -> receive after infinity -> ok end end) || _ <- lists:seq(1, 100)],
    Refs = [monitor(process, P, [{alias, demonitor}]) || P <- Ps],
    [exit(P, kill) || P <- Ps],
    [receive {'DOWN', R, _, _, killed} -> ok after 30000 -> error(stuck) end || R <- Refs],
    Name = list_to_atom("soak" ++ integer_to_list(rand:uniform(10))),
    catch register(Name, self()),
    100.
