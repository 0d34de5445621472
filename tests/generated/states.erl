%% Random sequences of calls on something that lasts: a table, processes, the dictionary, flags of a
%% process, files, traces. Each step is a line.
%%
%%   erl -noshell -run states main FAMILY SEED COUNT
-module(states).
-export([main/1, names/0, traced/2, called/1, twice/1, deep/2, fails/2, init/1]).

-import(arguments, [pick/1, many/2, make/1, term/1]).
-import(calls, [text/2, plain/1, frames/2]).

names() -> [table_states, process_states, dictionaries, traces, file_states, timer_states].

main([Family, Seed, Count]) ->
    rand:seed(exsss, list_to_integer(Seed)),
    ok = io:setopts([{encoding, latin1}]),
    logger:set_primary_config(level, none),
    sequences(list_to_atom(Family), list_to_integer(Count)),
    halt(0).

sequences(_, N) when N =< 0 -> ok;
sequences(Family, N) ->
    Steps = 12,
    Seed = rand:uniform(1 bsl 50),
    {Pid, Ref} = spawn_monitor(fun() -> rand:seed(exsss, Seed), exit({lines, lines(Family, Steps)}) end),
    receive
        {'DOWN', Ref, process, Pid, {lines, Lines}} -> io:put_chars([[L, $\n] || L <- Lines]);
        {'DOWN', Ref, process, Pid, R} -> io:put_chars(["ended: ", text(plain(R), 300), $\n])
    after 20000 -> exit(Pid, kill), io:put_chars("no end\n")
    end,
    sequences(Family, N - Steps).

%% A line: what was done, and what came of it.
did(Name, Args, F) ->
    R = try F() of
            V -> ["= ", text(plain(V), 600)]
        catch
            C:E:S -> [atom_to_list(C), " ", text(plain(E), 200), " at ", frames([Fr || Fr <- S, element(1, Fr) =/= ?MODULE], 300)]
        end,
    io_lib:format("~w(~ts) ~ts", [Name, text(plain(Args), 300), R]).
done(M, F, Args) -> did(F, Args, fun() -> apply(M, F, Args) end).

lines(table_states, N) ->
    Type = pick([set, ordered_set, bag, duplicate_bag]),
    Options = [Type, pick([public, protected, private]), {keypos, pick([1, 1, 1, 2])}] ++
        many(3, fun() -> pick([compressed, {read_concurrency, true}, {write_concurrency, true}, {write_concurrency, auto}, {decentralized_counters, true}, named_table]) end),
    T = ets:new(states_table, Options),
    ["table " ++ lists:flatten(io_lib:format("~0p", [Options])) | [table_step(T, Type) || _ <- lists:seq(1, N)]];
lines(dictionaries, N) ->
    %% The generator keeps its state in the dictionary: all is chosen before.
    Steps = [dictionary_step() || _ <- lists:seq(1, N)],
    Kept = erase(),
    L = [Step() || Step <- Steps],
    erase(),
    [put(K, V) || {K, V} <- Kept],
    L;
lines(process_states, N) ->
    process_flag(trap_exit, true),
    Others = [spawn_link(?MODULE, init, [self()]) || _ <- lists:seq(1, 3)],
    put(refs, []),
    L = [process_step(Others) || _ <- lists:seq(1, N)],
    [begin unlink(P), R = monitor(process, P), exit(P, kill), receive {'DOWN', R, _, _, _} -> ok end end || P <- Others],
    L;
lines(timer_states, N) -> put(refs, []), [timer_step() || _ <- lists:seq(1, N)];
lines(file_states, N) ->
    Dir = "states.dir",
    file:make_dir(Dir),
    ok = file:write_file(Dir ++ "/f", <<"some text\nin two lines\n">>),
    Modes = many(3, fun() -> pick([append, raw, {read_ahead, 10}, {delayed_write, 100, 100}, exclusive, delayed_write, read_ahead, sync, {encoding, utf8}, strange]) end) ++ pick([[read], [write], [read, write]])
        ++ pick([[], [binary]]),
    L = case file:open(Dir ++ "/f", Modes) of
            {ok, F} -> ["open " ++ text(Modes, 200) | [file_step(F, Dir) || _ <- lists:seq(1, N)]] ++ [done(file, close, [F])];
            E -> [["open ", text(Modes, 200), " ", text(E, 100)]]
        end,
    {ok, Left} = file:read_file(Dir ++ "/f"),
    [file:delete(Dir ++ "/" ++ X) || X <- element(2, file:list_dir(Dir))],
    file:del_dir(Dir),
    L ++ [["left ", text(Left, 300)]];
lines(traces, N) ->
    Tracer = self(),
    Tracee = spawn_link(fun() -> tracee(Tracer) end),
    %% What it begins with is not traced.
    Tracee ! {run, fun() -> ok end},
    receive {ran, ok} -> ok end,
    L = [trace_step(Tracee) || _ <- lists:seq(1, N)],
    erlang:trace_pattern({?MODULE, '_', '_'}, false, [local]),
    erlang:trace_pattern({?MODULE, '_', '_'}, false, [global]),
    erlang:trace_pattern({?MODULE, '_', '_'}, false, [call_count, call_time, meta]),
    erlang:trace_pattern(send, true, []),
    erlang:trace_pattern('receive', true, []),
    R = monitor(process, Tracee),
    unlink(Tracee),
    exit(Tracee, kill),
    receive {'DOWN', R, _, _, _} -> L end.

%% Tables.

key() -> pick([1, 2, 3, 1.0, a, b, {a, 1}, "k", 1 bsl 70, 0, <<"k">>, #{a => 1}, [], 2.0]).
object() -> list_to_tuple([key(), pick([key(), 5, 7, term(1)]) | many(2, fun() -> pick([term(1), 1, 2, 10]) end)]).
pattern() -> list_to_tuple([pick([key(), '_', '$1', '$1']), pick(['_', '$2', '$1', 5, key()]) | many(2, fun() -> pick(['_', '$3', 1, '$1']) end)]).
clause() ->
    {pick([pattern(), pattern(), '_', '$1']), many(1, fun() -> pick([{'>', '$1', 1}, {is_atom, '$1'}, {'==', '$1', '$2'}, {is_integer, '$2'}, {'andalso', {is_integer, '$1'}, {'<', '$1', 3}}, {element, 1, '$_'}]) end),
     [pick(['$_', '$$', '$1', true, {{'$1', '$2'}}, {element, 1, '$_'}, {{{const, a}, '$_'}}, ['$1']])]}.
spec() -> many(1, fun() -> clause() end) ++ [clause()].
replacing() -> [{{'$1', '$2'}, many(1, fun() -> {is_integer, '$2'} end), [{{'$1', pick([x, {{'$2', 1}}, '$2'])}}]}].

sorted(ordered_set, R) -> R;
sorted(_, L) when is_list(L) -> exactly(L);
sorted(_, R) -> R.

%% In an order that tells 1 from 1.0.
exactly(L) -> [T || {T, _} <- lists:sort([{T, term_to_binary(T)} || T <- L])].

table_step(T, Type) ->
    S = fun(R) -> sorted(Type, R) end,
    D = fun(F, A) -> did(F, A, fun() -> S(apply(ets, F, [T | A])) end) end,
    case rand:uniform(30) of
        1 -> D(delete, [key()]);
        2 -> D(delete_object, [object()]);
        3 -> D(lookup, [key()]);
        4 -> D(lookup_element, [key(), pick([1, 2, 3, 4, 0])]);
        5 -> D(member, [key()]);
        6 -> D(match, [pattern()]);
        7 -> D(match_object, [pattern()]);
        8 -> D(match_delete, [pattern()]);
        9 -> D(select, [spec()]);
        10 -> D(select_count, [[setelement(3, C, [true]) || C <- spec()]]);
        11 -> D(select_delete, [[setelement(3, C, [pick([true, {is_atom, '$1'}, '$1'])]) || C <- spec()]]);
        12 -> D(select_replace, [replacing()]);
        13 -> Sp = spec(), N = pick([1, 2, 3, 100]), did(select_all, [Sp, N], fun() -> S(all(ets:select(T, Sp, N), [])) end);
        14 -> D(select_reverse, [spec()]);
        15 -> D(update_counter, [key(), pick([1, {2, 3}, {3, -1}, [{2, 1}, {2, 1, 5, 0}], {2, 1, 6, -1}, {2, a}, {1, 1}, [], {9, 1}, [{2, 1}, {3, a}]])]);
        16 -> D(update_counter, [key(), pick([1, {2, 3}, [{2, 1}]]), pick([{a, 0}, {a, 0, 0}, {0, 10}, a])]);
        17 -> D(update_element, [key(), pick([{2, x}, [{2, y}, {3, z}], {1, k}, {5, x}, [], a, [{2, 1} | 3]])]);
        18 -> D(take, [key()]);
        19 -> D(insert_new, [pick([object(), many(3, fun() -> object() end)])]);
        20 -> case Type of
                  ordered_set -> D(pick([next, prev]), [key()]);
                  _ -> D(tab2list, [])
              end;
        21 -> case Type of ordered_set -> D(pick([first, last]), []); _ -> did(foldl, [], fun() -> ets:foldl(fun(_, N) -> N + 1 end, 0, T) end) end;
        22 -> D(info, [pick([size, type, keypos, protection, named_table, compressed, heir, name, fixed, read_concurrency, write_concurrency, decentralized_counters, strange])]);
        23 -> D(delete_all_objects, []);
        24 -> D(safe_fixtable, [pick([true, false])]);
        25 -> D(rename, [states_renamed]);
        26 -> Sp = spec(), did(walk, [Sp], fun() -> ets:safe_fixtable(T, true), R = S(all(ets:match_object(T, pattern(), 1), [])), ets:safe_fixtable(T, false), R end);
        27 -> D(setopts, [pick([{heir, none}, {heir, self(), x}, strange, [{heir, none}], {protection, private}])]);
        _ -> D(insert, [pick([object(), many(4, fun() -> object() end), term(2)])])
    end.

all('$end_of_table', A) -> lists:append(A);
all({L, C}, A) -> all(ets:select(C), [L | A]).

%% Dictionaries, and what a process tells of itself.

dictionary_step() ->
    K = key(),
    V = term(2),
    N = rand:uniform(200),
    case rand:uniform(12) of
        1 -> fun() -> done(erlang, get, [K]) end;
        2 -> fun() -> done(erlang, erase, [K]) end;
        3 -> fun() -> did(get_keys, [], fun() -> exactly(get_keys()) end) end;
        4 -> fun() -> did(get_keys, [V], fun() -> exactly(get_keys(V)) end) end;
        5 -> fun() -> did(get, [], fun() -> exactly(get()) end) end;
        6 -> fun() -> did(many, [N], fun() -> [put({many, I}, I) || I <- lists:seq(1, N)], length(get()) end) end;
        7 -> fun() -> did(fewer, [], fun() -> [erase(X) || {many, _} = X <- get_keys()], exactly(get()) end) end;
        8 -> fun() -> did(process_info, [], fun() -> {dictionary, L} = process_info(self(), dictionary), exactly(L) end) end;
        9 -> fun() -> did(erase, [], fun() -> exactly(erase()) end) end;
        _ -> fun() -> done(erlang, put, [K, V]) end
    end.

%% Processes.

init(Parent) -> put(parent, Parent), served().
served() ->
    receive
        {do, From, F} -> From ! {self(), F()}, served();
        {stop, R} -> exit(R)
    end.

ask(P, F) ->
    R = monitor(process, P),
    P ! {do, self(), F},
    receive
        {P, V} -> demonitor(R, [flush]), V;
        {'DOWN', R, _, _, Why} -> {down, Why}
    end.

%% All that has come, in order.
messages() -> receive M -> [M | messages()] after 0 -> [] end.
%% Until those that were told to end have ended.
settled(Ps) -> [ask(P, fun() -> ok end) || P <- Ps], unlinked(Ps), messages().
%% The end of a process is known to its monitors before its links hear of it: until all links to
%% those that ended are gone.
unlinked(Ps) ->
    {links, L} = process_info(self(), links),
    case [P || P <- Ps, lists:member(P, L), not is_process_alive(P)] of
        [] -> ok;
        _ -> receive after 1 -> unlinked(Ps) end
    end.

process_step(Others) ->
    P = pick(Others),
    Me = self(),
    Name = pick([states_a, states_b]),
    case rand:uniform(34) of
        1 -> done(erlang, register, [Name, pick([P, Me])]);
        2 -> done(erlang, unregister, [Name]);
        3 -> done(erlang, whereis, [Name]);
        4 -> did(link, [], fun() -> link(P) end);
        5 -> did(unlink, [], fun() -> unlink(P) end);
        6 -> did(monitor, [], fun() -> R = monitor(process, pick([P, Name, {Name, node()}]), many(1, fun() -> pick([{tag, x}, {alias, demonitor}, {alias, explicit_unalias}, {alias, reply_demonitor}]) end)),
                                       put(refs, [R | get(refs)]), ask(P, fun() -> ok end) end);
        7 -> did(demonitor, [], fun() -> [demonitor(R, many(2, fun() -> pick([flush, info]) end)) || R <- get(refs)] end);
        8 -> R = pick([normal, shutdown, kill, {a, 1}, "why"]), did(exit, [R], fun() -> exit(P, R), settled(Others) end);
        9 -> R = pick([normal, x, {y, [1]}]), did(stop, [R], fun() -> P ! {stop, R}, settled(Others) end);
        10 -> On = pick([true, false]), did(trap_exit, [On], fun() -> ask(P, fun() -> process_flag(trap_exit, On) end) end);
        11 -> did(messages_of, [], fun() -> ask(P, fun() -> messages() end) end);
        12 -> did(sent, [], fun() -> P ! hello, P ! {self(), there}, element(2, process_info(P, message_queue_len)) end);
        13 -> I = pick([links, monitors, monitored_by, registered_name, trap_exit, priority, current_function, initial_call, messages, message_queue_len, dictionary, group_leader, error_handler,
                        suspending, catchlevel, sensitive_, min_heap_size, max_heap_size, message_queue_data, fullsweep_after, total_heap_size_, parent]),
              did(process_info, [I], fun() -> ask(P, fun() -> ok end), V = process_info(P, I), case V of {links, L} -> {links, length(L)}; {monitored_by, L} -> {monitored_by, length(L)}; _ -> V end end);
        14 -> F = pick([priority, message_queue_data, min_heap_size, fullsweep_after, save_calls, sensitive, max_heap_size, min_bin_vheap_size, error_handler, trap_exit]),
              V = pick([low, normal, high, on_heap, off_heap, 0, 100, 1000, true, false, -1, #{size => 0}, #{size => 100, kill => false, error_logger => false}, error_handler, strange, 65536]),
              did(process_flag, [F, V], fun() -> ask(P, fun() -> try process_flag(F, V) catch C:R -> {C, R} end end) end);
        15 -> did(suspend, [], fun() -> erlang:suspend_process(P), S = process_info(P, status), erlang:resume_process(P), S end);
        16 -> done(erlang, resume_process, [P]);
        17 -> did(spawn_monitor, [], fun() -> {Q, R} = spawn_monitor(fun() -> exit(pick_now(Name)) end), receive {'DOWN', R, T, Q, Why} -> {T, Why} end end);
        18 -> O = many(3, fun() -> pick([link, monitor, {monitor, [{tag, t}]}, {monitor, [{alias, explicit_unalias}]}, {priority, low}, {min_heap_size, 500}, {reply_tag, r}, {reply, no}, {reply, error_only}, strange, {fullsweep_after, 3}]) end),
              did(spawn_request, [O], fun() -> spawn_request(fun() -> exit(gone) end, O), waited(O) end);
        19 -> did(alias, [], fun() -> A = alias(many(1, fun() -> pick([reply, explicit_unalias]) end)), ask(P, fun() -> A ! {by, alias}, A ! again, ok end), L = messages(), {L, unalias(A)} end);
        20 -> did(group_leader, [], fun() -> G = group_leader(), ask(P, fun() -> group_leader(Me, self()), X = group_leader() =:= Me, group_leader(G, self()), X end) end);
        21 -> done(erlang, is_process_alive, [P]);
        22 -> did(send_named, [], fun() -> catch Name ! {to, Name}, ok end);
        23 -> did(hibernated, [], fun() -> Q = spawn_link(fun() -> erlang:hibernate(?MODULE, init, [Me]) end), V = ask(Q, fun() -> get(parent) =:= Me end), unlink(Q), exit(Q, kill), V end);
        24 -> did(garbage_collect, [], fun() -> erlang:garbage_collect(P, many(1, fun() -> pick([{type, minor}, {type, major}, strange]) end)) end);
        25 -> did(selective, [], fun() -> self() ! a, self() ! b, self() ! c, B = receive b -> got_b end, {B, messages()} end);
        26 -> did(crash, [], fun() -> {Q, R} = spawn_monitor(?MODULE, fails, [pick([error, exit, throw, badmatch, undef, badarith, function_clause, case_clause]), Name]),
                                      receive {'DOWN', R, process, Q, Why} -> case Why of {E, [{_, _, _, _} | _] = S} -> {E, frames(S, 300)}; _ -> Why end end end);
        27 -> did(exit_self, [], fun() -> exit(self(), pick([normal, x, {x, y}])), receive {'EXIT', Q, R} when Q =:= Me -> R after 0 -> none end end);
        28 -> did(refs, [], fun() -> [is_reference(R) || R <- get(refs)] end);
        29 -> did(links, [], fun() -> {links, L} = process_info(Me, links), length([X || X <- L, lists:member(X, Others)]) end);
        30 -> did(gone, [], fun() -> {Q, R} = spawn_monitor(fun() -> ok end), receive {'DOWN', R, _, _, _} -> ok end, {catch link(Q), messages(), monitor(process, Q) =/= x, receive {'DOWN', _, T, _, W} -> {T, W} end} end);
        _ -> did(messages, [], fun() -> settled(Others) end)
    end.

pick_now(Name) -> {Name, now_gone}.

%% What comes of a request: the messages, in order of their tags.
waited(_) -> lists:sort([plain(M) || M <- wait_more()]).
wait_more() -> receive M -> [M | wait_more()] after 30 -> [] end.

fails(error, X) -> error({fails, X}), X;
fails(exit, X) -> exit({fails, X}), X;
fails(throw, X) -> throw({fails, X}), X;
fails(badmatch, X) -> {other, X} = traced(fails, X), X;
fails(undef, X) -> nowhere:to_be_found(X), X;
fails(badarith, X) -> _ = X + 1, X;
fails(case_clause, X) -> case X of 1 -> X end.

%% Timers: none runs out meanwhile but those of no time.

timer_step() ->
    case rand:uniform(9) of
        1 -> did(start_timer, [], fun() -> R = erlang:start_timer(100000, self(), x), put(refs, [R | get(refs)]), is_reference(R) end);
        2 -> did(send_after, [], fun() -> R = erlang:send_after(100000, pick([self(), nobody_there]), x), put(refs, [R | get(refs)]), is_reference(R) end);
        3 -> did(cancel, [], fun() -> [V =:= false orelse V > 0 || R <- get(refs), V <- [erlang:cancel_timer(R)]] end);
        4 -> did(cancel_async, [], fun() -> [begin V = erlang:cancel_timer(R, [{async, true}]), receive {cancel_timer, R, T} -> {V, T =:= false orelse T > 0} end end || R <- get(refs)] end);
        5 -> did(read, [], fun() -> [V =:= false orelse V > 0 || R <- get(refs), V <- [erlang:read_timer(R)]] end);
        6 -> did(now, [], fun() -> R = erlang:start_timer(0, self(), {y, term(2)}), receive {timeout, R, V} -> {V, erlang:cancel_timer(R), erlang:read_timer(R)} end end);
        7 -> did(soon, [], fun() -> V = term(3), erlang:send_after(pick([0, 1, 2]), self(), V), receive W -> W =:= V end end);
        8 -> did(quiet, [], fun() -> [erlang:cancel_timer(R, [{info, false}]) || R <- get(refs)] end);
        9 -> did(absolute, [], fun() -> T = erlang:monotonic_time(millisecond) + pick([-10, 0, 2]), R = erlang:start_timer(T, self(), z, [{abs, true}]), receive {timeout, R, V} -> V end end)
    end.

%% Files.

file_step(F, Dir) ->
    case rand:uniform(14) of
        1 -> done(file, read, [F, pick([0, 1, 5, 100])]);
        2 -> done(file, write, [F, pick([<<"abc">>, "xyz\n", [<<"a">>, $b, "c"], <<>>, [300], binary:copy(<<"0123456789">>, 30)])]);
        3 -> done(file, position, [F, pick([0, bof, eof, cur, {bof, 3}, {cur, 1}, {cur, -2}, {eof, -1}, {cur, -1000}, 1000, -1, strange, {bof, 1 bsl 70}])]);
        4 -> done(file, pread, [F, pick([0, 3, 1000, {bof, 1}, -1]), pick([0, 4, 100])]);
        5 -> done(file, pwrite, [F, pick([0, 2, 50, {bof, 1}]), pick([<<"pq">>, "r", []])]);
        6 -> done(file, pread, [F, many(3, fun() -> {pick([0, 1, 100]), pick([0, 2])} end)]);
        7 -> done(file, truncate, [F]);
        8 -> done(file, read_line, [F]);
        9 -> done(file, sync, [F]);
        10 -> done(file, datasync, [F]);
        11 -> done(file, write_file, [Dir ++ "/g", <<"gg">>, many(1, fun() -> pick([append, exclusive, raw]) end)]);
        12 -> done(file, pick([read_file, delete, read_link]), [Dir ++ pick(["/g", "/h"])]);
        13 -> done(file, rename, [Dir ++ "/g", Dir ++ "/h"]);
        14 -> did(size, [], fun() -> {ok, I} = file:read_file_info(Dir ++ "/f"), {element(2, I), element(3, I), element(4, I)} end)
    end.

%% Traces.

tracee(Tracer) ->
    receive
        {run, F} -> V = try F() catch C:R -> {C, R} end, Tracer ! {ran, plain(V)}, tracee(Tracer)
    end.

traced(X, Y) -> {X, Y}.
called(X) when is_integer(X) -> X + 1;
called(X) -> traced(X, x).
twice(X) -> Y = ?MODULE:called(X), {?MODULE:called(Y), Y}.
deep(0, X) -> X;
deep(N, X) -> [?MODULE:deep(N - 1, X)].

trace_step(P) ->
    case rand:uniform(9) of
        N when N < 4 ->
            M = pick([{?MODULE, called, 1}, {?MODULE, twice, 1}, {?MODULE, '_', '_'}, {?MODULE, traced, 2}, {?MODULE, deep, 2}, {?MODULE, deep, '_'}, {?MODULE, fails, 2}, {?MODULE, nothing, 0}]),
            S = pick([true, false, [], trace_spec(), trace_spec(), trace_spec(), restart, pause]),
            O = pick([[], [local], [global], [call_count], [meta], [local, call_count]]),
            %% Not `call_time`: stock faults when it is on and the process is traced.
            %% Nor what silences a process that nobody traces: stock faults when that is traced
            %% later.
            done(erlang, trace_pattern, [M, case O of [meta] -> not_silenced(S); _ -> S end, O]);
        4 ->
            On = pick([true, true, false]),
            did(trace, [On], fun() -> erlang:trace(P, On, pick([[call], [call, return_to], [call, arity], [send], ['receive'], [procs], [call, procs], [call, silent], [set_on_spawn, call], [send, 'receive', call]])) end);
        5 -> done(erlang, trace_pattern, [pick([send, 'receive']), pick([true, false, [{['_', '$1'], [{is_tuple, '$1'}], []}], [{'_', [], [{message, {self}}]}]]), []]);
        6 -> K = pick([traced, match_spec, meta, call_count, all, meta_match_spec]), F = pick([{?MODULE, called, 1}, {?MODULE, deep, 2}]),
             did(trace_info, [F, K], fun() -> case erlang:trace_info(F, K) of {all, L} -> {all, lists:keydelete(call_time, 1, L)}; I -> I end end);
        7 -> did(trace_info, [flags], fun() -> {flags, L} = erlang:trace_info(P, flags), lists:sort(L) end);
        _ ->
            F = pick([fun() -> ?MODULE:called(1) end, fun() -> ?MODULE:called(a) end, fun() -> ?MODULE:twice(3) end, fun() -> ?MODULE:deep(3, x) end, fun() -> ?MODULE:fails(error, 1) end, fun() -> ?MODULE:fails(throw, 1) end,
                      fun() -> self() ! {a, 1}, receive {a, X} -> X end end, fun() -> {_, R} = spawn_monitor(?MODULE, called, [5]), receive {'DOWN', R, _, _, W} -> W end end,
                      fun() -> apply(?MODULE, traced, [1, [2]]) end, fun() -> catch ?MODULE:fails(badmatch, 7) end, fun() -> G = fun ?MODULE:called/1, G(8) end]),
            did(run, [], fun() ->
                                 P ! {run, F},
                                 receive {ran, V} -> {V, delivered(P)} end
                         end)
    end.

not_silenced([_ | _] = S) -> [{H, C, [A || A <- B, A =/= {silent, true}]} || {H, C, B} <- S];
not_silenced(S) -> S.

delivered(P) ->
    R = erlang:trace_delivered(all),
    receive {trace_delivered, all, R} -> ok end,
    {Of, Rest} = lists:partition(fun(M) -> is_tuple(M) andalso tuple_size(M) > 1 andalso element(2, M) =:= P end, messages()),
    {[shown(M) || M <- Of], lists:sort([shown(M) || M <- Rest])}.

shown({trace, _, exit, {R, [_ | _]}}) -> {exit, plain(R)};
%% Without the time.
shown(M) when element(1, M) =:= trace_ts -> plain(erlang:delete_element(tuple_size(M), M));
shown(M) when is_tuple(M) -> plain(M);
shown(M) -> plain(M).

trace_spec() ->
    [{pick(['_', ['$1'], ['$1', '_'], '$1', [1], ['_', x]]), many(1, fun() -> pick([{is_integer, '$1'}, {'>', '$1', 2}, {is_list, '$$'}, {'==', {length, '$_'}, 1}, {'=:=', '$1', a}]) end),
      many(3, fun() -> pick([{return_trace}, {exception_trace}, {message, '$_'}, {message, false}, {message, {{seen, '$1'}}}, {message, {caller}}, {silent, true}, {silent, false}, {enable_trace, procs}, {disable_trace, procs},
                             {set_tcw, 5}, {message, {get_tcw}}, true, {message, {self}}, {message, {process_dump_}}, {message, {is_seq_trace}}]) end)}].
