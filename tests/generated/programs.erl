%% Random programs: modules of functions over integers, floats, lists, tuples, maps, binaries, funs,
%% exceptions, messages and comprehensions, compiled and run; what each function gives, as a line.
%% Both runtimes are given the same seed, and the compiler runs on both as well, so the code that it
%% makes is compared by its checksum too.
%%
%%   erl -noshell -run programs main SEED COUNT [DIRECTORY]
%%
%% What is compiled is kept in the directory. Whoever finds it there compiles only one of ten once
%% more. Kept, too, is which function has no end, and from which call on: only the first runtime
%% waits for it, the calls that follow are left out.
-module(programs).
-export([main/1, compiled/3, each/4]).

main([Seed, Count | Kept]) ->
    ok = io:setopts([{encoding, latin1}]),
    logger:set_primary_config(level, none),
    [begin erase(), rand:seed(exsss, calls:state(Seed, N)), program(N, Kept) end || N <- lists:seq(1, list_to_integer(Count))],
    halt(0).

compiled(Forms, N, Kept) ->
    File = [filename:join(D, integer_to_list(N) ++ ".beam") || D <- Kept],
    Options = [binary, return_errors, nowarn_export_all, deterministic, no_spawn_compiler_process | arguments:pick([[], [], [], [inline], [r23], [no_type_opt], [no_copt, no_ssa_opt, no_bsm_opt]])],
    case [B || F <- File, N rem 10 =/= 1, {ok, B} <- [file:read_file(F)]] of
        [Beam] -> {ok, generated, Beam};
        [] ->
            R = compile:forms(Forms, Options),
            [ok = file:write_file(F, Beam) || F <- File, {ok, _, Beam} <- [R]],
            R
    end.

program(N, Kept) ->
    Functions = 4,
    Forms = [{attribute, 1, module, generated}, {attribute, 1, compile, export_all}, record()] ++ [function(K) || K <- lists:seq(1, Functions)] ++ loops(),
    Others = [[arguments:term(3) || _ <- [1, 2, 3]] || _ <- lists:seq(1, 7)],
    case compiled(Forms, N, Kept) of
        {ok, generated, Beam} ->
            {ok, {_, MD5}} = beam_lib:md5(Beam),
            io:format("program ~p ~s~n", [N, binary:encode_hex(MD5)]),
            case code:load_binary(generated, "generated.erl", Beam) of
                {module, generated} -> ok;
                {error, Why} -> io:format("  ~p~n", [Why])
            end,
            [each({N, K}, Kept, fun(Args, Limit) -> io:put_chars(["  f", integer_to_list(K), " ", run(K, Args, Limit), "\n"]) end, arguments() ++ Others) || K <- lists:seq(1, Functions)],
            code:purge(generated),
            code:delete(generated),
            code:purge(generated);
        Error -> io:format("program ~p ~0P~n", [N, Error, 20])
    end.

%% Calls a function with each of the arguments, until it is told that there is no end (thrown:
%% `no_end`). The first runtime gives it four seconds, the second, which knows where the first gave
%% up, longer than any load takes.
each({N, K}, Kept, Call, Args) ->
    Files = [filename:join(D, lists:concat([N, "_", K, ".endless"])) || D <- Kept],
    {Limit, Calls} = case [binary_to_integer(B) || F <- Files, {ok, B} <- [file:read_file(F)]] of
                         [First] -> {60000, First};
                         [] -> {4000, length(Args)}
                     end,
    each(Call, lists:sublist(Args, Calls), Limit, 0, Files).

each(_, [], _, Called, Files) -> [ok = file:write_file(F, integer_to_list(Called)) || F <- Files];
each(Call, [A | Args], Limit, Called, Files) ->
    try Call(A, Limit) of
        _ -> each(Call, Args, Limit, Called + 1, Files)
    catch
        throw:no_end -> each(Call, [], Limit, Called, Files)
    end.

arguments() ->
    [[1, 2, 3], [0, -7, 1 bsl 70], [1.5, a, [1, 2, 3]], [{a, 1}, #{a => 1, 2 => b}, <<"abc">>], [[], [x | y], fun erlang:abs/1]].

run(K, Args, Limit) ->
    F = list_to_atom("f" ++ integer_to_list(K)),
    {Pid, Ref} = spawn_opt(fun() -> put(fuel, 300), exit({text, attempt(F, Args)}) end,
                           [monitor, {max_heap_size, #{size => 5000000, kill => true, error_logger => false}}]),
    receive
        {'DOWN', Ref, process, Pid, {text, T}} -> T;
        {'DOWN', Ref, process, Pid, R} -> io_lib:format("ended: ~0P", [R, 12])
    after Limit -> exit(Pid, kill), throw(no_end)
    end.

attempt(F, Args) ->
    try apply(generated, F, Args) of
        R -> io_lib:format("= ~0P", [plain(R), 60])
    catch
        C:R:S -> io_lib:format("~s ~0P at ~0P~ts", [C, plain(R), 40, [plain({M, N, arity(A), [proplists:get_value(K, I) || K <- [line, error_info], lists:keymember(K, 1, I)]})
                                                                   || {M, N, A, I} <- S, M =/= ?MODULE], 60, told(C, R, S)])
    end.

%% What the shell would say of it: texts of `error_info` too.
told(error, R, [{M, _, _, _} | _] = S) when M =/= generated ->
    Print = fun(T, _) -> io_lib:format("~0P", [plain(T), 20]) end,
    ["\n    ", lists:sublist(lists:flatten(erl_error:format_exception(1, error, R, S, fun(N, _, _) -> N =:= ?MODULE end, Print, unicode)), 400)];
told(_, _, _) -> "".

arity(A) when is_list(A) -> {arguments, plain(A)};
arity(A) -> A.

plain(T) when is_pid(T) -> 'PID';
plain(T) when is_reference(T) -> 'REF';
plain(T) when is_function(T) -> {'FUN', erlang:fun_info(T, arity)};
plain([H | T]) -> [plain(H) | plain(T)];
plain(T) when is_tuple(T) -> list_to_tuple(plain(tuple_to_list(T)));
plain(T) when is_map(T), map_size(T) > 32 -> {map, lists:sort(plain(maps:to_list(T)))};
plain(T) when is_map(T) -> maps:map(fun(_, V) -> plain(V) end, T);
plain(T) -> T.

%% Abstract code. Variables are bound names; each expression takes a line, so that stack traces show
%% where it is.
pick(L) -> lists:nth(rand:uniform(length(L)), L).
line() -> L = get_line_number() + 1, put(line_number, L), L.
get_line_number() -> case get(line_number) of undefined -> 1; N -> N end.
fresh() -> N = case get(fresh) of undefined -> 0; M -> M end, put(fresh, N + 1), list_to_atom("V" ++ integer_to_list(N)).
var(V) -> {var, line(), V}.
atom(A) -> {atom, line(), A}.
int(I) -> {integer, line(), I}.

function(K) ->
    Vars = ['A', 'B', 'C'],
    Name = list_to_atom("f" ++ integer_to_list(K)),
    Special = [{clause, line(), [var('A'), pattern(), pattern()], guards(['A']), body(K, ['A'], 3)} || rand:uniform(2) =:= 1],
    {function, line(), Name, 3, Special ++ [{clause, line(), [var(V) || V <- Vars], [], body(K, Vars, 4)}]}.

record() ->
    {attribute, 1, record, {r, [{record_field, 1, {atom, 1, x}}, {record_field, 1, {atom, 1, y}, {integer, 1, 7}}, {record_field, 1, {atom, 1, z}, {nil, 1}}]}}.

%% Recursion: in last place, within a list, by turns, and over the bits of a binary.
loops() ->
    L = line(), N = var('N'), X = var('X'), T = var('T'),
    Less = {op, L, '-', N, int(1)},
    V = fresh(),
    Steps = [{clause, line(), [int(0), var('X')], [], [X]},
             {clause, line(), [var('N'), var('X')], [], [{call, line(), atom(loop), [Less, expr(4, ['N', 'X'], 2)]}]}],
    Lists = [{clause, line(), [int(0), var('X')], [], [X]},
             {clause, line(), [var('N'), var('X')], [], [{cons, line(), expr(4, ['N', 'X'], 2), {call, line(), atom(deep), [Less, X]}}]}],
    Turns = [{clause, line(), [var('N'), var('X')], [[{op, line(), '>', N, int(0)}]], [{match, line(), var(V), {call, line(), atom(loop), [int(1), X]}}, {call, line(), atom(turn), [Less, var(V)]}]},
             {clause, line(), [int(0), var('X')], [], [{call, line(), atom(deep), [int(2), X]}]}],
    Size = int(pick([1, 3, 8, 13, 16])),
    Bits = [{clause, line(), [{bin, line(), [{bin_element, line(), var('N'), Size, pick([default, [signed], [little]])}, {bin_element, line(), var('T'), default, [bitstring]}]}, var('X')], guards(['N']),
             [{call, line(), atom(bits), [T, {cons, line(), expr(4, ['N', 'X'], 1), X}]}]},
            {clause, line(), [var('T'), var('X')], [], [{tuple, line(), [T, X]}]}],
    [{function, L, loop, 2, Steps}, {function, L, deep, 2, Lists}, {function, L, turn, 2, Turns}, {function, L, bits, 2, Bits}].

%% A pattern that binds nothing.
pattern() ->
    pick([var('_'), int(1), atom(a), {nil, line()}, {cons, line(), var('_'), var('_')}, {tuple, line(), [var('_'), int(1)]}, var('_'),
          {bin, line(), [{bin_element, line(), var('_'), int(8), default}, {bin_element, line(), var('_'), default, [binary]}]}, {map, line(), [{map_field_exact, line(), atom(a), var('_')}]}, {float, line(), 1.5},
          {op, line(), '++', {string, line(), "ab"}, var('_')}]).

guards([]) -> [];
guards(Vs) -> case rand:uniform(2) of 1 -> []; 2 -> [[guard(Vs)]] end.
guard(Vs) ->
    V = var(pick(Vs)),
    pick([call(pick([is_integer, is_list, is_atom, is_map, is_binary, is_float, is_tuple, is_number, is_function]), [V]),
          {op, line(), pick(['<', '>', '=:=', '==', '=/=']), V, int(rand:uniform(5) - 2)},
          {op, line(), '>', call(pick([length, tuple_size, map_size, byte_size, hd, abs]), [V]), int(1)},
          {op, line(), pick(['andalso', 'or', 'and', 'orelse']), call(is_integer, [V]), {op, line(), '>', V, int(0)}},
          {op, line(), pick(['=<', '==', '<']), {op, line(), pick(['+', '-', '*', 'rem', 'div', 'bxor', 'bsl']), V, int(rand:uniform(4) - 1)}, int(rand:uniform(9))},
          {op, line(), '==', call(pick([element, map_get, is_map_key, binary_part]), [pick([int(1), atom(a)]), V]), pick([int(1), atom(a), var(pick(Vs))])},
          {op, line(), 'not', call(pick([is_atom, is_boolean, is_bitstring, is_pid, is_reference]), [V])},
          call(is_record, [V, atom(r)]), call(is_function, [V, int(rand:uniform(3) - 1)]),
          {op, line(), '>', call(pick([size, bit_size, round, trunc, float, ceil, length, tuple_size]), [V]), int(0)},
          {op, line(), '=:=', {op, line(), pick(['+', '-']), V}, V}]).

call(F, Args) -> {call, line(), {remote, line(), atom(erlang), atom(F)}, Args}.
call(M, F, Args) -> {call, line(), {remote, line(), atom(M), atom(F)}, Args}.

body(K, Vs, D) ->
    case rand:uniform(3) of
        1 -> V = fresh(), [{match, line(), var(V), expr(K, Vs, D)} | body(K, [V | Vs], D - 1)];
        2 when D > 1 -> [{match, line(), var('_'), expr(K, Vs, D - 1)} | body(K, Vs, D - 1)];
        _ -> [expr(K, Vs, D)]
    end.

constant() ->
    pick([int(rand:uniform(10) - 5), int(1 bsl 59), int(-(1 bsl 64)), atom(pick([a, b, true, false, ok])), {float, line(), 2.5}, {nil, line()},
          {string, line(), "abc"}, {bin, line(), [{bin_element, line(), {string, line(), "xyz"}, default, default}]}, {tuple, line(), []},
          {char, line(), $x}, {map, line(), []}]).

expr(_, Vs, D) when D =< 0 -> case rand:uniform(4) of 1 -> constant(); _ -> var(pick(Vs)) end;
expr(K, Vs, D) ->
    E = fun() -> expr(K, Vs, D - 1 - rand:uniform(2) + 1) end,
    case rand:uniform(50) of
        1 -> {op, line(), pick(['+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor']), E(), E()};
        2 -> {op, line(), pick(['+', '-', '*']), E(), int(rand:uniform(100))};
        3 -> {op, line(), 'bsl', E(), int(rand:uniform(70))};
        4 -> {op, line(), pick(['==', '/=', '=<', '<', '>=', '>', '=:=', '=/=', '++', '--']), E(), E()};
        5 -> {tuple, line(), [E() || _ <- lists:seq(1, rand:uniform(4))]};
        6 -> {cons, line(), E(), E()};
        7 -> {cons, line(), E(), {cons, line(), E(), {nil, line()}}};
        8 -> {map, line(), [{map_field_assoc, line(), E(), E()} || _ <- lists:seq(1, rand:uniform(4))]};
        9 -> {map, line(), E(), [{pick([map_field_assoc, map_field_exact]), line(), pick([atom(a), E()]), E()}]};
        10 -> {'case', line(), E(), clauses(K, Vs, D)};
        11 -> V = fresh(), {lc, line(), expr(K, [V | Vs], D - 2), [{generate, line(), var(V), E()} | filters([V | Vs])]};
        12 -> V = fresh(),
              {bc, line(), {bin, line(), [{bin_element, line(), call('band', [expr(K, [V | Vs], 0), int(255)]), default, default}]},
               [{generate, line(), var(V), call(lists, seq, [int(1), int(rand:uniform(6))])}]};
        13 -> V = fresh(), {lc, line(), var(V), [{b_generate, line(), {bin, line(), [{bin_element, line(), var(V), int(pick([3, 8, 12])), default}]}, E()}]};
        14 -> V = fresh(), {call, line(), {'fun', line(), {clauses, [{clause, line(), [var(V)], guards([V]), body(K, [V | Vs], D - 2)}]}}, [E()]};
        15 -> V = fresh(), call(lists, pick([map, filter, foreach, any]), [{'fun', line(), {clauses, [{clause, line(), [var(V)], [], [expr(K, [V | Vs], D - 2)]}]}}, E()]);
        16 -> {'try', line(), body(K, Vs, D - 1), [], [catch_clause(K, Vs, D) || _ <- lists:seq(1, rand:uniform(2))], []};
        17 -> V = fresh(), {'try', line(), [E()], [{clause, line(), [var(V)], guards([V]), [expr(K, [V | Vs], D - 2)]}], [catch_clause(K, Vs, D)],
                            [call(put, [atom(after_was), int(1)])]};
        18 -> {'catch', line(), E()};
        19 -> call(pick([error, throw, exit]), [E()]);
        20 when K < 4 ->
            %% Calls go to functions with higher numbers, so all end.
            {call, line(), atom(list_to_atom("f" ++ integer_to_list(K + rand:uniform(4 - K)))), [E(), E(), E()]};
        21 -> {bin, line(), [begin
                                 {Size, Kind} = pick([{default, default}, {int(16), [little, signed]}, {int(4), default}, {default, [binary]},
                                                      {int(1), [binary]}, {default, [float]}, {int(32), [float, little]}, {default, [utf8]},
                                                      {default, [bitstring]}]),
                                 {bin_element, line(), E(), Size, Kind}
                             end || _ <- lists:seq(1, rand:uniform(3))]};
        22 -> receiving(K, Vs, D, E());
        23 -> case rand:uniform(2) of 1 -> call(element, [int(rand:uniform(3)), E()]); 2 -> call(setelement, [int(rand:uniform(3)), E(), E()]) end;
        24 -> call(pick([hd, tl, length, tuple_size, map_size, byte_size, abs, float, round, list_to_tuple, tuple_to_list, '-', 'bnot', 'not', integer_to_list,
                         term_to_binary, phash2, is_list, atom_to_list]), [E()]);
        25 -> {'if', line(), [{clause, line(), [], [[guard(Vs)], [guard(Vs)]], body(K, Vs, D - 2)}, {clause, line(), [], [[atom(true)]], [E()]}]};
        26 -> {block, line(), body(K, Vs, D - 1)};
        27 -> {op, line(), pick(['andalso', 'orelse']), E(), E()};
        28 -> call(maps, pick([get, find, is_key, remove]), [E(), E()]);
        29 -> call(lists, pick([reverse, sum, sort, max]), [E()]);
        30 -> {record, line(), r, [{record_field, line(), atom(F), E()} || F <- [x, y], rand:uniform(2) =:= 1]};
        31 -> {record, line(), E(), r, [{record_field, line(), atom(pick([x, y, z])), E()}]};
        32 -> {record_field, line(), pick([E(), {record, line(), r, [{record_field, line(), atom(x), E()}]}]), r, atom(pick([x, y, z]))};
        33 ->
            %% Nests of comprehensions.
            V = fresh(), W = fresh(), U = fresh(),
            {lc, line(), expr(K, [U, W, V | Vs], D - 2),
             [{generate, line(), var(V), E()} | filters([V | Vs])] ++ [{generate, line(), pick([var(W), {tuple, line(), [atom(a), var(W)]}, {cons, line(), var(W), var('_')}]), expr(K, [V | Vs], D - 2)} | filters([W, V | Vs])] ++
                 [{b_generate, line(), {bin, line(), [{bin_element, line(), var(U), int(pick([2, 8])), default}]}, expr(K, [W, V | Vs], D - 3)}]};
        34 ->
            V = fresh(), W = fresh(),
            {bc, line(), {bin, line(), [{bin_element, line(), call('band', [var(V), int(1023)]), pick([int(rand:uniform(20)), call('band', [var(W), int(15)])]), pick([default, [little], [signed]])}]},
             [{generate, line(), var(V), E()}, {b_generate, line(), {bin, line(), [{bin_element, line(), var(W), int(pick([3, 5, 8])), default}]}, E()} | filters([W, V | Vs])]};
        35 ->
            V = fresh(),
            {bc, line(), {bin, line(), [{bin_element, line(), var(V), default, [pick([bitstring, binary])]}]},
             [{b_generate, line(), {bin, line(), [{bin_element, line(), var(V), int(pick([1, 2])), [pick([bitstring, binary])]}]}, E()}]};
        36 ->
            %% Without clauses for exceptions: these go on after `after`.
            {'try', line(), body(K, Vs, D - 1), [], [], [call(put, [atom(after_was), E()])]};
        37 ->
            %% The stack trace, and the exception once more.
            C = fresh(), V = fresh(), S = fresh(),
            Then = pick([call(raise, [var(C), var(V), var(S)]), call(raise, [atom(pick([error, throw, exit])), {tuple, line(), [var(V)]}, var(S)]), {tuple, line(), [var(C), var(V), shown(S)]}, call(raise, [var(V), var(C), var(S)])]),
            {'try', line(), body(K, Vs, D - 1), [], [{clause, line(), [{tuple, line(), [var(C), var(V), var(S)]}], [], [Then]}], [E() || rand:uniform(2) =:= 1]};
        38 -> call(error, pick([[E(), pick([{nil, line()}, {cons, line(), E(), {nil, line()}}, atom(none), E()])],
                                [E(), atom(none), {cons, line(), {tuple, line(), [atom(error_info), {map, line(), [{map_field_assoc, line(), atom(cause), E()}]}]}, {nil, line()}}]]));
        39 -> N = fresh(), V = fresh(), W = fresh(),
              %% A fun that calls itself.
              {call, line(), {named_fun, line(), N, [{clause, line(), [{cons, line(), var(V), var(W)}], [], [{op, line(), pick(['+', '++', '-', '=:=']), expr(K, [V | Vs], D - 2), {call, line(), var(N), [var(W)]}}]},
                                                   {clause, line(), [var('_')], [], [expr(K, Vs, D - 2)]}]}, [E()]};
        40 -> {call, line(), pick([{'fun', line(), {function, list_to_atom("f" ++ integer_to_list(min(4, K + 1))), 3}}, {'fun', line(), {function, atom(generated), atom(f4), int(3)}}, E()]),
               [constant() || _ <- lists:seq(1, pick([3, 3, 2]))]};
        41 when K < 4 -> call(apply, pick([[atom(generated), pick([atom(f4), E()]), {cons, line(), E(), {cons, line(), E(), {cons, line(), E(), {nil, line()}}}}],
                                  [{'fun', line(), {function, f4, 3}}, E()], [E(), E()]]));
        42 when K < 4 -> {call, line(), atom(pick([loop, deep, turn])), [int(rand:uniform(6) - 1), E()]};
        43 when K < 4 -> {call, line(), atom(bits), [E(), {nil, line()}]};
        44 ->
            %% The first of several messages that fits.
            V = fresh(),
            {block, line(), [{op, line(), '!', call(self, []), {tuple, line(), [atom(T), E()]}} || T <- [p, q, p]] ++
                 [{'receive', line(), [{clause, line(), [{tuple, line(), [atom(pick([p, q, q, s])), var(V)]}], guards([V | Vs]), [expr(K, [V | Vs], D - 2)]}, {clause, line(), [{tuple, line(), [atom(q), var('_')]}], [], [E()]}],
                   call('band', [pick([E(), int(rand:uniform(4))]), int(3)]), body(K, Vs, D - 2)}]};
        45 -> {'receive', line(), [], pick([int(0), int(1), atom(a), int(-1), {op, line(), 'bsl', int(1), int(70)}]), [E()]};
        46 ->
            %% Ends of other processes.
            V = fresh(), R = fresh(), W = fresh(),
            {block, line(), [{match, line(), {tuple, line(), [var(V), var(R)]}, call(spawn_monitor, [{'fun', line(), {clauses, [{clause, line(), [], [], body(K, Vs, D - 2)}]}}])},
                             {'receive', line(), [{clause, line(), [{tuple, line(), [atom('DOWN'), var(R), atom(process), var(V), var(W)]}], [], [ended(W)]}]}]};
        47 -> V = fresh(),
              {bin, line(), [{bin_element, line(), E(), pick([call('band', [E(), int(63)]), E(), default]), pick([[integer, {unit, pick([1, 3, 8])}], [integer, little], [binary, {unit, 8}], [bitstring, {unit, 1}], [float]])},
                             {bin_element, line(), {match, line(), var(V), E()}, default, pick([[utf8], [utf16], [utf32], [utf16, little], default])}]};
        48 -> {match, line(), pick([{cons, line(), var('_'), var('_')}, int(1), {tuple, line(), [var('_')]}, {record, line(), r, []}, {op, line(), '++', {string, line(), "a"}, var('_')}, {bin, line(), [{bin_element, line(), var('_'), default, [utf8]}, {bin_element, line(), var('_'), default, [bits]}]}]), E()};
        49 -> call(pick([binary_to_integer, list_to_integer, list_to_atom, list_to_binary, iolist_to_binary, binary_to_list, integer_to_binary, bitstring_to_list, list_to_bitstring, binary_to_term, float_to_list, trunc, ceil, floor, is_record, bit_size, size]), [E()]);
        _ -> call(pick([binary, lists, maps, string, erlang]), pick([at, part, split, match, copy, nth, keyfind, member, get, put, sublist, seq, slice, length, make_tuple, binary_part, split_binary, band_, append_element, merge, map]),
                  [E() || _ <- lists:seq(1, rand:uniform(3))])
    end.

%% Of a stack trace, what its first frame tells.
shown(S) -> call(element, [int(pick([1, 2, 3])), call(hd, [var(S)])]).
%% Of the end of a process, what is the same each time.
ended(W) ->
    R = fresh(),
    {'case', line(), var(W), [{clause, line(), [{tuple, line(), [var(R), {cons, line(), {tuple, line(), [var('_'), var('_'), var('_'), var('_')]}, var('_')}]}], [], [{tuple, line(), [atom(ended), var(R)]}]},
                              {clause, line(), [var('_')], [], [var(W)]}]}.

filters(Vs) -> case rand:uniform(3) of 1 -> [guard(Vs)]; _ -> [] end.

clauses(K, Vs, D) ->
    [clause(K, Vs, D) || _ <- lists:seq(1, rand:uniform(3))] ++
        [{clause, line(), [var('_')], [], [expr(K, Vs, D - 2)]} || rand:uniform(4) > 1].
clause(K, Vs, D) ->
    V = fresh(), W = fresh(),
    {P, New} = pick([{int(1), []}, {atom(a), []}, {{nil, line()}, []}, {{float, line(), 1.5}, []}, {var(V), [V]},
                     {{cons, line(), var(V), var(W)}, [V, W]}, {{tuple, line(), [var(V), var(W)]}, [V, W]},
                     {{map, line(), [{map_field_exact, line(), atom(a), var(V)}]}, [V]},
                     {{bin, line(), [{bin_element, line(), var(V), int(8), default}, {bin_element, line(), var(W), default, [bitstring]}]}, [V, W]},
                     {{bin, line(), [{bin_element, line(), var(V), int(pick([3, 7, 17])), [little, signed]}, {bin_element, line(), var('_'), default, [bits]}]}, [V]},
                     {{bin, line(), [{bin_element, line(), var(V), default, [utf8]}, {bin_element, line(), var(W), default, [binary]}]}, [V, W]},
                     {{tuple, line(), [atom(a), var(V)]}, [V]}, {{cons, line(), int(1), var(V)}, [V]},
                     {{record, line(), r, [{record_field, line(), atom(x), var(V)}, {record_field, line(), atom(z), var(W)}]}, [V, W]},
                     {{op, line(), '++', {string, line(), "ab"}, var(V)}, [V]}, {{string, line(), "abc"}, []}, {{bin, line(), [{bin_element, line(), {string, line(), "ab"}, default, default}, {bin_element, line(), var(V), default, [binary]}]}, [V]},
                     {{match, line(), var(V), {tuple, line(), [var(W), var('_')]}}, [V, W]}, {{map, line(), [{map_field_exact, line(), int(2), var(V)}, {map_field_exact, line(), atom(a), var(W)}]}, [V, W]},
                     {{map, line(), [{map_field_exact, line(), var(pick(Vs)), var(V)}]}, [V]},
                     {{bin, line(), [{bin_element, line(), var(V), int(pick([4, 8])), default}, {bin_element, line(), var(W), var(V), pick([default, [binary, {unit, pick([1, 8])}], [integer, {unit, 2}, little]])},
                                     {bin_element, line(), var('_'), default, [bits]}]}, [V, W]},
                     {{bin, line(), [{bin_element, line(), var(V), int(pick([16, 32, 64])), pick([[float], [float, little]])}, {bin_element, line(), var(W), default, [bits]}]}, [V, W]},
                     {{bin, line(), [{bin_element, line(), var(V), default, [pick([utf16, utf32])]}, {bin_element, line(), var(W), default, [bits]}]}, [V, W]},
                     {var(pick(Vs)), []}]),
    {clause, line(), [P], guards(New), body(K, New ++ Vs, D - 2)}.

catch_clause(K, Vs, D) ->
    V = fresh(), C = pick([atom(error), atom(throw), atom(exit), var('_'), atom(error)]),
    {clause, line(), [{tuple, line(), [C, var(V), var('_')]}], [], [expr(K, [V | Vs], D - 2)]}.

receiving(K, Vs, D, E) ->
    V = fresh(),
    {block, line(),
     [{op, line(), '!', call(self, []), {tuple, line(), [atom(m), E]}},
      {'receive', line(), [{clause, line(), [{tuple, line(), [atom(m), var(V)]}], guards([V]), [expr(K, [V | Vs], D - 2)]}], int(pick([0, 0, 1])),
       [expr(K, Vs, D - 2)]}]}.
