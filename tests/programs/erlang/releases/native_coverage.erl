%% Checks native coverage (OTP 27): the counts of modules loaded in each mode, the functions that
%% report them, and `cover`, which uses them. Earlier releases do not have it.
%% @stress @shared @fence
-module(native_coverage).
-export([main/0]).

main() ->
    {module, code} = code:ensure_loaded(code),
    case erlang:function_exported(code, coverage_support, 0) of
        true ->
            [io:format("~w: ~0p~n", [F, try t(F) catch C:R:S -> {C, R, [element(2, E) || E <- lists:sublist(S, 1)]} end])
             || F <- [support, refused, none, function, function_counters, line, line_counters, forced, together, traced, again, gone]];
        false -> io:format("none~n")
    end,
    io:format("cover: ~0p~n", [t(cover)]).

text() ->
    "-module(covered).\n"
    "-export([a/1, b/1, c/0, d/1, e/1, f/1, h/2, unused/1]).\n"
    "a(X) when X > 3 -> X;\n"
    "a(X) ->\n"
    "    Y = X + 1,\n"
    "    case Y of 1 -> one; 2 ->\n"
    "            two;\n"
    "        _ -> case X of 3 -> three; _ -> other end\n"
    "    end.\n"
    "b(0) -> 0;\n"
    "b(N) -> b(N - 1).\n"
    "c() ->\n"
    "    F = fun(X) ->\n"
    "                X * 2\n"
    "        end,\n"
    "    lists:map(F, [1, 2,\n"
    "                  3]).\n"
    "d(X) ->\n"
    "    try\n"
    "        hd(X)\n"
    "    catch error:_ ->\n"
    "        bad\n"
    "    after\n"
    "        g()\n"
    "    end.\n"
    "e(L) -> [Z || Z <- L,\n"
    "              Z > 1].\n"
    "f(Bin) ->\n"
    "    <<A:8, B/binary>> = Bin,\n"
    "    #{a => A,\n"
    "      b => <<B/binary, A:16>>}.\n"
    "g() -> ok.\n"
    "h(P, 0) ->\n"
    "    P ! done;\n"
    "h(P, N) ->\n"
    "    h(P, N - 1).\n"
    "unused(X) ->\n"
    "    lists:map(fun(Y) ->\n"
    "        Y end, X).\n".

%% The module, made with these options.
made(Options) ->
    case get(Options) of
        undefined ->
            B = made(text(), 1, [], Options),
            put(Options, B),
            B;
        B -> B
    end.
made([], _, Forms, Options) ->
    {ok, covered, Binary} = compile:forms(lists:reverse(Forms), Options),
    Binary;
made(Text, Line, Forms, Options) ->
    {done, {ok, Tokens, Next}, Rest} = erl_scan:tokens([], Text ++ eof, Line),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Left = case Rest of eof -> []; _ -> rest(Rest) end,
    made(case string:trim(Left) of [] -> []; _ -> Left end, Next, [Form | Forms], Options).
rest([C | T]) when is_integer(C) -> [C | rest(T)];
rest(_) -> [].

loaded(Mode, Options) ->
    code:purge(covered),
    Old = code:set_coverage_mode(Mode),
    {module, covered} = code:load_binary(covered, "covered.erl", made(Options)),
    Mode = code:set_coverage_mode(Old),
    code:get_coverage_mode(covered).

run() ->
    M = covered,
    {[M:a(X) || X <- [0, 1, 3, 5, 7]], M:b(5), M:c(), M:d([1]), M:d([]), M:e([1, 2, 3]), M:f(<<1, 2, 3>>)}.

told() -> [try code:get_coverage(W, covered) catch C:R -> {C, R} end || W <- [function, line, cover_id_line]].

t(support) -> {code:coverage_support(), code:get_coverage_mode(), code:get_coverage_mode(lists)};
t(refused) ->
    loaded(none, []),
    A = [{set_coverage_mode, [x]}, {set_coverage_mode, ["none"]}, {get_coverage_mode, [1]}, {get_coverage_mode, [no_such]},
         {get_coverage, [function, no_such]}, {get_coverage, [x, covered]}, {get_coverage, [line, "covered"]},
         {get_coverage, [function, covered]}, {reset_coverage, [covered]}, {reset_coverage, [no_such]}, {reset_coverage, [1]}],
    [{F, As, catch element(1, element(2, catch apply(code, F, As)))} || {F, As} <- A];
t(forced) ->
    Mode = loaded(none, [line_coverage, force_line_counters]),
    Before = told(),
    run(),
    {Mode, Before, told(), code:get_coverage_mode()};
%% Processes that run the same at the same time: nothing is lost.
t(together) ->
    loaded(line_counters, [line_coverage]),
    Me = self(),
    [spawn(fun() -> covered:h(Me, 2000) end) || _ <- lists:seq(1, 8)],
    [receive done -> ok end || _ <- lists:seq(1, 8)],
    [L || {_, N} = L <- code:get_coverage(line, covered), N > 0];
%% The functions that count are traced: both are told.
t(traced) ->
    loaded(function_counters, []),
    T = spawn(fun() -> receive stop -> ok end end),
    erlang:trace(self(), true, [call, {tracer, T}]),
    [erlang:trace_pattern({covered, F, 1}, true, [local]) || F <- [a, b]],
    [erlang:trace_pattern({covered, F, '_'}, true, [local, call_count]) || F <- [b, g]],
    run(),
    C = [erlang:trace_info({covered, F, N}, call_count) || {F, N} <- [{b, 1}, {g, 0}]],
    erlang:trace(self(), false, [all]),
    erlang:trace_pattern({'_', '_', '_'}, false, [local, call_count]),
    erlang:trace_pattern({'_', '_', '_'}, false, [local]),
    run(),
    exit(T, kill),
    {C, code:get_coverage(function, covered)};
%% What is loaded anew counts from nothing, and old code goes on.
t(again) ->
    loaded(line_counters, [line_coverage]),
    Me = self(),
    P = spawn(fun() -> F = fun covered:a/1, F(1), Me ! ready, receive go -> F(1), Me ! ready end end),
    receive ready -> ok end,
    run(),
    A = told(),
    B = {code:reset_coverage(covered), told()},
    run(),
    C = told(),
    loaded(line, [line_coverage]),
    P ! go, receive ready -> ok end,
    {A, B, C, told()};
t(gone) ->
    code:purge(covered), code:delete(covered), code:purge(covered),
    [catch element(1, element(2, catch apply(code, F, A))) || {F, A} <- [{get_coverage, [function, covered]}, {get_coverage_mode, [covered]}]];
t(cover) ->
    ok = file:write_file("covered.erl", text()),
    cover:start(),
    {ok, covered} = cover:compile("covered.erl"),
    run(),
    {ok, Lines} = cover:analyse(covered, calls, line),
    {ok, Functions} = cover:analyse(covered, coverage, function),
    ok = cover:reset(covered),
    run(), run(),
    {ok, Clauses} = cover:analyse(covered, calls, clause),
    ok = cover:export("covered.data", covered),
    ok = cover:reset(covered),
    ok = cover:import("covered.data"),
    {ok, Module} = cover:analyse(covered, calls, module),
    {Lines, Functions, Clauses, Module, cover:is_compiled(covered), cover:stop()};
t(Mode) ->
    Plain = loaded(Mode, []),
    Before = told(),
    run(),
    First = told(),
    Lines = loaded(Mode, [line_coverage]),
    run(), run(),
    {Plain, Before, First, Lines, told()}.
