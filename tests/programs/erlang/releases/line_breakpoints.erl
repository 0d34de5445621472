%% Checks `erl_debugger` (OTP 28): line breakpoints, the state of a process that waits at one, and
%% the information about its stack and registers. Earlier releases do not have it.
%% @stress @shared @fence @seconds 240
-module(line_breakpoints).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    erts_debug:set_internal_state(available_internal_state, true),
    On = try erts_debug:set_internal_state(debugger_support, true) catch error:badarg -> none end,
    io:format("~w~n", [On]),
    case On of
        ok ->
            [io:format("~w: ~0p~n", [F, r(F)])
             || F <- [switches, registered, refused, described, without, stripped, hits, itself, nobody, deep, many, kept, caught, killed, raised,
                      messages, frames, catches, registers, begins, hibernates, ended, traced, counted, reloaded, purged, apart]];
        none -> ok
    end.

r(F) ->
    erl_debugger:toggle_instrumentations(#{line_breakpoint => true}),
    try t(F) catch C:R:S -> {C, R, [element(2, E) || E <- lists:sublist(S, 2)]} after
        case erl_debugger:whereis() of
            undefined -> ok;
            P -> erl_debugger:unregister(P, get(session))
        end
    end.

text() ->
    "-module(broken).\n"
    "-export([go/2, deep/1, many/1, keeps/4, caught/1, raises/1, waits/1, frames/2, first/1, sleeps/1, apart/1, other/1]).\n"
    "go(X, L) ->\n"
    "    Y = X + 1,\n"
    "    Z = help(Y),\n"
    "    F = fun(A) ->\n"
    "            A * Z\n"
    "        end,\n"
    "    [F(A) ||\n"
    "        A <- L].\n"
    "help(Y) ->\n"
    "    Y * 2.\n"
    "deep({n, 0}) -> 1;\n"
    "deep({n, N}) ->\n"
    "    M = N - 1,\n"
    "    A = ?MODULE:deep({n, M}),\n"
    "    A + 1.\n"
    "keeps(A, B, C, D) ->\n"
    "    T = {A, [B], C},\n"
    "    U = [T, D | A],\n"
    "    {U, T, D}.\n"
    "caught(X) ->\n"
    "    try\n"
    "        hd(X)\n"
    "    catch\n"
    "        error:R ->\n"
    "            {R, X}\n"
    "    after\n"
    "        put(done, X)\n"
    "    end.\n"
    "raises(X) ->\n"
    "    Y = [X],\n"
    "    error({Y, X}).\n"
    "waits(X) ->\n"
    "    receive\n"
    "        {a, Y} ->\n"
    "            {X, Y}\n"
    "    after 5000 ->\n"
    "        late\n"
    "    end.\n"
    "frames(X, P) ->\n"
    "    R = inner([X, X], P),\n"
    "    {R, X}.\n"
    "inner(L, P) ->\n"
    "    Q = try\n"
    "        P ! {in, self()},\n"
    "        receive on -> ok end\n"
    "    catch _:_ -> L end,\n"
    "    {Q, L}.\n"
    "first(X) ->\n"
    "    X.\n"
    "sleeps(P) ->\n"
    "    P ! {in, self()},\n"
    "    erlang:hibernate(?MODULE, go, [1, [2, 3]]).\n"
    "apart(X) -> X + 1. other(X) -> first(X).\n"
    ++ many().

%% A function of two hundred arguments.
many() ->
    As = [$, | lists:join($,, [["A", integer_to_list(I)] || I <- lists:seq(1, 200)])],
    Rest = tl(As),
    lists:flatten(["many(L) -> erlang:apply(fun many/200, L).\n"
                   "many(", Rest, ") ->\n"
                   "    case A1 of\n"
                   "        {0} -> [", Rest, "];\n"
                   "        {N} ->\n"
                   "            many({N - 1}", tl(Rest), ")\n"
                   "    end.\n"]).

forms(Text) -> forms(Text, 1).
forms(Text, Line) ->
    case erl_scan:tokens([], Text, Line) of
        {done, {ok, Tokens, Next}, Rest} ->
            {ok, F} = erl_parse:parse_form(expand(Tokens)),
            [F | forms(Rest, Next)];
        _ -> []
    end.
expand([{'?', L}, {var, _, 'MODULE'} | T]) -> [{atom, L, broken} | expand(T)];
expand([H | T]) -> [H | expand(T)];
expand([]) -> [].

load() -> load([beam_debug_info]).
load(Options) ->
    {ok, broken, B} = compile:forms(forms(text()), [nowarn_unused_function, report | Options]),
    code:purge(broken),
    {module, broken} = code:load_binary(broken, "broken.erl", B),
    ok.

attach() ->
    {ok, S} = erl_debugger:register(self()),
    put(session, S),
    S.
set(Lines) -> [erl_debugger:breakpoint(broken, L, true) || L <- Lines].

%% Runs it in another process, and lets it go on at each breakpoint: where it was, and what comes
%% out.
run(F) -> run(F, fun(_) -> ok end).
run(F, Look) ->
    {P, R} = spawn_monitor(fun() -> exit({value, F()}) end),
    go_on(P, R, Look).
go_on(P, R, Look) ->
    S = get(session),
    receive
        {debugger_event, S, {breakpoint, P, MFA, Line, Resume}} ->
            Look(P),
            ok = Resume(),
            [{MFA, Line} | go_on(P, R, Look)];
        {'DOWN', R, process, P, {value, V}} -> [V];
        {'DOWN', R, process, P, Reason} -> [{down, case Reason of {Why, [_ | _]} -> Why; _ -> Reason end}]
    end.

%% What an expression gives or raises.
-define(try_(E), tried(fun() -> E end)).
tried(F) -> try F() catch C:R -> {C, R} end.

t(switches) ->
    D = erl_debugger,
    [D:supported(), D:instrumentations(), D:toggle_instrumentations(#{line_breakpoint => false}), D:instrumentations(),
     D:toggle_instrumentations(#{}), D:instrumentations(), ?try_(D:toggle_instrumentations([])), ?try_(D:toggle_instrumentations(#{a => true})),
     ?try_(D:toggle_instrumentations(#{line_breakpoint => 1})), ?try_(D:toggle_instrumentations(#{line_breakpoint => true, b => true})),
     D:instrumentations(), erts_debug:set_internal_state(debugger_support, false), erts_debug:get_internal_state(debugger_support), D:supported()];
t(registered) ->
    D = erl_debugger,
    Me = self(),
    {P, M} = spawn_monitor(fun() -> receive stop -> ok end end),
    A = D:whereis(),
    {ok, S} = D:register(P),
    B = [D:whereis() =:= P, D:register(Me), D:register(P), ?try_(D:unregister(P, S + 1)), D:unregister(Me, S), D:whereis() =:= P],
    P ! stop,
    receive {'DOWN', M, _, _, _} -> ok end,
    C = D:whereis(),
    {ok, S1} = D:register(Me),
    [A, B, C, D:whereis() =:= Me, ?try_(D:unregister(Me, x)), D:unregister(Me, S1), D:unregister(Me, S1), D:whereis(), ?try_(D:register(x)),
     ?try_(D:unregister(x, 1)), is_integer(S)];
t(refused) ->
    load(),
    D = erl_debugger,
    [?try_(D:breakpoint(1, 4, true)), ?try_(D:breakpoint(broken, 0, true)), ?try_(D:breakpoint(broken, a, true)), ?try_(D:breakpoint(broken, 4, 1)),
     D:breakpoint(nobody, 4, true), D:breakpoint(broken, 3, true), D:breakpoint(broken, 1, true),
     D:breakpoint(broken, 4, true), D:breakpoint(broken, 4, true), D:breakpoint(broken, 4, false), D:breakpoint(broken, 4, false),
     ?try_(D:breakpoint(broken, 1 bsl 70, true)), D:breakpoint(lists, 1, true), ?try_(D:breakpoints(1)), D:breakpoints(nobody), D:breakpoints(nobody, a, 1),
     D:breakpoints(broken, go, 3), ?try_(D:breakpoints(broken, go, a)), ?try_(D:breakpoints(broken, 1, 1)), D:breakpoints(lists, reverse, 1),
     ?try_(D:stack_frames(self(), 1)), ?try_(D:stack_frames(x, 1)), ?try_(D:stack_frames(whereis(init), -1)), D:stack_frames(whereis(init), 1),
     ?try_(D:xregs_count(self())), D:xregs_count(whereis(init)), ?try_(D:peek_xreg(whereis(init), -1, 1)), ?try_(D:peek_xreg(whereis(init), 0, a)),
     D:peek_xreg(whereis(init), 0, 0), ?try_(D:peek_stack_frame_slot(whereis(init), 0, -1, 0)), D:peek_stack_frame_slot(whereis(init), 0, 0, 0),
     ?try_(erts_internal:notify_breakpoint_hit({a, b, c}, 1, fun() -> ok end)), ?try_(erts_internal:notify_breakpoint_hit({a, b, 1}, 1, fun(_) -> ok end)),
     ?try_(erts_internal:notify_breakpoint_hit({a, b, 1}, x, fun() -> ok end))];
t(described) ->
    load(),
    set([4, 7, 23]),
    {ok, All} = erl_debugger:breakpoints(broken),
    Same = [erl_debugger:breakpoints(broken, F, A) =:= {ok, V} || {{F, A}, V} <- maps:to_list(All)],
    {lists:sort([{K, lists:sort(maps:to_list(V))} || {K, V} <- maps:to_list(All)]), lists:usort(Same),
     [{L, [maps:get(K, I) || K <- [frame_size, vars, calls]]} || {L, I} <- code:get_debug_info(broken), L < 56], code:get_debug_info(lists), ?try_(code:get_debug_info(nobody)), ?try_(code:get_debug_info(1))};
t(without) ->
    load([]),
    A = [erl_debugger:breakpoint(broken, 4, true), erl_debugger:breakpoints(broken, go, 2), code:get_debug_info(broken)],
    erl_debugger:toggle_instrumentations(#{line_breakpoint => false}),
    load(),
    B = [erl_debugger:breakpoint(broken, 4, true), erl_debugger:breakpoints(broken, go, 2), code:get_debug_info(broken)],
    erl_debugger:toggle_instrumentations(#{line_breakpoint => true}),
    {A, B, broken:go(1, [2])};
t(stripped) ->
    %% What its lines are is missing, which matters to nobody where they can have no breakpoints.
    {ok, broken, Whole} = compile:forms(forms(text()), [nowarn_unused_function, beam_debug_info]),
    {ok, broken, All} = beam_lib:all_chunks(Whole),
    {ok, Beam} = beam_lib:build_module(lists:keydelete("DbgB", 1, All)),
    code:purge(broken),
    A = code:load_binary(broken, "broken.erl", Beam),
    erl_debugger:toggle_instrumentations(#{line_breakpoint => false}),
    B = code:load_binary(broken, "broken.erl", Beam),
    {A, B, broken:go(1, [2])};
t(hits) ->
    load(),
    set(lists:seq(4, 12)),
    attach(),
    A = run(fun() -> broken:go(1, [2, 3]) end),
    [erl_debugger:breakpoint(broken, L, false) || L <- [4, 7, 12]],
    {A, run(fun() -> broken:go(2, [5]) end)};
t(itself) ->
    load(),
    set([4, 5]),
    attach(),
    {broken:go(1, [2]), receive M -> M after 0 -> none end};
t(nobody) ->
    load(),
    set([4, 5]),
    put(session, none),
    D = spawn(fun() -> receive stop -> ok end end),
    {ok, S} = erl_debugger:register(D),
    D ! stop,
    put(session, S),
    R = monitor(process, D),
    receive {'DOWN', R, _, _, _} -> ok end,
    {broken:go(1, [2]), run(fun() -> broken:go(1, [2]) end)};
%% The stack has to grow at the breakpoint: nothing else takes any there.
t(deep) ->
    load(),
    set([15]),
    attach(),
    L = run(fun() -> broken:deep({n, 3000}) end),
    set([16, 17]),
    {length(L), lists:usort(lists:droplast(L)), lists:last(L), length(run(fun() -> broken:deep({n, 200}) end))};
t(many) ->
    load(),
    Lines = [L || {{many, 200}, M} <- maps:to_list(element(2, erl_debugger:breakpoints(broken))), L <- maps:keys(M)],
    set(Lines),
    attach(),
    Args = [{20} | [[I, float(I), integer_to_binary(I), {I bsl 70}] || I <- lists:seq(2, 200)]],
    L = run(fun() -> broken:many(Args) end),
    {length(L), lists:usort(lists:droplast(L)) =:= lists:usort(L) -- [lists:last(L)], lists:last(L) =:= [{0} | tl(Args)]};
t(kept) ->
    load(),
    set([19, 20, 21]),
    attach(),
    Big = binary:copy(<<"kept">>, 100),
    F = fun() ->
                R = broken:keeps([1.5, <<"b">>], fun() -> Big end, #{a => <<Big/binary, 1>>}, <<(hd([7])):3>>),
                erlang:garbage_collect(),
                {[{A, [G], M}, D | A], T, D} = R,
                {A, erlang:crc32(G()), byte_size(maps:get(a, M)), D, T =:= {A, [G], M}}
        end,
    [run(F), run(F, fun(P) -> erlang:garbage_collect(P), erlang:garbage_collect(P) end),
     run(F, fun(P) -> erlang:suspend_process(P), erl_debugger:stack_frames(P, 1000), erlang:garbage_collect(P), erlang:resume_process(P) end)];
t(caught) ->
    load(),
    set([24, 27, 29]),
    attach(),
    {run(fun() -> broken:caught([1]) end), run(fun() -> {broken:caught([]), get(done)} end)};
t(killed) ->
    load(),
    set([4]),
    S = attach(),
    {P, R} = spawn_monitor(fun() -> broken:go(1, [2]) end),
    receive {debugger_event, S, {breakpoint, P, _, 4, Resume}} -> ok end,
    exit(P, stopped),
    receive {'DOWN', R, _, _, Why} -> {Why, Resume()} end;
t(raised) ->
    load(),
    set([32, 33]),
    attach(),
    {run(fun() -> try broken:raises(a) catch C:R:S -> {C, R, [{F, proplists:get_value(line, I)} || {broken, F, _, I} <- S]} end end),
     run(fun() -> catch broken:raises(b), (catch broken:go(a, [])), c end)};
t(messages) ->
    load(),
    set([35, 37, 39]),
    attach(),
    {run(fun() -> self() ! b, self() ! {a, [1]}, self() ! c, {broken:waits(x), receive M -> {M, receive N -> N end} end} end),
     run(fun() -> self() ! b, erlang:send_after(5, self(), {a, 2}), {broken:waits(y), process_info(self(), messages)} end)};
t(frames) ->
    load(),
    Lines = set([43]),
    S = attach(),
    Me = self(),
    P = spawn_link(fun() -> Me ! {out, broken:frames({1, [2]}, Me)}, receive never -> ok end end),
    receive {debugger_event, S, {breakpoint, P, _, 43, _}} -> never after 0 -> ok end,
    receive {in, P} -> ok end,
    Not = erl_debugger:stack_frames(P, 0),
    suspended(P),
    A = [shown(erl_debugger:stack_frames(P, N)) || N <- [0, 4, 100]],
    All = erl_debugger:stack_frames(P, 4),
    B = [erl_debugger:peek_stack_frame_slot(P, N, I, 4) =:= V || {N, _, #{slots := L}} <- All, {I, V} <- lists:zip(lists:seq(0, length(L) - 1), L)],
    C = [erl_debugger:peek_stack_frame_slot(P, N, I, 4) || {N, I} <- [{0, 0}, {1, 50}, {60, 0}]],
    D = [is_integer(X) andalso X > 0 || {_, _, #{code := X}} <- All],
    erlang:resume_process(P),
    P ! on,
    F = receive {debugger_event, S, {breakpoint, P, W, 43, Resume}} ->
                suspended(P),
                G = shown(erl_debugger:stack_frames(P, 100)),
                erlang:resume_process(P),
                Resume(),
                {W, G}
        end,
    {Lines, Not, A, lists:usort(B), C, lists:usort(D), F, receive {out, V1} -> V1 end};
t(catches) ->
    load(),
    attach(),
    Me = self(),
    P = spawn_link(fun() -> catch broken:frames(1, Me) end),
    receive {in, P} -> ok end,
    suspended(P),
    shown(erl_debugger:stack_frames(P, 100));
t(registers) ->
    load(),
    set([19]),
    S = attach(),
    P = spawn_link(fun() -> broken:keeps(a, [1, 2], <<1:9>>, 1.5) end),
    Event = receive {debugger_event, S, {breakpoint, P, A, L, _}} -> {A, L} end,
    suspended(P),
    X = erl_debugger:xregs_count(P),
    [{_, '<breakpoint>', #{slots := Slots}}] = [F || {_, '<breakpoint>', _} = F <- erl_debugger:stack_frames(P, 100)],
    {Event, X, Slots, erl_debugger:peek_xreg(P, 0, 0)};
t(begins) ->
    load(),
    P = spawn_opt(timer, sleep, [infinity], [{priority, low}, link]),
    erlang:suspend_process(P),
    {shown(erl_debugger:stack_frames(P, 100)) =/= [], is_integer(erl_debugger:xregs_count(P))};
t(hibernates) ->
    load(),
    set([4]),
    S = attach(),
    Me = self(),
    P = spawn_link(fun() -> broken:sleeps(Me) end),
    receive {in, P} -> ok end,
    suspended(P),
    A = {shown(erl_debugger:stack_frames(P, 100)), erl_debugger:xregs_count(P), [erl_debugger:peek_xreg(P, N, M) || {N, M} <- [{0, 0}, {1, 0}, {2, 2}, {2, 20}, {3, 0}]]},
    erlang:resume_process(P),
    P ! wake,
    receive {debugger_event, S, {breakpoint, P, W, 4, Resume}} -> Resume() end,
    {A, W};
t(ended) ->
    P = spawn(fun() -> ok end),
    R = monitor(process, P),
    receive {'DOWN', R, _, _, _} -> ok end,
    [erl_debugger:stack_frames(P, 1), erl_debugger:xregs_count(P), erl_debugger:peek_xreg(P, 0, 1), erl_debugger:peek_stack_frame_slot(P, 0, 0, 0)];
%% A function that begins with such a line is traced: each has its own instruction.
t(traced) ->
    load(),
    set([51]),
    attach(),
    erlang:trace_pattern({broken, first, 1}, [{'_', [], [{return_trace}]}], [local]),
    erlang:trace_pattern({broken, help, 1}, true, [local]),
    F = fun() -> {broken:first([a]), broken:go(1, [1])} end,
    A = tracing(F),
    erl_debugger:breakpoint(broken, 51, false),
    set([12]),
    erlang:trace_pattern({broken, '_', '_'}, false, [local]),
    B = tracing(F),
    {A, B, erl_debugger:breakpoints(broken, first, 1)};
t(counted) ->
    load(),
    set([51]),
    erlang:trace_pattern({broken, first, 1}, true, [call_count]),
    attach(),
    A = run(fun() -> [broken:first(N) || N <- [1, 2, 3]] end),
    erl_debugger:breakpoint(broken, 51, false),
    B = run(fun() -> [broken:first(N) || N <- [1, 2]] end),
    {A, B, erlang:trace_info({broken, first, 1}, call_count), erlang:trace_pattern({broken, first, 1}, false, [call_count])};
%% The version that a process waits in stays, and has its breakpoints; the new one has none.
t(reloaded) ->
    load(),
    set([4]),
    S = attach(),
    {P, R} = spawn_monitor(fun() -> exit(broken:go(1, [2])) end),
    receive {debugger_event, S, {breakpoint, P, _, 4, Resume}} -> ok end,
    load(),
    A = {erl_debugger:breakpoints(broken, go, 2), code:soft_purge(broken), erlang:check_process_code(P, broken)},
    Resume(),
    receive {'DOWN', R, _, _, Why} -> {A, Why, code:soft_purge(broken), run(fun() -> broken:go(3, []) end)} end;
t(purged) ->
    load(),
    code:purge(broken),
    set([4]),
    S = attach(),
    {P, R} = spawn_monitor(fun() -> exit(broken:go(1, [2])) end),
    receive {debugger_event, S, {breakpoint, P, _, 4, _}} -> ok end,
    code:delete(broken),
    A = [erl_debugger:breakpoints(broken), erl_debugger:breakpoint(broken, 4, false), code:purge(broken)],
    receive {'DOWN', R, _, _, Why} -> {A, Why} end;
%% A line of two functions has the breakpoints of both.
t(apart) ->
    load(),
    L = [{F, Line} || {F, M} <- lists:sort(maps:to_list(element(2, erl_debugger:breakpoints(broken)))), Line <- lists:sort(maps:keys(M)), Line > 50, Line < 60],
    set([55]),
    attach(),
    {L, run(fun() -> broken:apart(1) end), lists:sort(maps:to_list(element(2, erl_debugger:breakpoints(broken, apart, 1))))}.

%% It is suspended where it waits.
suspended(P) ->
    case process_info(P, status) of
        {status, waiting} -> erlang:suspend_process(P);
        _ -> erlang:yield(), suspended(P)
    end.
%% Addresses differ from run to run.
shown(L) when is_list(L) -> [{N, F, S} || {N, F, #{slots := S}} <- L];
shown(X) -> X.
tracing(F) ->
    Me = self(),
    S = get(session),
    Tracer = spawn_link(fun() -> traced([], Me) end),
    {P, R} = spawn_monitor(fun() -> receive go -> exit({value, F()}) end end),
    erlang:trace(P, true, [call, {tracer, Tracer}]),
    put(session, S),
    P ! go,
    L = go_on(P, R, fun(_) -> ok end),
    D = erlang:trace_delivered(P),
    receive {trace_delivered, P, D} -> ok end,
    Tracer ! {get, Me},
    receive {Tracer, T} -> {L, [E || E <- T]} end.
traced(L, Me) ->
    receive
        {get, Me} -> Me ! {self(), lists:reverse(L)};
        M -> traced([list_to_tuple(lists:delete(element(2, M), tuple_to_list(M))) | L], Me)
    end.
