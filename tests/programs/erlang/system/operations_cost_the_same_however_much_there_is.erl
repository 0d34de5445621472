%% Adding and removing one of the many things that a program can have costs as much processor time
%% among very many as among few. `main/0` tries a few kinds; `main(["all" | Names])` all, or those
%% of these names, with 100,000 entries each, and `main(["own" | Names])` also those that are slow
%% on stock (`make costs`). @seconds 120
-module(operations_cost_the_same_however_much_there_is).
-export([main/0, main/1]).

%% Operations that are measured at once.
-define(BATCH, 4000).
%% Milliseconds that a batch is taken to cost at least: what is measured is only that exact.
-define(LEAST, 5).
%% Among many, a batch may cost so many times what it costs among few. Where the cost grows with the
%% number of entries, it is more than twenty times this.
-define(MOST, 8).
%% A batch is measured so many times before it is called too expensive: the machine may be busy.
-define(TRIES, 4).

main() -> run([{K, 80000} || K <- kinds(), lists:member(element(1, K), sample())]).
main(["all" | Names]) -> chosen(kinds(), Names);
main(["own" | Names]) -> chosen(kinds() ++ own_kinds(), Names).

chosen(Kinds, Names) ->
    run([{K, entries(K)} || K <- Kinds, Names =:= [] orelse lists:member(atom_to_list(element(1, K)), Names)]),
    halt(0).

sample() -> [monitors_of_a_port, tables_of_a_process, fixations_of_a_process, suspensions, aliases, dictionary].

%% There may be no more than 65,536 ports.
entries(K) -> case element(1, K) of ports -> 50000; _ -> 100000 end.

%% Name, what makes so many items to be added, what adds one (its value is for what takes it away),
%% what takes one away, and what waits until all of that is done.
kinds() ->
    [{monitors, fun numbers/1, fun(_) -> erlang:monitor(process, other()) end, fun(M) -> erlang:demonitor(M) end, fun wait_for_other/0},
     {monitors_of_a_port, fun numbers/1, fun(_) -> erlang:monitor(port, port()) end, fun(M) -> erlang:demonitor(M) end, fun nothing/0},
     {links, fun idle/1, fun(P) -> link(P), P end, fun(P) -> unlink(P) end, fun nothing/0},
     {links_of_a_port, fun workers/1, call(fun() -> link(port()) end), call(fun() -> unlink(port()) end), fun nothing/0},
     {aliases, fun numbers/1, fun(_) -> alias() end, fun(A) -> unalias(A) end, fun nothing/0},
     {timers, fun numbers/1, fun(_) -> erlang:start_timer(3600000, self(), x) end, fun(T) -> erlang:cancel_timer(T) end, fun nothing/0},
     {timers_of_another, fun numbers/1, fun(_) -> erlang:send_after(3600000, other(), x) end, fun(T) -> erlang:cancel_timer(T) end, fun nothing/0},
     {names, fun named/1, fun({Name, P}) -> register(Name, P), Name end, fun(Name) -> unregister(Name) end, fun nothing/0},
     {tables_of_a_process, fun numbers/1, fun(_) -> ets:new(t, [public]) end, fun(T) -> ets:delete(T) end, fun nothing/0},
     {named_tables, fun names/1, fun(Name) -> ets:new(Name, [named_table]) end, fun(T) -> ets:delete(T) end, fun nothing/0},
     {fixations_of_a_process, fun tables/1, fun(T) -> ets:safe_fixtable(T, true), T end, fun(T) -> ets:safe_fixtable(T, false) end, fun nothing/0},
     {fixations_of_a_table, fun workers/1, call(fun() -> ets:safe_fixtable(table(), true) end), call(fun() -> ets:safe_fixtable(table(), false) end), fun nothing/0},
     {ports, fun numbers/1, fun(_) -> open_port({spawn_driver, "ram_file_drv"}, []) end, fun(P) -> port_close(P) end, fun nothing/0},
     {waiting_senders, fun numbers/1, fun(_) -> S = busy(), spawn(fun() -> catch erlang:port_command(S, "x") end) end, fun(P) -> exit(P, kill) end, fun nothing/0},
     {suspensions, fun idle/1, fun(P) -> erlang:suspend_process(P), P end, fun(P) -> erlang:resume_process(P) end, fun nothing/0},
     {traced_processes, fun idle/1, fun(P) -> erlang:trace(P, true, [call, {tracer, other()}]), P end, fun(P) -> erlang:trace(P, false, [call]) end, fun nothing/0},
     {members_of_groups, fun idle/1, fun(P) -> pg:join({group, P}, P), P end, fun(P) -> pg:leave({group, P}, P) end, fun nothing/0},
     {dictionary, fun numbers/1, fun(I) -> put(I, x), I end, fun(I) -> erase(I) end, fun nothing/0},
     %% To take one away costs in proportion to their number on the stock runtime.
     {persistent_terms, fun numbers/1, fun(I) -> persistent_term:put({?MODULE, I}, I), I end, fun(_) -> ok end, fun nothing/0}].

%% The stock runtime searches lists of these.
own_kinds() ->
    [{waiting_for_a_socket, fun workers/1, call(fun() -> {select, I} = socket:recv(socket(), 0, nowait), put(select, I) end),
      call(fun() -> ok = socket:cancel(socket(), get(select)) end), fun nothing/0}].

run(Kinds) ->
    [io:format("~w: ~ts~n", [element(1, K), apart(fun() -> verdict(K, N) end)]) || {K, N} <- Kinds].

%% In a process of its own, which leaves nothing behind.
apart(F) ->
    {P, M} = spawn_monitor(fun() -> exit({ok, F()}) end),
    receive {'DOWN', M, process, P, R} -> case R of {ok, V} -> V; _ -> io_lib:format("~p", [R]) end end.

verdict(Kind, N) ->
    process_flag(trap_exit, true),
    {_, Make, _, _, _} = Kind,
    Items = Make(N + ?BATCH),
    prepare(),
    Few = phases(Kind, lists:sublist(Items, ?BATCH), [], ?TRIES, [-1, -1, -1]),
    {Free, Rest} = lists:split(?BATCH, Items),
    {_, _, Add, _, Done} = Kind,
    Old = [{I, Add(I)} || I <- Rest],
    Done(),
    V = case phases(Kind, Free, Old, ?TRIES, [?MOST * max(T, ?LEAST) || T <- Few]) of
            ok -> "the same";
            Many -> io_lib:format("~w ms for what is ~w ms among few (to add; to take the last; to take the first)", [Many, Few])
        end,
    finish(Items),
    V.

%% Processor time of each kind of operation: the least of so many tries, or `ok` once none costs
%% more than it may.
phases(Kind, Free, Old, Tries, Most) -> phases(Kind, Free, Old, Tries, Most, [infinity, infinity, infinity]).
phases(_, _, _, 0, _, Best) -> Best;
phases(Kind, Free, Old, Tries, Most, Best) ->
    {_, _, Add, Remove, Done} = Kind,
    {New, A} = cpu(fun() -> V = lists:reverse([{I, Add(I)} || I <- Free]), Done(), V end),
    {_, B} = cpu(fun() -> [Remove(H) || {_, H} <- New], Done() end),
    Again = [{I, Add(I)} || I <- Free],
    Done(),
    {First, Rest} = lists:split(?BATCH, Old ++ Again),
    {_, C} = cpu(fun() -> [Remove(H) || {_, H} <- First], Done() end),
    Now = [min(X, Y) || {X, Y} <- lists:zip(Best, [A, B, C])],
    case lists:all(fun({X, M}) -> X =< M end, lists:zip(Now, Most)) of
        true -> ok;
        false -> phases(Kind, [I || {I, _} <- First], Rest, Tries - 1, Most, Now)
    end.

cpu(F) ->
    erlang:garbage_collect(),
    statistics(runtime),
    V = F(),
    {_, T} = statistics(runtime),
    {V, T}.

numbers(N) -> lists:seq(1, N).
names(N) -> [list_to_atom("costs_" ++ integer_to_list(I)) || I <- lists:seq(1, N)].
named(N) -> lists:zip(names(N), idle(N)).
idle(N) -> [spawn(fun() -> receive never -> ok end end) || _ <- lists:seq(1, N)].
tables(N) -> [ets:new(t, [public]) || _ <- lists:seq(1, N)].
workers(N) ->
    K = self(),
    [spawn(fun() -> worker(K) end) || _ <- lists:seq(1, N)].
worker(K) -> receive F -> F(), K ! {self(), done}, worker(K) end.
call(F) ->
    %% What all share is looked up by the caller.
    fun(P) -> Shared = get(shared), P ! fun() -> put(shared, Shared), F() end, receive {P, done} -> P end end.

prepare() ->
    {ok, S} = socket:open(inet, dgram, udp),
    ok = socket:bind(S, #{family => inet, addr => {127, 0, 0, 1}, port => 0}),
    Other = spawn(fun other_loop/0),
    case whereis(pg) of undefined -> {ok, Pg} = pg:start(pg), put(pg, Pg); _ -> ok end,
    put(shared, #{port => open_port({spawn_driver, "ram_file_drv"}, []), other => Other, table => ets:new(t, [public]), socket => S, busy => full()}).
finish(Items) ->
    [exit(P, kill) || P <- Items, is_pid(P)],
    [exit(P, kill) || {_, P} <- Items],
    exit(other(), kill),
    catch port_close(port()),
    {S, A, L} = maps:get(busy, get(shared)),
    gen_tcp:close(A), gen_tcp:close(L), catch port_close(S),
    socket:close(socket()).
shared(What) -> maps:get(What, get(shared)).
port() -> shared(port).
other() -> shared(other).
table() -> shared(table).
socket() -> shared(socket).
busy() -> element(1, shared(busy)).

%% A connection that takes nothing more.
full() ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {recbuf, 4096}]),
    {ok, No} = inet:port(L),
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, No, [binary, {active, false}, {sndbuf, 4096}, {high_watermark, 8192}, {low_watermark, 4096}]),
    {ok, A} = gen_tcp:accept(L),
    fill(S),
    {S, A, L}.
fill(S) -> case erlang:port_command(S, <<0:80000>>, [nosuspend]) of true -> fill(S); false -> ok end.

other_loop() -> receive {From, wait} -> From ! {self(), here}, other_loop() end.
wait_for_other() -> O = other(), O ! {self(), wait}, receive {O, here} -> ok end.
nothing() -> ok.
