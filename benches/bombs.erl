%% Programs that exceed a budget, each beside a server that answers every millisecond. Only Purlin
%% has budgets.
%%
%% `purlin erl -noshell -run bombs main [loading] [Name...]` prints a table with a row for each
%% bomb: how it ends, the peak in MiB by the bill and by the resident set above what there was
%% before, what the bill and the resident set say at the end, the time beyond the limit, and the
%% server's p99 alone and beside the bomb. With `loading`, modules are
%% compiled and loaded meanwhile.
-module(bombs).
-export([main/0, main/1, init/1, start_child/0]).

-define(LIMIT, (32 bsl 20)).

all() ->
    [fork, binary, binaries, heap, message, binary_message, region_message, table, binary_table,
     large_table, update_table, timer, atom, busy, native, port, persistent, dictionary, iolist,
     logger, links, names, code, re, unicode, supervisor, catching, writable, outside,
     %% As an attacker would: many ways of each kind.
     maps, merges, map_update, bignum, bignums, integers, select, tab2list, match_spec,
     term_to_binary, term_to_binaries, binary_to_term, requests, monitors, tasks, sub_binaries,
     parts, matches, two, two_tables, ring, persistent_terms, persistent_maps, persistent_new,
     port_output, port_lines, port_packets, tuples, appends, dag_message, dag_table, dag_spawn,
     funs, counters, timers_many, timer_server, atoms_safe, sorts, strings, hibernate, aliases,
     copied_appends, comprehensions, port_iolists, key_table, replaced, tree, term_atoms, sequences,
     copies, ports_of_children, insert_lists,
     %% Other shapes of the same kinds.
     deep, deep_try, alias_flood, timer_flood, node_flood, bag, counter_keys, fixed_table, give_away,
     heirs, scanned_atoms, json_atoms, printed_atoms, respawn, monitor_chain, zlib_bomb,
     compressed_term, compressing, dirty, power, digits, read_zeros, first_heaps, arrays, tracer,
     busy_high, ping_pong, peeking, forced, modules, growing, growing_slowly, flattening].

main() -> main([]).
main(["loading" | Names]) ->
    spawn_link(fun() -> loads(0) end),
    main(Names);
main(Names) ->
    logger:set_primary_config(level, none),
    Run = case Names of
        [] -> all();
        _ -> [list_to_atom(N) || N <- Names]
    end,
    io:format("| bomb | end | bill, peak | resident, peak | bill, end | resident, end | ms beyond "
              "| p99 alone | p99 beside | ratio | limits reached |~n"
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |~n"),
    register(bombs_outside, spawn(fun outside_process/0)),
    [one(N) || N <- Run],
    halt().

%% A process without a budget, which owns what is given to it.
outside_process() -> receive {'ETS-TRANSFER', _, _, _} -> outside_process() end.

loads(N) ->
    {ok, M, Bin} = compile:forms([{attribute, 1, module, bomb_load}, {attribute, 1, export, [{f, 0}]},
        {function, 1, f, 0, [{clause, 1, [], [], [{integer, 1, N}]}]}], []),
    code:purge(M),
    {module, M} = code:load_binary(M, "bomb_load", Bin),
    N = M:f(),
    timer:sleep(5),
    loads(N + 1).

one(Name) ->
    erlang:garbage_collect(),
    {Alone, _} = server(700, fun() -> ok end),
    Base = rss(),
    {ok, B} = purlin:budget(limits(Name)),
    Sampler = sampler(B),
    {Beside, End} = server(1500, fun() ->
        {_, R} = spawn_opt(fun() -> bomb(Name) end, [{budget, B}, monitor]),
        R
    end),
    Sampler ! {stop, self()},
    {Peak, Over} = receive {sampled, P, O} -> {P, O} end,
    #{peak := #{memory := Billed}, reached := Reached, use := #{memory := Use}} =
        purlin:budget_info(B),
    Held = rss() - Base,
    purlin:end_budget(B),
    gone(B, 300),
    {A, Z} = {p99(Alone), p99(Beside)},
    io:format("| ~s | ~s | ~.1f | ~.1f | ~.1f | ~.1f | ~w | ~w | ~w | ~.2f | ~s |~n",
              [Name, brief(End), mb(Billed), mb(Peak - Base), mb(Use), mb(Held), Over, A, Z, Z / A,
               lists:join(" ", [io_lib:format("~s ~w", [K, V]) || {K, V} <- maps:to_list(Reached), V > 0])]).

gone(_, 0) -> io:format("  still there~n");
gone(B, N) ->
    try purlin:budget_info(B) of _ -> timer:sleep(10), gone(B, N - 1)
    catch error:badarg -> ok end.

%% A reason may hold a term that takes gigabytes as text.
brief(T) -> string:slice(io_lib:format("~0P", [T, 12]), 0, 40).
mb(N) -> N / 1048576.

limits(busy_high) -> #{name => busy_high, cpu => 10};
limits(ping_pong) -> #{name => ping_pong, cpu => 10, memory => ?LIMIT};
limits(busy) -> #{name => busy, cpu => 10};
limits(native) -> #{name => native, cpu => 10};
limits(re) -> #{name => re, cpu => 10, memory => ?LIMIT};
limits(unicode) -> #{name => unicode, cpu => 50, memory => ?LIMIT};
limits(message) -> #{name => message, memory => ?LIMIT, cpu => 50};
limits(Name) -> #{name => Name, memory => ?LIMIT, processes => 2000, atoms => 500, ports => 50,
                  tables => 50, cpu => 50}.

%% A server that is asked every millisecond, for so many milliseconds: microseconds of each answer.
server(For, Start) ->
    Server = spawn(fun serve/0),
    Self = self(),
    spawn_opt(fun() ->
        Until = erlang:monotonic_time(millisecond) + For,
        Self ! {times, ask(Server, Until, [])}
    end, []),
    R = Start(),
    Times = receive {times, T} -> T end,
    exit(Server, kill),
    End = receive {'DOWN', R, _, _, Why} -> Why after 0 -> held end,
    {Times, End}.

serve() ->
    receive {ask, P, R} -> P ! {R, lists:sum(lists:seq(1, 50))} end,
    serve().

ask(Server, Until, Times) ->
    case erlang:monotonic_time(millisecond) >= Until of
        true -> Times;
        false ->
            receive after 1 -> ok end,
            T0 = erlang:monotonic_time(microsecond),
            R = make_ref(),
            Server ! {ask, self(), R},
            receive {R, _} -> ok end,
            ask(Server, Until, [erlang:monotonic_time(microsecond) - T0 | Times])
    end.

p99(L) -> lists:nth(max(1, length(L) div 100), lists:reverse(lists:sort(L))).

%% The largest resident set, and the milliseconds from the first to the last sample with more used
%% than the limit.
sampler(B) -> spawn_opt(fun() -> sample(B, 0, none, none) end, [{priority, high}]).

sample(B, Peak, First, Last) ->
    receive
        {stop, P} -> P ! {sampled, Peak, case First of none -> 0; _ -> Last - First end}
    after 4 ->
        R = rss(),
        Now = erlang:monotonic_time(millisecond),
        {F, L} = case purlin:budget_info(B) of
            #{limits := #{memory := M}, use := #{memory := U}} when U > M ->
                {case First of none -> Now; _ -> First end, Now};
            _ -> {First, Last}
        end,
        sample(B, max(Peak, R), F, L)
    end.

rss() ->
    {ok, F} = file:open("/proc/self/statm", [read, raw]),
    {ok, L} = file:read(F, 100),
    file:close(F),
    [_, R | _] = string:lexemes(L, " "),
    list_to_integer(R) * 4096.

idle() -> receive stop -> ok end.

bomb(fork) -> forks();
bomb(binary) -> exit([catching(fun() -> binary:copy(<<0>>, 100 bsl 20) end),
                      catching(fun() -> <<0:(800 bsl 20)>> end),
                      catching(fun() -> list_to_binary([<<0:(80 bsl 20)>> || _ <- lists:seq(1, 10)]) end)]);
bomb(binaries) -> binaries([]);
bomb(heap) -> heap([]);
bomb(message) -> messages(self());
bomb(binary_message) -> binary_messages(self());
bomb(region_message) -> region_messages(self());
bomb(table) -> table(ets:new(x, []), 0);
bomb(binary_table) -> binary_table(ets:new(x, []), 0);
bomb(large_table) -> large_table(ets:new(x, []), 0);
bomb(update_table) -> T = ets:new(x, []), ets:insert(T, {k, a}), update_table(T, []);
bomb(timer) -> timers(0);
bomb(atom) -> atoms(0);
bomb(busy) -> [spawn(fun busy/0) || _ <- lists:seq(1, 100)], busy();
bomb(native) -> natives();
bomb(port) -> ports();
bomb(persistent) -> persistent(0);
bomb(dictionary) -> dictionary(0);
bomb(iolist) -> iolists([<<0:800000>>]);
bomb(logger) -> logger:set_primary_config(level, all), storm(0);
bomb(links) -> links();
bomb(names) -> names(0);
bomb(code) -> code(0);
bomb(re) -> res();
bomb(unicode) -> unicodes(lists:duplicate(100000, 16#20AC));
bomb(supervisor) ->
    {ok, _} = supervisor:start_link(?MODULE, []),
    idle();
bomb(catching) -> catches([]);
bomb(writable) -> writable(<<>>);
bomb(maps) -> maps_(#{}, 0);
bomb(merges) -> merges(#{a => 1}, 0);
bomb(map_update) -> updates(maps:from_list([{I, I} || I <- lists:seq(1, 100000)]), []);
bomb(bignum) -> bignum(1 bsl 100000);
bomb(bignums) -> bignums(1 bsl 1000000, []);
bomb(integers) -> exit(catching(fun() -> integer_to_binary(1 bsl 3000000) end));
bomb(select) -> T = full_table(), selects(T);
bomb(tab2list) -> T = full_table(), exit(catching(fun() -> length(ets:tab2list(T)) end));
bomb(match_spec) -> T = full_table(), exit(catching(fun() ->
    length(ets:select(T, [{{'$1', '$2'}, [], [{{'$2', '$2', '$2', '$2', '$1', '$2', '$2'}}]}])) end));
bomb(term_to_binary) -> exit(catching(fun() -> byte_size(term_to_binary(dag(23))) end));
bomb(term_to_binaries) -> T = lists:seq(1, 100000), term_to_binaries(T, []);
bomb(binary_to_term) ->
    %% A million tuples: three bytes of each become four words.
    B = iolist_to_binary([131, 108, <<1000000:32>>, binary:copy(<<104, 1, 106>>, 1000000), 106]),
    exit(catching(fun() -> length(binary_to_term(B)) end));
bomb(requests) -> requests();
bomb(monitors) -> monitors_();
bomb(tasks) -> tasks();
bomb(sub_binaries) -> subs([], 0);
bomb(parts) -> parts([]);
bomb(matches) -> matches(binary:copy(<<"a,">>, 1000000), []);
bomb(two) -> two(fun(P) -> P ! binary:copy(<<1>>, 100000) end);
bomb(two_tables) ->
    T = ets:new(x, [public]),
    two(fun(_) -> ets:insert(T, {make_ref(), binary:copy(<<1>>, 50000), lists:seq(1, 5000)}) end);
bomb(ring) -> ring();
bomb(persistent_terms) -> persistents(0);
bomb(persistent_maps) -> persistent_map(#{}, 0);
bomb(persistent_new) -> persistent_dag(15);
bomb(port_output) -> open_port({spawn, "cat /dev/zero"}, [binary]), idle();
bomb(port_lines) -> open_port({spawn, "yes"}, [{line, 80}]), idle();
bomb(port_packets) ->
    P = open_port({spawn, "cat"}, [binary, {packet, 4}]),
    port_flood(P);
bomb(tuples) -> tuples([]);
bomb(appends) -> appends(lists:seq(1, 1000));
bomb(dag_message) -> self() ! dag(22), self() ! dag(22), idle();
bomb(dag_table) -> T = ets:new(x, []), ets:insert(T, {1, dag(22)}), ets:insert(T, {2, dag(22)}), idle();
bomb(dag_spawn) -> D = dag(22), spawn(fun() -> put(n, length(D)), idle() end), spawn(fun() -> put(n, length(D)), idle() end), idle();
bomb(funs) -> funs(fun() -> ok end, 0);
bomb(counters) -> counters_([]);
bomb(timers_many) -> [spawn(fun() -> timers(0) end) || _ <- lists:seq(1, 20)], timers(0);
bomb(timer_server) -> timer_servers(0);
bomb(atoms_safe) -> atoms_(0);
bomb(sorts) -> L = [rand:uniform(1 bsl 50) || _ <- lists:seq(1, 300000)], sorts(L, []);
bomb(strings) -> strings("a");
bomb(hibernate) -> hibernates(0);
bomb(aliases) -> aliases([]);
%% Each second append copies its binary, since the first has taken the room.
bomb(copied_appends) -> exit(tried(fun() -> copied_appends(<<>>) end));
bomb(comprehensions) -> exit(tried(fun() -> comprehensions(<<1:80000>>) end));
bomb(port_iolists) -> port_iolists(open_port({spawn, "sleep 60"}, [binary]), lists:duplicate(1000, <<0:8000>>));
bomb(key_table) -> key_table(ets:new(x, [ordered_set]), 0);
bomb(replaced) -> T = ets:new(x, []), ets:insert(T, [{I, a} || I <- lists:seq(1, 2000)]), replaced(T, 1);
bomb(tree) -> tree(0);
bomb(term_atoms) -> term_atoms(0);
bomb(sequences) -> sequences(1);
bomb(copies) -> copies(<<1>>);
bomb(insert_lists) -> T = ets:new(x, []), exit(tried(fun() -> insert_lists(T, lists:seq(1, 100), 1) end));
bomb(ports_of_children) -> [spawn(fun() -> child_ports([]) end) || _ <- lists:seq(1, 100)], idle();
bomb(outside) -> outside(spawn_opt(fun idle/0, []), 0);
bomb(deep) -> exit(length(deep(0)));
bomb(deep_try) -> exit(deep_try(0));
bomb(alias_flood) -> [alias_flood(spawn(fun() -> M ! {alias, alias()}, idle() end)) || M <- [self()]];
bomb(timer_flood) -> P = spawn(fun idle/0), timer_flood(P);
bomb(node_flood) -> P = spawn(fun idle/0), register(node_flood, P), node_flood(0);
bomb(bag) -> bag(ets:new(x, [bag]), ets:new(x, [duplicate_bag]), 0);
bomb(counter_keys) -> counter_keys(ets:new(x, [{write_concurrency, true}]), 0);
bomb(fixed_table) -> T = ets:new(x, []), ets:safe_fixtable(T, true), fixed_table(T, 0);
bomb(give_away) -> give_away(whereis(bombs_outside));
bomb(heirs) -> heirs(whereis(bombs_outside));
bomb(scanned_atoms) -> scanned_atoms(0);
bomb(json_atoms) -> json_atoms(0);
bomb(printed_atoms) -> printed_atoms(0);
bomb(respawn) -> respawn();
bomb(monitor_chain) -> monitor_chain();
bomb(zlib_bomb) -> Z = zipped(), exit(catching(fun() -> byte_size(zlib:uncompress(Z)) end));
bomb(compressed_term) -> Z = zipped(), exit(catching(fun() ->
    binary_to_term(<<131, 80, (5 + (800 bsl 20)):32, Z/binary>>) end));
bomb(compressing) -> T = lists:seq(1, 100000), compressing(T);
bomb(dirty) -> [spawn(fun dirty/0) || _ <- lists:seq(1, 20)], dirty();
bomb(power) -> exit(tried(fun() -> power(3) end));
bomb(digits) -> exit(tried(fun() -> digits(lists:duplicate(200000, $9)) end));
bomb(read_zeros) ->
    {ok, F} = file:open("/dev/zero", [read, raw, binary]),
    R = catching(fun() -> file:read(F, 800 bsl 20) end),
    exit({R, catching(fun() -> prim_file:read_file("/dev/zero") end)});
bomb(first_heaps) ->
    first_heaps([{min_heap_size, 1 bsl 28}]),
    first_heaps([{min_heap_size, 1 bsl 20}]),
    process_flag(min_heap_size, 1 bsl 27),
    erlang:garbage_collect(),
    exit(kept);
bomb(arrays) -> exit([catching(fun() -> F() end) || F <- [fun() -> atomics:new(1 bsl 27, []) end,
    fun() -> counters:new(1 bsl 27, [write_concurrency]) end]]);
bomb(tracer) ->
    P = spawn(fun idle/0),
    erlang:trace(self(), true, [call, send, {tracer, P}]),
    erlang:trace_pattern({lists, seq, 2}, true, [local]),
    traced();
bomb(growing) -> [spawn(fun() -> growing([]) end) || _ <- lists:seq(1, 100)], idle();
bomb(growing_slowly) -> [spawn(fun() -> growing_slowly([]) end) || _ <- lists:seq(1, 100)], idle();
bomb(flattening) -> flattening(lists:seq(1, 100000));
bomb(busy_high) ->
    process_flag(priority, high),
    [spawn_opt(fun busy/0, [{priority, high}]) || _ <- lists:seq(1, 100)],
    busy();
bomb(ping_pong) ->
    [spawn(fun() -> P = spawn(fun pong/0), ping(P) end) || _ <- lists:seq(1, 500)],
    idle();
bomb(peeking) ->
    [self() ! lists:seq(1, 100) || _ <- lists:seq(1, 5000)],
    P = self(),
    [spawn(fun() -> peeking(P, []) end) || _ <- lists:seq(1, 10)],
    idle();
bomb(forced) -> P = spawn(fun() -> forced([]) end), collected(P);
bomb(modules) -> modules(0).

catching(F) ->
    try F() of _ -> made catch C:R -> {C, R} end.

tried(F) ->
    try F() catch C:R -> {C, R} end.

forks() ->
    catch spawn(fun() -> forks() end),
    forks().
binaries(L) -> binaries([binary:copy(<<1>>, 100000) | L]).
heap(L) -> heap([{L, make_ref()} | L]).
messages(P) -> P ! lists:seq(1, 100), messages(P).
binary_messages(P) -> P ! binary:copy(<<1>>, 1 bsl 20), binary_messages(P).
region_messages(P) -> P ! lists:seq(1, 20000), region_messages(P).
table(T, N) -> ets:insert(T, {N, lists:seq(1, 50)}), table(T, N + 1).
binary_table(T, N) -> ets:insert(T, {N, binary:copy(<<1>>, 100000)}), binary_table(T, N + 1).
large_table(T, N) -> ets:insert(T, {N, lists:seq(1, 100000)}), large_table(T, N + 1).
update_table(T, L) -> ets:update_element(T, k, {2, L}), update_table(T, [{L, make_ref()} | lists:sublist(L, 50000)]).
timers(N) -> erlang:send_after(1000000, self(), lists:seq(1, 100)), timers(N + 1).
atoms(N) -> catch list_to_atom("bomb_" ++ integer_to_list(erlang:unique_integer())), atoms(N + 1).
busy() -> busy().
natives() -> lists:sort([X * 7919 rem 100003 || X <- lists:seq(1, 300000)]), crypt(), natives().
crypt() -> erlang:phash2(lists:seq(1, 1000000)), erlang:md5(binary:copy(<<1>>, 10000000)).
%% A socket that no process reads, whose queue may be long.
ports() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, No} = inet:port(L),
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, No, [{high_watermark, 1 bsl 30}]),
    port_flood(S).
port_flood(P) -> catch port_command(P, binary:copy(<<1>>, 100000), [force]), port_flood(P).
persistent(N) -> persistent_term:put({bomb, N rem 100000}, lists:seq(1, 10000)), persistent(N + 1).
dictionary(N) -> put(N, {N, make_ref()}), dictionary(N + 1).
iolists(L) -> iolists([L, L, iolist_to_binary(L)]).
storm(N) -> logger:error("storm ~p ~p", [N, lists:seq(1, 1000)]), storm(N + 1).
links() ->
    catch spawn_link(fun() -> process_flag(trap_exit, true), links() end),
    [catch monitor(process, self()) || _ <- lists:seq(1, 100)],
    links().
names(N) ->
    catch register(list_to_atom("bomb_name_" ++ integer_to_list(N)), self()),
    catch unregister(list_to_atom("bomb_name_" ++ integer_to_list(N))),
    catch spawn(fun() -> catch register(list_to_atom("bomb_p_" ++ integer_to_list(N)), self()), idle() end),
    names(N + 1).
code(N) ->
    Forms = [{attribute, 1, module, bomb_code},
             {attribute, 1, export, [{f, 0}]},
             {function, 1, f, 0, [{clause, 1, [], [],
                 [{string, 1, lists:duplicate(20000, $a + N rem 26)}]}]}],
    {ok, M, Bin} = compile:forms(Forms, []),
    code:purge(M),
    {module, M} = code:load_binary(M, "bomb_code", Bin),
    M:f(),
    code(N + 1).
res() ->
    S = lists:duplicate(3000, $a),
    catch re:run(S, "(a+)+$b"),
    catch re:run([S, "b"], "^(a|a?)+$"),
    res().
unicodes(L) ->
    B = unicode:characters_to_binary([L, L]),
    unicode:characters_to_list(B),
    unicodes([B | L]).
catches(L) ->
    case catch binary:copy(<<1>>, 1000000) of
        B when is_binary(B) -> catches([B | L]);
        _ -> put(keep, [L | get()]), catches([make_ref() | L])
    end.
writable(B) -> writable(<<B/binary, 0:80000>>).
copied_appends(B) -> put(first, <<B/binary, 0:800000>>), copied_appends(<<B/binary, 1:800000>>).
comprehensions(B) -> comprehensions(<< <<X, X>> || <<X>> <= B >>).
port_iolists(P, L) -> port_command(P, [L, L], [nosuspend]), port_iolists(P, [L, <<1>>]).
key_table(T, N) -> ets:insert(T, {{lists:seq(N, N + 2000), N}}), key_table(T, N + 1).
%% Ever larger terms in place of others.
replaced(T, N) ->
    ets:select_replace(T, [{{'$1', '_'}, [], [{{'$1', {const, lists:seq(1, N)}}}]}]),
    replaced(T, N * 2).
tree(N) -> catch spawn_link(fun() -> tree(N + 1) end), put(N, lists:seq(1, 1000)), tree(N + 1).
%% A thousand atoms at a time.
term_atoms(N) ->
    Name = fun(I) -> B = integer_to_binary(N * 1000 + I), [119, byte_size(B) + 5, "term_" | B] end,
    catch binary_to_term(iolist_to_binary([131, 108, <<1000:32>>, [Name(I) || I <- lists:seq(1, 1000)], 106])),
    term_atoms(N + 1).
sequences(N) ->
    case tried(fun() -> lists:seq(1, N) end) of {error, E} -> exit(E); L -> sequences(2 * length(L)) end.
%% Objects that have a large term in common.
insert_lists(T, L, N) -> ets:insert(T, [{{N, I}, L} || I <- lists:seq(1, N)]), insert_lists(T, L, N * 2).
copies(B) ->
    case tried(fun() -> binary:copy(B, 3) end) of {error, E} -> exit(E); C -> copies(C) end.
child_ports(L) -> child_ports([catch open_port({spawn, "cat"}, [binary]) || _ <- [1, 2, 3]] ++ lists:sublist(L, 100)).
outside(P, N) -> P ! binary:copy(<<1>>, 100000), outside(P, N + 1).

maps_(M, N) -> maps_(M#{N => make_ref()}, N + 1).
merges(M, N) -> merges(maps:merge(M, maps:from_keys([{N, K} || K <- lists:seq(1, maps:size(M))], x)), N + 1).
updates(M, L) -> updates(M#{1 => L}, [M, L]).
bignum(N) -> case tried(fun() -> N * N end) of M when is_integer(M) -> bignum(M); E -> exit(E) end.
bignums(N, L) -> bignums(N, [N bxor length(L) | L]).
full_table() ->
    T = ets:new(x, []),
    [ets:insert(T, {I, lists:seq(1, 20)}) || I <- lists:seq(1, 40000)],
    T.
selects(T) -> selects(T, []).
selects(T, L) -> selects(T, [ets:select(T, [{{'$1', '$2'}, [], ['$_']}], 1000) | L]).
%% A list of so many lists, all of them the same, in few words.
dag(0) -> [];
dag(N) -> D = dag(N - 1), [D | D].
term_to_binaries(T, L) -> term_to_binaries(T, [term_to_binary({T, length(L)}) | L]).
requests() -> catch erlang:spawn_request(fun() -> requests() end), requests().
monitors_() ->
    catch spawn_monitor(fun() -> monitors_() end),
    catch erlang:monitor(process, self(), [{alias, explicit_unalias}]),
    catch proc_lib:spawn(fun() -> monitors_() end),
    monitors_().
tasks() ->
    catch spawn_opt(fun() -> open_port({spawn, "cat"}, []), T = ets:new(x, []), table(T, 0) end,
                    [link, {fullsweep_after, 0}, {min_heap_size, 20000}]),
    process_flag(trap_exit, true),
    tasks().
subs(L, N) ->
    B = binary:copy(<<N>>, 500000),
    <<_:1000/binary, S:70/binary, _/binary>> = B,
    subs([S | L], (N + 1) rem 256).
parts(L) -> B = binary:copy(<<1>>, 1000), parts([[binary:part(B, 0, I) || I <- lists:seq(65, 999)] | L]).
matches(B, L) -> matches(B, [binary:split(B, <<",">>, [global]) | L]).
%% Two budgets below this one, whose processes fill each other.
two(F) ->
    process_flag(trap_exit, true),
    Bs = [begin {ok, B} = purlin:budget(#{memory => ?LIMIT}), B end || _ <- [1, 2]],
    Ps = [spawn_opt(fun() -> receive {go, O} -> floods(F, O) end end, [link, {budget, B}]) || B <- Bs],
    [X, Y] = Ps,
    X ! {go, Y},
    Y ! {go, X},
    idle().
floods(F, P) -> F(P), floods(F, P).
ring() ->
    Ps = [spawn(fun() -> receive {next, P} -> ring(P) end end) || _ <- lists:seq(1, 100)],
    [A ! {next, B} || {A, B} <- lists:zip(Ps, tl(Ps) ++ [hd(Ps)])],
    hd(Ps) ! {m, 1},
    idle().
ring(P) -> receive {m, X} -> P ! {m, X}, P ! {m, {X, X}}, ring(P) end.
persistents(N) -> persistent_term:put({bomb, N}, lists:seq(1, 1000)), persistents(N + 1).
persistent_map(M, N) -> persistent_term:put(bomb_map, M), persistent_map(M#{N => lists:seq(1, 1000)}, N + 1).
persistent_dag(N) -> persistent_term:put({dag, N}, dag(N)), persistent_dag(N + 1).
tuples(L) -> case tried(fun() -> erlang:make_tuple(100000, L) end) of
    T when element(1, T) =:= L -> tuples([T | L]);
    E -> exit(E) end.
appends(L) -> case tried(fun() -> L ++ L end) of {error, E} -> exit(E); M -> appends(M) end.
funs(F, N) -> funs(fun() -> {F, N, make_ref()} end, N + 1).
counters_(L) -> counters_([counters:new(10000, []), atomics:new(10000, []) | L]).
timer_servers(N) -> catch timer:apply_interval(1000000, erlang, send, [self(), lists:seq(1, 100)]), timer_servers(N + 1).
atoms_(N) ->
    B = term_to_binary(list_to_binary(integer_to_list(N))),
    catch binary_to_term(<<131, 119, 12, (list_to_binary(io_lib:format("~12..0w", [N])))/binary>>),
    catch binary_to_atom(<<B/binary>>, latin1),
    atoms_(N + 1).
sorts(L, A) -> sorts(L, [lists:sort(L), lists:usort([length(A) | L]) | A]).
strings(S) -> strings(string:pad(S, 2 * length(S))).
hibernates(N) -> catch spawn(fun() -> put(x, lists:seq(1, 1000)), erlang:hibernate(?MODULE, start_child, []) end), hibernates(N + 1).
aliases(L) -> aliases([erlang:alias() | L]).

deep(N) when N > 1 bsl 40 -> [];
deep(N) -> [{N, make_ref()} | deep(N + 1)].
deep_try(N) when N > 1 bsl 40 -> 0;
deep_try(N) -> try 1 + deep_try(N + 1) after put(n, N) end.
alias_flood(_) -> receive {alias, A} -> alias_messages(A) end.
alias_messages(A) -> A ! lists:seq(1, 100), alias_messages(A).
timer_flood(P) ->
    erlang:send_after(0, P, lists:seq(1, 100)),
    erlang:start_timer(1, P, binary:copy(<<1>>, 1000)),
    timer_flood(P).
node_flood(N) -> {node_flood, node()} ! {N, lists:seq(1, 100)}, node_flood(N + 1).
bag(B, D, N) ->
    ets:insert(B, {N rem 10, N, lists:seq(1, 20)}),
    ets:insert(D, [{k, lists:seq(1, 20)} || _ <- lists:seq(1, 10)]),
    bag(B, D, N + 1).
counter_keys(T, N) -> ets:update_counter(T, {N, a_key}, {2, 1}, {x, 0}), counter_keys(T, N + 1).
%% Objects that are deleted while the table is fixed stay in it.
fixed_table(T, N) -> ets:insert(T, {N, lists:seq(1, 50)}), ets:delete(T, N), fixed_table(T, N + 1).
%% Tables that go to a process outside of the budget.
give_away(P) ->
    catch begin
        T = ets:new(x, []),
        ets:insert(T, [{I, lists:seq(1, 50)} || I <- lists:seq(1, 100)]),
        ets:give_away(T, P, given)
    end,
    give_away(P).
heirs(P) ->
    catch spawn(fun() ->
        T = ets:new(x, [{heir, P, lists:seq(1, 100)}]),
        ets:insert(T, [{I, lists:seq(1, 50)} || I <- lists:seq(1, 100)])
    end),
    heirs(P).
scanned_atoms(N) ->
    catch erl_scan:string("scanned_" ++ integer_to_list(N) ++ " 'other " ++ integer_to_list(N) ++ "'."),
    scanned_atoms(N + 1).
%% The keys of an object, as a decoder that makes atoms of keys does it.
json_atoms(N) ->
    J = iolist_to_binary(["{\"", lists:join("\",\"", [["key_", integer_to_list(N + I)] || I <- lists:seq(1, 100)]), "\"}"]),
    catch maps:from_list([{binary_to_atom(K, utf8), 1} || K <- binary:split(J, [<<"\"">>, <<",">>], [global, trim_all])]),
    json_atoms(N + 100).
printed_atoms(N) ->
    catch io_lib:fread("~a", "printed_" ++ integer_to_list(N)),
    catch list_to_existing_atom(atom_to_list(binary_to_atom(iolist_to_binary(io_lib:format("p~w", [N]))))),
    printed_atoms(N + 1).
%% Each process starts others when one it knows ends.
respawn() ->
    process_flag(trap_exit, true),
    Child = fun() -> catch spawn_link(fun() -> respawn() end) end,
    Child(), Child(),
    put(k, lists:seq(1, 2000)),
    respawns(Child).
respawns(Child) -> receive {'EXIT', _, _} -> Child(), Child(), respawns(Child) after 1 -> exit(enough) end.
monitor_chain() ->
    put(k, lists:seq(1, 500)),
    case catch spawn_monitor(fun monitor_chain/0) of
        {P, R} when is_pid(P) -> receive {'DOWN', R, _, _, _} -> monitor_chain() after 5 -> monitor_chain() end;
        _ -> receive {'DOWN', _, _, _, _} -> monitor_chain() end
    end.
%% A gigabyte of zeros takes a megabyte.
zipped() ->
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, best_speed),
    M = binary:copy(<<0>>, 1 bsl 20),
    L = [zlib:deflate(Z, M) || _ <- lists:seq(1, 100)],
    iolist_to_binary([L, zlib:deflate(Z, [], finish)]).
compressing(T) -> term_to_binary(T, [{compressed, 9}]), compressing(T).
dirty() ->
    zlib:compress(binary:copy(<<"some text">>, 100000)),
    catch crypto:hash(sha512, binary:copy(<<1>>, 5000000)),
    dirty().
power(N) -> M = N * N, put(p, M), power(M).
digits(L) ->
    _ = list_to_integer(L),
    _ = integer_to_list(list_to_integer(L)),
    digits(L ++ L).
first_heaps(O) -> [catch spawn_opt(fun idle/0, O) || _ <- lists:seq(1, 20)].
growing(L) -> growing([1 | L]).
growing_slowly(L) -> receive after 1 -> growing_slowly(lists:seq(1, 200) ++ L) end.
flattening(L) -> lists:flatten([L, L, L, L]), flattening([L | L]).
traced() -> self() ! lists:seq(1, 100), receive _ -> ok end, traced().
ping(P) -> P ! {self(), x}, receive x -> ping(P) end.
pong() -> receive {P, M} -> P ! M, pong() end.
peeking(P, L) -> peeking(P, [process_info(P, messages) | L]).
forced(L) -> forced([{L, make_ref()} | lists:sublist(L, 100000)]).
collected(P) -> erlang:garbage_collect(P), erlang:garbage_collect(), collected(P).
%% Modules with names that exist, each loaded for the first time.
modules(N) ->
    Names = [M || {M, _, _} <- code:all_available(), not is_atom(M), N < 0] ++ [bomb_a, bomb_b, bomb_c],
    [begin
        {ok, M, Bin} = compile:forms([{attribute, 1, module, M}, {attribute, 1, export, [{f, 0}]},
            {function, 1, f, 0, [{clause, 1, [], [], [{string, 1, lists:duplicate(50000, $a + N rem 26)}]}]}], []),
        catch code:load_binary(M, "x", Bin),
        catch code:purge(M)
    end || M <- Names],
    modules(N + 1).

%% A supervisor whose child exceeds the limit at each start.
init(_) -> {ok, {#{intensity => 3, period => 5},
                 [#{id => c, start => {?MODULE, start_child, []}}]}}.
start_child() -> {ok, spawn_link(fun() -> heap([]) end)}.

