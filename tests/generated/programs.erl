%% Random programs: modules of functions over integers, floats, lists, tuples, maps, binaries, funs, exceptions, messages
%% and comprehensions, compiled and run; what each function gives, as a line. Both runtimes are given the same seed, and
%% the compiler runs on both as well, so the code that it makes is compared by its checksum too.
%%
%%   erl -noshell -run programs main SEED COUNT
-module(programs).
-export([main/1]).

main([Seed, Count]) ->
    rand:seed(exsss, list_to_integer(Seed)),
    ok = io:setopts([{encoding, latin1}]),
    logger:set_primary_config(level, none),
    [program(N) || N <- lists:seq(1, list_to_integer(Count))],
    halt(0).

program(N) ->
    Functions = 4,
    Forms = [{attribute, 1, module, generated}, {attribute, 1, compile, export_all}] ++ [function(K) || K <- lists:seq(1, Functions)],
    Options = [binary, return_errors, nowarn_export_all, deterministic, no_spawn_compiler_process |
               pick([[], [], [inline], [r23]])],
    case compile:forms(Forms, Options) of
        {ok, generated, Beam} ->
            {ok, {_, MD5}} = beam_lib:md5(Beam),
            io:format("program ~p ~s~n", [N, binary:encode_hex(MD5)]),
            case code:load_binary(generated, "generated.erl", Beam) of
                {module, generated} -> ok;
                {error, Why} -> io:format("  ~p~n", [Why])
            end,
            [io:put_chars(io_lib:format("  f~p ~ts~n", [K, run(K, Args)])) || K <- lists:seq(1, Functions), Args <- arguments()],
            code:purge(generated),
            code:delete(generated),
            code:purge(generated);
        Error -> io:format("program ~p ~0P~n", [N, Error, 20])
    end.

arguments() ->
    [[1, 2, 3], [0, -7, 1 bsl 70], [1.5, a, [1, 2, 3]], [{a, 1}, #{a => 1, 2 => b}, <<"abc">>], [[], [x | y], fun erlang:abs/1]].

run(K, Args) ->
    F = list_to_atom("f" ++ integer_to_list(K)),
    {Pid, Ref} = spawn_opt(fun() -> put(fuel, 300), exit({text, attempt(F, Args)}) end,
                           [monitor, {max_heap_size, #{size => 5000000, kill => true, error_logger => false}}]),
    receive
        {'DOWN', Ref, process, Pid, {text, T}} -> T;
        {'DOWN', Ref, process, Pid, R} -> io_lib:format("ended: ~0P", [R, 12])
    after 20000 -> exit(Pid, kill), "no end"
    end.

attempt(F, Args) ->
    try apply(generated, F, Args) of
        R -> io_lib:format("= ~0P", [plain(R), 60])
    catch
        C:R:S -> io_lib:format("~s ~0P at ~0P", [C, plain(R), 40, [plain({M, N, arity(A), proplists:get_value(line, I)}) || {M, N, A, I} <- S, M =/= ?MODULE], 60])
    end.

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

%% Abstract code. Variables are bound names; each expression takes a line, so that stack traces show where it is.
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

%% A pattern that binds nothing.
pattern() ->
    pick([var('_'), int(1), atom(a), {nil, line()}, {cons, line(), var('_'), var('_')}, {tuple, line(), [var('_'), int(1)]}, var('_')]).

guards([]) -> [];
guards(Vs) -> case rand:uniform(2) of 1 -> []; 2 -> [[guard(Vs)]] end.
guard(Vs) ->
    V = var(pick(Vs)),
    pick([call(pick([is_integer, is_list, is_atom, is_map, is_binary, is_float, is_tuple, is_number, is_function]), [V]),
          {op, line(), pick(['<', '>', '=:=', '==', '=/=']), V, int(rand:uniform(5) - 2)},
          {op, line(), '>', call(pick([length, tuple_size, map_size, byte_size, hd, abs]), [V]), int(1)},
          {op, line(), pick(['andalso', 'or', 'and', 'orelse']), call(is_integer, [V]), {op, line(), '>', V, int(0)}}]).

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
    case rand:uniform(29) of
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
        _ -> call(lists, pick([reverse, sum, sort, max]), [E()])
    end.

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
                     {{tuple, line(), [atom(a), var(V)]}, [V]}, {{cons, line(), int(1), var(V)}, [V]}]),
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
