%% Checks tracer modules: events of every kind, the callbacks before them, their removal, and
%% modules that are loaded and unloaded while they trace.
%% @nif tracers @stress @shared @fence @seconds 120
-module(tracer_modules).
-export([main/0, called/1, waits/1, fails/1, deep/2, loop/0]).

-define(NO_TIMES, [send, 'receive', call, procs]).

show(What, F) ->
    R = try F() catch C:E -> {C, E} end,
    io:format("~0p: ~0p~n", [What, R]).

%% A tracer module, whose library is a copy of its own.
module(M) ->
    L = 1,
    Kinds = ["send", "receive", "call", "running_procs", "running_ports", "garbage_collection", "procs", "ports"],
    More = case M of
        n_full -> [{list_to_atom(V ++ K), A} || {V, A} <- [{"enabled_", 3}, {"trace_", 5}], K <- Kinds];
        _ -> []
    end,
    Functions = [{asked, 0}, {enabled, 3}, {trace, case M of n_lacking -> 4; _ -> 5 end} | More],
    Stub = fun({N, A}) ->
        {function, L, N, A, [{clause, L, [{var, L, '_'} || _ <- lists:seq(1, A)], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, nif_error}}, [{atom, L, stub}]}]}]}
    end,
    File = "./" ++ atom_to_list(M),
    Load = {function, L, load, 0, [{clause, L, [], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, load_nif}}, [{string, L, File}, {atom, L, none}]}]}]},
    Forms = [{attribute, L, module, M}, {attribute, L, export, Functions}, {attribute, L, on_load, {load, 0}},
             Load | [Stub(F) || F <- Functions]],
    {ok, M, Bin} = compile:forms(Forms, []),
    {ok, _} = file:copy("../ebin/tracers.so", File ++ ".so"),
    Bin.

load(M) ->
    Bin = case get(M) of undefined -> module(M); B -> B end,
    put(M, Bin),
    code:purge(M),
    {module, M} = code:load_binary(M, "none", Bin),
    ok.

unload(M) -> code:purge(M), code:delete(M), code:purge(M).

called(X) -> X.
waits(_) -> receive stop -> ok end.
fails(X) -> error({failed, X}).
deep(0, X) -> X;
deep(N, X) -> [_ | T] = [N | deep(N - 1, X)], T.
loop() -> called(1), called(2), timer:sleep(1), loop().

%% A tracee that does what it is told.
start() -> spawn(fun tracee/0).
tracee() ->
    receive
        {run, From, F} ->
            R = try F() catch C:E -> {C, E} end,
            From ! {ran, R},
            tracee();
        ok -> tracee();
        stop -> done
    end.
run(P, F) -> P ! {run, self(), F}, receive {ran, R} -> R end.

events(P) ->
    R = erlang:trace_delivered(P),
    receive {trace_delivered, P, R} -> ok end,
    all().
all() -> receive M -> [M | all()] after 0 -> [] end.

%% The options that do not differ from run to run.
options(O) -> maps:map(fun(scheduler_id, N) -> is_integer(N) andalso N > 0; (_, V) -> V end, O).

seen({Kind, Tag, State, P, What, O, Self}, P) ->
    {Kind, Tag, State, P, brief(What), options(O), case Self of P -> self; _ -> Self end};
seen({Kind, Tag, State, Other, What, O, Self}, _) -> {Kind, Tag, State, {other, Other}, brief(What), options(O), Self}.

brief({run, _, _}) -> run;
brief({ran, X}) -> {ran, X};
brief(X) when is_list(X), length(X) > 5 -> 'long list';
brief(X) -> X.

print(Name, P) ->
    io:format("~0p~n", [Name]),
    %% That it goes on to wait may come later.
    [io:format("  ~0p~n", [seen(E, P)]) || E <- events(P), not waits_on(E)].

waits_on({_, call, _, _, {_, tracee, _}, _, _}) -> true;
waits_on(_) -> false.

work(call) -> called(a), catch fails(b), ok;
work(send) -> self() ! ok, work_pid() ! gone, ok;
work('receive') -> ok;
work(procs) ->
    Q = spawn(?MODULE, waits, [1]), link(Q), unlink(Q), Q ! stop,
    register(some_name, self()), unregister(some_name), ok;
work(garbage_collection) -> erlang:garbage_collect(), ok;
work(running) -> receive after 5 -> ok end.

%% A pid that nobody has any more.
work_pid() -> persistent_term:get(gone).

trace_of(call) -> [call, return_to];
trace_of(F) -> [F].

answers() ->
    maps:from_list([{T, trace} || T <- [trace_status, send, send_to_non_existing_process, 'receive', call, return_to, return_from, exception_from, spawn,
        exit, link, unlink, getting_linked, getting_unlinked, register, unregister, in, out, in_exiting, out_exiting, out_exited,
        gc_minor_start, gc_minor_end, gc_major_start, gc_major_end, spawned, seq_trace, open, closed]]).

state(X) -> {answers(), self(), X}.

main() ->
    logger:set_primary_config(level, none),
    Gone = spawn(fun() -> ok end),
    R = monitor(process, Gone),
    receive {'DOWN', R, _, _, _} -> ok end,
    persistent_term:put(gone, Gone),
    not_there(),
    load(n_plain), load(n_full), load(n_lacking),
    [kinds(M) || M <- [n_plain, n_full]],
    [asked(M) || M <- [n_plain, n_full]],
    refused(),
    [removed(Tag, A) || Tag <- [trace_status, call, send, 'receive', spawn], A <- [remove, discard, trace, junk, 17, exception, badarg]],
    meta(),
    specifications(),
    sequential(),
    ports(),
    inherited(),
    conflicts(),
    unloaded(),
    reloaded(),
    ended(),
    ok.

not_there() ->
    T = start(),
    [show({there, M}, fun() -> erlang:trace(T, true, [call, {tracer, M, []}]) end) || M <- [n_plain, no_such_module, lists, make_ref(), [], "x"]],
    show(badly, fun() -> erlang:trace(T, true, [call, {tracer, n_plain}]) end),
    show(badly, fun() -> erlang:trace(T, true, [call, {tracing, n_plain, []}]) end),
    [show({meta, M}, fun() -> erlang:trace_pattern({?MODULE, called, 1}, [], [{meta, M, []}]) end) || M <- [n_plain, lists, 1]],
    show(sequential, fun() -> erlang:system_flag(sequential_tracer, {no_such_module, []}) end),
    show(info, fun() -> {erlang:trace_info(T, flags), erlang:trace_info(T, tracer)} end),
    T ! stop.

kinds(M) ->
    erlang:trace_pattern({?MODULE, '_', '_'}, [{'_', [], [{exception_trace}]}], [local]),
    [begin
        T = start(),
        show({M, F, More}, fun() -> erlang:trace(T, true, trace_of(F) ++ More ++ [{tracer, M, state({a, <<"state">>})}]) end),
        run(T, fun() -> work(F) end),
        show(info, fun() -> {tracer, {N, {A, To, S}}} = erlang:trace_info(T, tracer), {erlang:trace_info(T, flags), N, A =:= answers(), To =:= self(), S} end),
        print({M, F, More}, T),
        erlang:trace(T, false, trace_of(F)),
        T ! stop
    end || F <- ?NO_TIMES, More <- [[], [timestamp, scheduler_id], [monotonic_timestamp], [strict_monotonic_timestamp, arity], [silent]]],
    erlang:trace_pattern({?MODULE, '_', '_'}, false, [local]),
    [begin
        T = start(),
        erlang:trace(T, true, [F, timestamp, {tracer, M, state(x)}]),
        run(T, fun() -> work(F) end),
        Es = [{K, Tag, S, is_list(W) orelse is_tuple(W), O, Self =:= T} || {K, Tag, S, P, W, O, Self} <- events(T), P =:= T, Tag =/= gc_minor_start, Tag =/= gc_minor_end],
        io:format("~0p~n", [{M, F, lists:usort(Es)}]),
        erlang:trace(T, false, [F]),
        T ! stop
    end || F <- [garbage_collection, running]],
    %% The end of a process.
    [begin
        T = start(),
        erlang:trace(T, true, [F, {tracer, M, state(x)}]),
        T ! stop,
        E = monitor(process, T),
        receive {'DOWN', E, _, _, _} -> ok end,
        io:format("~0p~n", [{M, F, lists:usort([{K, Tag, W, O, Self =:= T} || {K, Tag, _, _, W, O, Self} <- events(T), lists:member(Tag, [exit, out_exited])])}])
    end || F <- [procs, exiting]].

%% Which functions are asked before.
asked(M) ->
    erlang:trace_pattern({?MODULE, called, 1}, [], [local]),
    erlang:trace_pattern({?MODULE, deep, 2}, true, [call_count]),
    [begin
        T = start(),
        M:asked(),
        erlang:trace(T, true, [F, {tracer, M, state(x)}]),
        A1 = M:asked(),
        run(T, fun() -> work(F), deep(3, []) end),
        events(T),
        A2 = case F of
            procs -> [A || {_, Tag, _} = A <- M:asked(), lists:member(Tag, [spawn, link, unlink, register, unregister])];
            _ -> M:asked()
        end,
        erlang:trace_info(T, flags),
        A3 = M:asked(),
        erlang:trace(T, false, [F]),
        io:format("~0p~n", [{M, F, [A || {_, Tag, _} = A <- A1, Tag =/= trace_status], [A || {_, Tag, _} = A <- A2, Tag =/= trace_status], lists:usort(A3)}]),
        T ! stop
    end || F <- [send, 'receive', call, procs, arity]],
    erlang:trace_pattern({?MODULE, called, 1}, false, [local]),
    erlang:trace_pattern({?MODULE, deep, 2}, false, [call_count]).

refused() ->
    T = start(),
    [show({refused, M}, fun() -> erlang:trace(T, true, [call, {tracer, M, []}]) end) || M <- [n_lacking, erl_tracer, ?MODULE]],
    [begin
        Q = start(),
        show({gone, Tracer}, fun() -> erlang:trace(Q, true, [all | [Tracer]]) end),
        show(info, fun() -> [erlang:trace_info(Q, I) || I <- [flags, tracer]] end),
        Q ! stop
    end || Tracer <- [{tracer, work_pid()}, {tracer, erl_tracer, work_pid()}, {tracer, erl_tracer, nobody}, {tracer, erl_tracer, "text"}]],
    erlang:trace(T, true, [all]),
    show(all, fun() -> erlang:trace_info(T, flags) end),
    erlang:trace(T, false, [all]),
    show(all, fun() -> erlang:trace_info(T, flags) end),
    events(T),
    show(meta, fun() -> erlang:trace_pattern({?MODULE, called, 1}, [], [{meta, n_lacking, []}]) end),
    show(sequential, fun() -> erlang:system_flag(sequential_tracer, {n_lacking, []}) end),
    T ! stop.

%% What the module answers to a tag, and what becomes of the tracing.
removed(Tag, Answer) ->
    erlang:trace_pattern({?MODULE, called, 1}, [], [local]),
    T = start(),
    Flag = case Tag of trace_status -> call; spawn -> procs; F -> F end,
    A = maps:put(Tag, Answer, answers()),
    show({Tag, Answer}, fun() -> erlang:trace(T, true, [Flag, {tracer, n_plain, {A, self(), x}}]) end),
    run(T, fun() -> called(1), self() ! ok, spawn(fun() -> ok end), ok end),
    %% What it has sent to itself has come then.
    run(T, fun() -> ok end),
    Es = [{K, G, W, O} || {K, G, _, _, W, O, _} <- events(T), not is_pid(W), not is_tuple(W) orelse element(1, W) =/= run],
    show({info, length(Es)}, fun() -> {erlang:trace_info(T, flags), element(2, erlang:trace_info(T, tracer)) =:= []} end),
    io:format("  ~0p~n", [[{K, G} || {K, G, _, _} <- Es]]),
    erlang:trace(T, false, [all]),
    T ! stop,
    erlang:trace_pattern({?MODULE, called, 1}, false, [local]).

hashed(O) -> maps:map(fun(extra, X) -> erlang:phash2(X); (_, V) -> V end, O).

%% Tracers of all calls. The state goes with the frame of a call whose end is told.
meta() ->
    Big = binary:copy(<<"0123456789">>, 30),
    State = {answers(), self(), {Big, [1.5, 1 bsl 70, "text"], #{k => Big}}},
    [begin
        show(meta, fun() -> erlang:trace_pattern({?MODULE, F, '_'}, Spec, [{meta, n_plain, State}]) end),
        T = start(),
        %% Much of the heap goes while the frames are there.
        run(T, fun() -> X = [{N, <<N:64>>} || N <- lists:seq(1, 200)], (catch ?MODULE:F(X)), (catch deep(20, X)), length(X) end),
        Es = events(T),
        io:format("~0p~n", [[{K, G, S =:= element(3, State), W, hashed(O), Self =:= T} || {K, G, S, _, W, O, Self} <- Es, is_tuple(W), not is_list(element(3, W))]]),
        io:format("~0p~n", [[{K, G, S =:= element(3, State), element(2, W), is_list(element(3, W)), maps:remove(extra, O), Self =:= T} || {K, G, S, _, W, O, Self} <- Es,
            is_tuple(W), is_list(element(3, W))]]),
        show(info, fun() ->
            {meta, {n_plain, S}} = erlang:trace_info({?MODULE, F, A}, meta),
            {S =:= State, erlang:trace_info({?MODULE, F, A}, meta_match_spec)}
        end),
        erlang:trace_pattern({?MODULE, F, '_'}, false, [meta]),
        T ! stop
    end || {F, A} <- [{called, 1}, {fails, 1}, {deep, 2}],
           Spec <- [[], [{'_', [], [{message, word}]}], [{'_', [], [{return_trace}, {message, false}]}], [{'_', [], [{exception_trace}, {message, true}]}]]],
    %% What it says when it is asked.
    [begin
        S = {maps:put(Tag, Answer, answers()), self(), x},
        erlang:trace_pattern({?MODULE, called, 1}, [], [{meta, n_plain, S}]),
        T = start(),
        run(T, fun() -> called(1) end),
        N = length(events(T)),
        show({meta, Tag, Answer, N}, fun() -> {meta, M} = erlang:trace_info({?MODULE, called, 1}, meta), M =:= {n_plain, S} end),
        erlang:trace_pattern({?MODULE, called, 1}, false, [meta]),
        T ! stop
    end || Tag <- [trace_status, call], Answer <- [trace, discard, remove, junk, exception]],
    %% One for each arity and module, on several processes at once.
    erlang:trace_pattern({?MODULE, called, 1}, [{'_', [], [{return_trace}]}], [{meta, n_plain, State}]),
    Me = self(),
    Ps = [spawn(fun() -> [called({I, lists:seq(1, 20)}) || I <- lists:seq(1, 50)], Me ! {finished, self()} end) || _ <- lists:seq(1, 8)],
    [receive {finished, P} -> ok end || P <- Ps],
    [events(P) || P <- []],
    N = length(all_of(Ps)),
    io:format("~0p~n", [{many, N}]),
    erlang:trace_pattern({?MODULE, called, 1}, false, [meta]).

all_of(Ps) -> lists:append([events(P) || P <- Ps]).

specifications() ->
    Other = start(),
    erlang:trace_pattern({?MODULE, called, 1}, [{[on], [], [{trace, [], {const, [call, {tracer, n_plain, state(by_spec)}]}}]},
        {[other], [], [{trace, Other, [], {const, [call, {tracer, n_full, state(by_other)}]}}]},
        {[bad], [], [{message, {{result, {trace, [], {const, [call, {tracer, lists, []}]}}}}}]},
        {[{tell, '$1'}], [], [{message, {{told, '$1'}}}]},
        {[off], [], [{trace, [call], []}]}, {'_', [], []}], [local]),
    T = start(),
    erlang:trace(T, true, [call, {tracer, n_plain, state(first)}]),
    [begin
        run(T, fun() -> called(X) end),
        print({specification, X}, T),
        show(info, fun() -> [case erlang:trace_info(P, tracer) of {_, {M, {_, _, S}}} -> {M, S}; I -> I end || P <- [T, Other]] end)
    end || X <- [plain, {tell, [x, <<"y">>]}, other, bad, on, plain, off, plain]],
    [P ! stop || P <- [T, Other]],
    erlang:trace_pattern({?MODULE, called, 1}, false, [local]),
    erlang:trace_pattern(send, [{['_', {a, '$1'}], [], [{message, '$1'}]}], []),
    S = start(),
    erlang:trace(S, true, [send, {tracer, n_full, state(sends)}]),
    run(S, fun() -> self() ! {a, 17}, self() ! {b, 18}, receive {a, _} -> receive {b, _} -> ok end end end),
    print(send, S),
    S ! stop,
    erlang:trace_pattern(send, true, []).

sequential() ->
    [begin
        A = maps:put(seq_trace, Answer, answers()),
        show(set, fun() -> case seq_trace:set_system_tracer({n_full, {A, self(), seq}}) of {W, {_, _, B}} -> {W, B}; B -> B end end),
        show(get, fun() -> {M, {_, _, S}} = seq_trace:get_system_tracer(), {M, S} end),
        P = start(),
        run(P, fun() ->
            seq_trace:set_token(label, {17, "label"}),
            [seq_trace:set_token(F, true) || F <- [print, send, 'receive', timestamp]],
            seq_trace:print({17, "label"}, information),
            self() ! to_me, receive to_me -> ok end,
            io:format("~0p~n", [seq_trace:get_token(serial)]),
            seq_trace:set_token([]), ok
        end),
        [io:format("  ~0p~n", [{K, T, S, L, element(1, W), element(2, W), element(5, W), O, Self}]) || {K, T, S, L, W, O, Self} <- events(P), element(5, W) =/= ignored,
            element(1, W) =:= print orelse element(5, W) =:= to_me],
        P ! stop
    end || Answer <- [trace, discard]],
    %% Nobody any more.
    S = {maps:put(trace_status, remove, answers()), self(), seq},
    show(set, fun() -> seq_trace:set_system_tracer({n_full, S}) end),
    show(set, fun() -> {n_full, _} = seq_trace:set_system_tracer(false), ok end),
    show(get, fun() -> seq_trace:get_system_tracer() end).

ports() ->
    [begin
        erlang:trace(new_ports, true, Flags ++ [{tracer, M, {maps:put(in, trace, all_answers()), self(), Flags}}]),
        show(info, fun() -> {tracer, {M, {_, _, S}}} = erlang:trace_info(new_ports, tracer), {erlang:trace_info(new_ports, flags), S} end),
        Port = open_port({spawn, "cat"}, [binary]),
        erlang:trace(new_ports, false, [all]),
        Port ! {self(), {command, "line"}},
        receive {Port, {data, D}} -> D end,
        port_close(Port),
        Es = events(all),
        io:format("~0p~n", [{M, Flags, lists:usort([{K, G, S, P =:= Port, Self} || {K, G, S, P, _, _, Self} <- Es, P =:= Port, not lists:member(G, [in, out])])}]),
        io:format("~0p~n", [lists:usort([{K, G, is_integer(W) orelse is_atom(W)} || {K, G, _, P, W, _, _} <- Es, P =:= Port, lists:member(G, [in, out])])])
    end || M <- [n_plain, n_full], Flags <- [[ports], [send], ['receive'], [running_ports], [ports, timestamp, scheduler_id]]],
    %% An event that takes it away, and one that is not told.
    [begin
        Port = open_port({spawn, "cat"}, [binary]),
        show({port, Answer}, fun() -> erlang:trace(Port, true, [ports, {tracer, n_plain, {maps:put(getting_linked, Answer, answers()), self(), x}}]) end),
        P = spawn(fun() -> link(Port), receive stop -> ok end end),
        timer:sleep(20),
        Es = [G || {_, G, _, _, _, _, _} <- events(all)],
        show({port, Answer, Es}, fun() -> {erlang:trace_info(Port, flags), element(2, erlang:trace_info(Port, tracer)) =:= []} end),
        unlink(Port), exit(P, kill), catch port_close(Port),
        timer:sleep(10), events(all)
    end || Answer <- [trace, discard, remove, junk]],
    all().

all_answers() ->
    maps:merge(answers(), maps:from_list([{T, trace} || T <- [open, closed, getting_linked, getting_unlinked, register, unregister, send, 'receive', in, out]])).

inherited() ->
    T = start(),
    erlang:trace(T, true, [call, set_on_spawn, {tracer, n_plain, state({inherited, "state"})}]),
    erlang:trace_pattern({?MODULE, called, 1}, [], [local]),
    Q = run(T, fun() -> spawn(fun() -> called(child), receive stop -> ok end end) end),
    show(child, fun() -> {erlang:trace_info(Q, flags), element(1, element(2, erlang:trace_info(Q, tracer)))} end),
    print(child, Q),
    erlang:trace(T, false, [all]),
    Q ! stop, T ! stop,
    %% New processes; a module that says no is not the tracer of new ones.
    [begin
        show({new, A}, fun() -> erlang:trace(new_processes, true, [call, {tracer, n_plain, {maps:put(trace_status, A, answers()), self(), new}}]) end),
        show(info, fun() -> {erlang:trace_info(new_processes, flags), element(2, erlang:trace_info(new_processes, tracer)) =:= []} end),
        P = spawn(fun() -> called(new) end),
        erlang:trace(new_processes, false, [all]),
        timer:sleep(20),
        print(new, P)
    end || A <- [trace, remove]],
    %% A tracee that is its own tracer's receiver.
    Self = self(),
    S = spawn(fun() ->
        erlang:trace(self(), true, [call, {tracer, n_plain, {answers(), self(), own}}]),
        called(mine),
        receive {trace, call, own, P, {_, F, A}, O, P} -> Self ! {got, F, A, O} after 1000 -> Self ! {got, none, none, none} end
    end),
    receive {got, A, B, C} -> io:format("~0p~n", [{S, A, B, C}]) end,
    erlang:trace_pattern({?MODULE, called, 1}, false, [local]).

%% Several tracers of one process.
conflicts() ->
    T = start(),
    On = fun(What) -> fun() -> erlang:trace(T, true, [call | What]) end end,
    show(first, On([{tracer, n_plain, state(one)}])),
    show(same, On([send, {tracer, n_plain, state(one)}])),
    show(other_state, On([{tracer, n_plain, state(two)}])),
    show(other_module, On([{tracer, n_full, state(one)}])),
    show(process, On([])),
    show(info, fun() -> {tracer, {M, {_, _, S}}} = erlang:trace_info(T, tracer), {M, S, erlang:trace_info(T, flags)} end),
    show(off, fun() -> erlang:trace(T, false, [send, call]) end),
    show(process, On([])),
    show(module, On([{tracer, n_plain, state(one)}])),
    show(off, fun() -> erlang:trace(T, false, [all]) end),
    %% One that says no gives way.
    Gone = {maps:put(trace_status, remove, answers()), self(), x},
    show(says_no, On([{tracer, n_plain, Gone}])),
    show(gives_way, On([{tracer, n_plain, state(two)}])),
    show(info, fun() -> {tracer, {M, {_, _, S}}} = erlang:trace_info(T, tracer), {M, S, erlang:trace_info(T, flags)} end),
    T ! stop,
    all().

unloaded() ->
    T = start(),
    erlang:trace_pattern({?MODULE, called, 1}, [], [local]),
    [begin
        erlang:trace(T, true, [Flag, {tracer, n_plain, state(x)}]),
        run(T, fun() -> called(1) end),
        N1 = length(events(T)),
        code:purge(n_plain), code:delete(n_plain),
        run(T, fun() -> called(2) end),
        N2 = length(events(T)),
        code:purge(n_plain),
        run(T, fun() -> called(3) end),
        N3 = length(events(T)),
        show({unloaded, Flag, N1, N2, N3}, fun() -> [erlang:trace_info(T, I) || I <- [flags, tracer]] end),
        erlang:trace(T, false, [all]),
        load(n_plain)
    end || Flag <- [call, procs]],
    T ! stop,
    erlang:trace_pattern({?MODULE, called, 1}, false, [local]).

%% The module changes while it is called. What has come of it hangs on time; that all goes on does
%% not.
reloaded() ->
    Me = spawn(fun F() -> receive stop -> ok; _ -> F() end end),
    Ps = [spawn(fun loop/0) || _ <- lists:seq(1, 4)],
    erlang:trace_pattern({?MODULE, called, 1}, [{'_', [], [{return_trace}]}], [local]),
    [begin
        S = {answers(), Me, [make_ref(), <<0:2000>>]},
        [erlang:trace(P, false, [all]) || P <- Ps],
        [erlang:trace(P, true, [call, send, procs, {tracer, n_plain, S}]) || P <- Ps],
        erlang:trace_pattern({?MODULE, called, 1}, [{'_', [], [{return_trace}]}], [{meta, n_plain, S}]),
        timer:sleep(3),
        [load(M) || M <- [n_plain, n_full]],
        [case erlang:trace_info(P, tracer) of {tracer, []} -> ok; {tracer, {n_plain, _}} -> ok end || P <- Ps],
        [unload(M) || M <- [n_plain, n_full], I rem 3 =:= 0],
        timer:sleep(2),
        [load(M) || M <- [n_plain, n_full], I rem 3 =:= 0]
    end || I <- lists:seq(1, 12)],
    erlang:trace_pattern({?MODULE, called, 1}, false, [local, meta]),
    io:format("~0p~n", [[is_process_alive(P) || P <- Ps]]),
    [exit(P, kill) || P <- Ps],
    Me ! stop.

%% The receiver of events ends; the tracer is a module still. And a tracee that is killed.
ended() ->
    To = start(),
    T = start(),
    S = {answers(), To, x},
    erlang:trace_pattern({?MODULE, called, 1}, [], [local]),
    erlang:trace(T, true, [call, procs, {tracer, n_plain, S}]),
    exit(To, kill),
    run(T, fun() -> called(1) end),
    show(ended, fun() -> {erlang:trace_info(T, flags), erlang:trace_info(T, tracer) =:= {tracer, {n_plain, S}}} end),
    erlang:trace(T, false, [all]),
    erlang:trace(T, true, [procs, {tracer, n_full, state(killed)}]),
    exit(T, kill),
    R = monitor(process, T),
    receive {'DOWN', R, _, _, _} -> ok end,
    print(killed, T),
    show(info, fun() -> erlang:trace_info(T, tracer) end),
    erlang:trace_pattern({?MODULE, called, 1}, false, [local]),
    show(left, fun() -> {erlang:trace_info(new_processes, flags), erlang:trace_info(new_ports, flags)} end).
