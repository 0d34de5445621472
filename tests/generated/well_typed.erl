%% Random programs whose expressions are of the types that are asked for, so that most run to their
%% ends: integers small and big, floats, lists, binaries and bit strings, maps, tuples, funs,
%% comprehensions within each other, exceptions that are caught, messages and recursion. What each
%% function gives, as a line; the code that the compiler makes by its checksum.
%%
%%   erl -noshell -run well_typed main SEED COUNT [DIRECTORY]    as for `programs`
-module(well_typed).
-export([main/1]).

-import(arguments, [pick/1, many/2]).

-define(FUNCTIONS, 5).

main([Seed, Count | Kept]) ->
    logger:set_primary_config(level, none),
    [begin rand:seed(exsss, calls:state(Seed, N)), program(N, Kept) end || N <- lists:seq(1, list_to_integer(Count))],
    halt(0).

program(N, Kept) ->
    put(line, 1),
    put(fresh, 0),
    Forms = [{attribute, 1, module, generated}, {attribute, 1, compile, export_all}, {attribute, 1, record, {r, [{record_field, 1, {atom, 1, n}, int(0)}, {record_field, 1, {atom, 1, l}, {nil, 1}}]}}
             | [function(K) || K <- lists:seq(1, ?FUNCTIONS)] ++ [loop(K) || K <- [1, 2, 3]]],
    Others = [[arguments:make(int), many(8, fun() -> arguments:make(int) end), arguments:make(bits), maps:from_list(many(8, fun() -> {pick([0, 1, 2, 3, arguments:make(int)]), arguments:make(int)} end))]
              || _ <- lists:seq(1, 6)],
    case programs:compiled(Forms, N, Kept) of
        {ok, generated, Beam} ->
            {ok, {_, MD5}} = beam_lib:md5(Beam),
            io:format("program ~p ~s~n", [N, binary:encode_hex(MD5)]),
            case code:load_binary(generated, "generated.erl", Beam) of
                {module, generated} -> ok;
                {error, Why} -> io:format("  ~p~n", [Why])
            end,
            [programs:each({N, K}, Kept, fun(Args, Limit) -> io:format("  g~p ~ts~n", [K, run(K, Args, Limit)]) end, arguments() ++ Others) || K <- lists:seq(1, ?FUNCTIONS)],
            code:purge(generated),
            code:delete(generated),
            code:purge(generated);
        Error -> io:format("program ~p ~0P~n", [N, Error, 20])
    end.

arguments() ->
    [[0, [], <<>>, #{}], [3, [1, 2, 3], <<"abc">>, #{1 => 2}], [-1 bsl 59, [1 bsl 59, -(1 bsl 64), 0], <<0, 255, 128, 1:3>>, maps:from_list([{I, I * I} || I <- lists:seq(1, 40)])],
     [1 bsl 100, lists:seq(10, 1, -1), <<"åäö"/utf8, 0:100>>, #{0 => 0, -1 => 5}]].

run(K, Args, Limit) ->
    F = list_to_atom("g" ++ integer_to_list(K)),
    {Pid, Ref} = spawn_opt(fun() -> exit({text, attempt(F, Args)}) end, [monitor, {max_heap_size, #{size => 5000000, kill => true, error_logger => false}}]),
    receive
        {'DOWN', Ref, process, Pid, {text, T}} -> T;
        {'DOWN', Ref, process, Pid, R} -> io_lib:format("ended: ~0P", [R, 12])
    after Limit -> exit(Pid, kill), throw(no_end)
    end.

attempt(F, Args) ->
    try apply(generated, F, Args) of
        R -> io_lib:format("= ~0P ~w", [calls:plain(R), 60, erlang:phash2(calls:plain(R))])
    catch
        C:R:S -> io_lib:format("~s ~0P at ~0P", [C, calls:plain(R), 40, [frame(Fr) || {M, _, _, _} = Fr <- S, M =/= ?MODULE], 60])
    end.

frame({M, F, A, I}) -> {M, F, if is_list(A) -> {'of', erlang:phash2(calls:plain(A))}; true -> A end, [proplists:get_value(K, I) || K <- [line, error_info], lists:keymember(K, 1, I)]}.

%% Abstract code; each expression on a line of its own.
line() -> L = get(line) + 1, put(line, L), L.
fresh() -> N = get(fresh), put(fresh, N + 1), list_to_atom("V" ++ integer_to_list(N)).
var(V) -> {var, line(), V}.
atom(A) -> {atom, line(), A}.
int(I) -> {integer, 1, I}.
op(O, A, B) -> {op, line(), O, A, B}.
erl(F, Args) -> call(erlang, F, Args).
call(M, F, Args) -> {call, line(), {remote, line(), atom(M), atom(F)}, Args}.
tuple(L) -> {tuple, line(), L}.
nil() -> {nil, line()}.
cons(A, B) -> {cons, line(), A, B}.
elem(V, Size, Kind) -> {bin_element, line(), V, Size, Kind}.
bin(L) -> {bin, line(), L}.
function(Args, Guards, Body) -> {'fun', line(), {clauses, [{clause, line(), Args, Guards, Body}]}}.
clause(P, G, B) -> {clause, line(), P, G, B}.
types() -> [int, int, int, list, list, bin, map, tuple, float, bool, atom, 'fun', record].

function(K) ->
    Env = [{'A', int}, {'B', list}, {'C', bits}, {'D', map}],
    put(function, K),
    {function, line(), list_to_atom("g" ++ integer_to_list(K)), 4,
     [clause([pick([int(0), int(3), {op, 1, '-', int(1)}]), var('B'), var('C'), var('D')], [], body(int, tl(Env), 3)) || rand:uniform(3) =:= 1] ++
         [clause([var('A'), cons(var('H'), var('B')), var('C'), var('D')], [[bool_guard([{'A', int}, {'H', int}])]], body(pick([int, list]), [{'H', int} | Env], 4)) || rand:uniform(3) =:= 1] ++
         [clause([var('A'), var('B'), bin([elem(var('H'), int(pick([1, 7, 8, 16])), pick([default, [little], [signed]])), elem(var('C'), default, [bitstring])]), var('D')], [], body(pick([int, bits]), [{'H', int} | Env], 4)) || rand:uniform(3) =:= 1] ++
         [clause([var(V) || {V, _} <- Env], [], body(pick(types()), Env, 5))]}.

%% As often as is told, over all that has come of it.
loop(K) ->
    put(function, ?FUNCTIONS),
    T = element(K, {int, list, bin}),
    F = list_to_atom("loop" ++ integer_to_list(K)),
    {function, line(), F, 2, [clause([int(0), var('X')], [], [var('X')]),
                              clause([var('N'), var('X')], [[bool_guard([{'N', int}])]], [{call, line(), atom(F), [op('-', var('N'), int(1)), small(T, gen(T, [{'N', int}, {'X', T}], 2))]}]),
                              clause([var('N'), var('X')], [], [{call, line(), atom(F), [op('-', var('N'), int(1)), small(T, gen(T, [{'X', T}], 1))]}])]}.
small(int, E) -> op('rem', E, int((1 bsl pick([20, 70])) - 1));
small(list, E) -> call(lists, sublist, [E, int(20)]);
small(bin, E) -> V = fresh(), {'case', line(), E, [clause([bin([elem(var(V), int(20), [binary]), elem(var('_'), default, [bitstring])])], [], [var(V)]), clause([var(V)], [], [var(V)])]}.

body(T, Env, D) ->
    case rand:uniform(3) of
        3 -> [gen(T, Env, D)];
        _ when D > 1 -> V = fresh(), U = pick(types()), [{match, line(), var(V), gen(U, Env, D - 1)} | body(T, [{V, U} | Env], D - 1)];
        _ -> [gen(T, Env, D)]
    end.

constant(int) -> pick([int(rand:uniform(20) - 10), int(pick([0, 1, 255, 1 bsl 27, 1 bsl 59, -(1 bsl 59), (1 bsl 59) - 1, 1 bsl 64, -(1 bsl 63), 1 bsl 128]))]);
constant(float) -> {float, line(), pick([0.0, 1.5, -2.25, 1.0e10, 0.1])};
constant(bool) -> atom(pick([true, false]));
constant(atom) -> atom(pick([a, b, true, false, ok, undefined]));
constant(list) -> pick([nil(), {string, line(), "abc"}, cons(int(1), cons(int(2), nil()))]);
constant(bin) -> bin([elem({string, line(), pick(["", "xyz", "abcdefgh"])}, default, default)]);
constant(bits) -> pick([constant(bin), bin([elem(int(5), int(3), default)])]);
constant(map) -> {map, line(), [{map_field_assoc, line(), int(K), int(V)} || {K, V} <- pick([[], [{1, 2}], [{1, 2}, {3, 4}, {0, 0}]])]};
constant(tuple) -> tuple([int(1), nil()]);
constant(record) -> {record, line(), r, []};
constant('fun') -> V = fresh(), function([var(V)], [], [op('+', var(V), int(1))]).

fits(bits, bin) -> true;
fits(T, T) -> true;
fits(_, _) -> false.

bool_guard(Env) ->
    I = fun() -> case [V || {V, int} <- Env] of [] -> int(1); L -> var(pick(L)) end end,
    pick([op(pick(['<', '>', '=<', '=:=', '=/=', '==']), I(), int(pick([0, 1, 2, 100]))), op('=:=', op('band', I(), int(1)), int(1)), op(pick(['andalso', 'orelse', 'and', 'or', 'xor']), op('<', I(), int(5)), op('>', op('+', I(), I()), int(0))),
          {op, line(), 'not', op('<', I(), I())}, op('>', op('rem', I(), int(7)), int(2))]).

gen(T, Env, D) when D =< 0 ->
    case [V || {V, U} <- Env, fits(T, U)] of
        [] -> constant(T);
        L -> case rand:uniform(4) of 1 -> constant(T); _ -> var(pick(L)) end
    end;
gen(T, Env, D) ->
    case rand:uniform(12) of
        1 -> choice(T, Env, D);
        2 -> guarded(T, Env, D);
        3 -> received(T, Env, D);
        4 -> gen(T, Env, 0);
        5 -> {block, line(), body(T, Env, D - 1)};
        _ -> made(T, fun(U) -> gen(U, Env, D - rand:uniform(2)) end, Env, D - 2)
    end.

choice(T, Env, D) ->
    U = pick(types()),
    V = fresh(), W = fresh(),
    B = fun(New) -> body(T, New ++ Env, D - 2) end,
    Patterns = case U of
                   int -> [clause([int(I)], [], B([])) || I <- many(3, fun() -> pick([0, 1, 2, 3, 255, 1 bsl 59]) end)] ++ [clause([var(V)], [[bool_guard([{V, int}])]], B([{V, int}]))];
                   list -> [clause([nil()], [], B([])), clause([cons(var(V), var(W))], [[bool_guard([{V, int}])]], B([{V, int}, {W, list}])), clause([cons(var('_'), cons(var(V), var('_')))], [], B([{V, int}]))];
                   bin -> [clause([bin([elem(var(V), int(pick([8, 12, 16, 3])), pick([default, [little], [signed]])), elem(var(W), default, [bitstring])])], [], B([{V, int}, {W, bits}])),
                           clause([bin([elem(var(V), default, [utf8]), elem(var(W), default, [binary])])], [], B([{V, int}, {W, bin}])), clause([bin([])], [], B([]))];
                   map -> [clause([{map, line(), [{map_field_exact, line(), int(1), var(V)}]}], [], B([{V, int}])), clause([{map, line(), [{map_field_exact, line(), int(3), var('_')}, {map_field_exact, line(), int(0), var(V)}]}], [], B([{V, int}]))];
                   tuple -> [clause([tuple([int(1), var(W)])], [], B([{W, list}])), clause([tuple([var(V), var(W)])], [[bool_guard([{V, int}])]], B([{V, int}, {W, list}]))];
                   record -> [clause([{record, line(), r, [{record_field, line(), atom(n), var(V)}, {record_field, line(), atom(l), cons(var(W), var('_'))}]}], [], B([{V, int}, {W, int}]))];
                   float -> [clause([var(V)], [[op('<', var(V), {float, line(), 1.0})]], B([{V, float}])), clause([{float, line(), 1.5}], [], B([]))];
                   bool -> [clause([atom(true)], [], B([])), clause([atom(false)], [], B([]))];
                   atom -> [clause([atom(A)], [], B([])) || A <- [a, b, ok]];
                   'fun' -> [clause([var(V)], [[erl(is_function, [var(V), int(1)])]], B([{V, 'fun'}]))]
               end,
    {'case', line(), gen(U, Env, D - 1), Patterns ++ [clause([var('_')], [], body(T, Env, D - 2))]}.

%% Exceptions that are thrown here and caught here, through other frames.
guarded(T, Env, D) ->
    V = fresh(), S = fresh(),
    E = gen(T, Env, D - 2),
    C = pick([throw, error, exit]),
    Thrown = case rand:uniform(4) of
                 1 -> erl(C, [E]);
                 2 -> W = fresh(), call(lists, foldl, [function([var('_'), var(W)], [], [erl(C, [E])]), gen(int, Env, 0), gen(list, Env, D - 2)]);
                 3 -> {'catch', line(), {'try', line(), [erl(C, [E])], [], [], [erl(put, [atom(x), int(1)])]}};
                 4 -> {block, line(), [{match, line(), int(1), gen(int, Env, 0)}, erl(C, [E])]}
             end,
    Other = clause([tuple([var('_'), var('_'), var('_')])], [], [gen(T, Env, D - 2)]),
    %% What is caught is of the type if it was thrown as such, and not if something failed before.
    {'try', line(), [Thrown], [clause([var('_')], [], [gen(T, Env, D - 2)])],
     pick([[clause([tuple([atom(C), var(V), var('_')])], [[fitting(T, V)]], [{block, line(), body(T, [{V, T} | Env], D - 2)}]), Other],
           [clause([tuple([var('_'), var('_'), var(S)])], [], [{block, line(), [erl(length, [var(S)]), gen(T, Env, D - 2)]}])], [Other]]),
     [erl(put, [atom(y), gen(pick(types()), Env, 0)]) || rand:uniform(3) =:= 1]}.

fitting(int, V) -> erl(is_integer, [var(V)]);
fitting(float, V) -> erl(is_float, [var(V)]);
fitting(bool, V) -> erl(is_boolean, [var(V)]);
fitting(atom, V) -> erl(is_atom, [var(V)]);
fitting(list, V) -> erl(is_list, [var(V)]);
fitting(bin, V) -> erl(is_binary, [var(V)]);
fitting(bits, V) -> erl(is_bitstring, [var(V)]);
fitting(map, V) -> erl(is_map, [var(V)]);
fitting(record, V) -> erl(is_record, [var(V), atom(r)]);
fitting(tuple, V) -> op('andalso', erl(is_tuple, [var(V)]), op('=:=', erl(tuple_size, [var(V)]), int(2)));
fitting('fun', V) -> erl(is_function, [var(V), int(1)]).

received(T, Env, D) ->
    V = fresh(), W = fresh(), U = pick(types()),
    Sent = [op('!', erl(self, []), tuple([atom(Tag), gen(X, Env, D - 2)])) || {Tag, X} <- pick([[{m, T}], [{k, U}, {m, T}], [{m, T}, {k, U}], [{k, U}]])],
    case rand:uniform(3) of
        1 ->
            %% From another process.
            P = fresh(), R = fresh(),
            {block, line(), [{match, line(), tuple([var(P), var(R)]), erl(spawn_monitor, [function([], [], [erl(exit, [tuple([atom(done), gen(T, Env, D - 2)])])])])},
                             {'receive', line(), [clause([tuple([atom('DOWN'), var(R), atom(process), var(P), tuple([atom(done), var(V)])])], [], body(T, [{V, T} | Env], D - 2)),
                                                  clause([tuple([atom('DOWN'), var(R), atom(process), var(P), var('_')])], [], [gen(T, Env, D - 2)])]}]};
        _ ->
            {block, line(), Sent ++ [{'receive', line(), [clause([tuple([atom(m), var(V)])], [[fitting(T, V)]], body(T, [{V, T} | Env], D - 2)), clause([tuple([atom(m), var(W)])], [], [gen(T, Env, D - 3)])], pick([int(0), op('band', gen(int, Env, 0), int(1))]), body(T, Env, D - 2)}]}
    end.

made(int, E, Env, D) ->
    V = fresh(), W = fresh(),
    case rand:uniform(26) of
        N when N < 5 -> op(pick(['+', '-', 'band', 'bor', 'bxor']), E(int), E(int));
        %% Within bounds: what is squared in a loop has no end.
        5 -> op('*', op('rem', E(int), int((1 bsl pick([30, 70])) - 1)), E(int));
        6 -> op(pick(['div', 'rem']), E(int), int(pick([1, 2, 3, -7, 1 bsl 60, 1 bsl 64])));
        7 -> pick([op('bsr', E(int), op('band', E(int), int(63))), op('bsl', op('rem', E(int), int(1 bsl 200)), op('band', E(int), int(63)))]);
        8 -> {op, line(), pick(['-', 'bnot', '+']), E(int)};
        9 -> erl(length, [E(list)]);
        10 -> erl(pick([bit_size, byte_size]), [E(bits)]);
        11 -> erl(map_size, [E(map)]);
        12 -> erl(element, [int(1), E(tuple)]);
        13 -> {call, line(), E('fun'), [E(int)]};
        14 -> call(lists, sum, [E(list)]);
        15 -> call(lists, pick([foldl, foldr]), [function([var(V), var(W)], [], body(int, [{V, int}, {W, int} | Env], D)), E(int), E(list)]);
        16 -> call(maps, get, [E(int), E(map), E(int)]);
        17 -> {record_field, line(), E(record), r, atom(n)};
        18 -> {call, line(), atom(loop1), [op('band', E(int), int(15)), E(int)]};
        19 -> {'case', line(), E(bits), [clause([bin([elem(var(V), int(pick([1, 8, 24, 60, 64, 70])), pick([default, [little], [signed, little], [signed]])), elem(var('_'), default, [bitstring])])], [], [var(V)]), clause([var('_')], [], [E(int)])]};
        20 -> erl(trunc, [E(float)]);
        21 -> erl(phash2, [E(pick([list, bits, map, tuple, float, int]))]);
        22 -> call(maps, fold, [function([var('_'), var(V), var(W)], [], [op('+', var(V), var(W))]), E(int), E(map)]);
        23 -> erl(binary_to_integer, [erl(integer_to_binary, [E(int)])]);
        24 -> local(1, E);
        25 -> {'if', line(), [clause([], [[bool_guard(Env)], [bool_guard(Env)]], [E(int)]), clause([], [[atom(true)]], [E(int)])]};
        26 -> pick([erl(abs, [E(int)]), erl(pick([max, min]), [E(int), E(int)])]) end;
made(list, E, Env, D) ->
    V = fresh(), W = fresh(), U = fresh(),
    case rand:uniform(20) of
        N when N < 3 -> cons(E(int), E(list));
        3 -> op(pick(['++', '--']), E(list), E(list));
        4 -> call(lists, pick([reverse, sort, usort]), [E(list)]);
        5 -> call(lists, map, [E('fun'), E(list)]);
        6 -> call(lists, filter, [function([var(V)], [], [E(bool)]), E(list)]);
        7 -> {lc, line(), gen(int, [{V, int} | Env], D), [{generate, line(), var(V), E(list)} | [bool_guard([{V, int}]) || rand:uniform(2) =:= 1]]};
        8 -> {lc, line(), gen(int, [{V, int}, {W, int} | Env], D), [{generate, line(), var(V), call(lists, seq, [int(1), op('band', E(int), int(3))])}, bool_guard([{V, int} | Env]), {generate, line(), var(W), gen(list, [{V, int} | Env], D)}]};
        9 -> {lc, line(), gen(int, [{V, int} | Env], D), [{b_generate, line(), bin([elem(var(V), int(pick([2, 3, 8, 17])), pick([default, [signed], [little]]))]), E(bits)}]};
        10 -> {lc, line(), gen(int, [{V, int}, {W, int} | Env], D), [{b_generate, line(), bin([elem(var(U), int(4), default), elem(var(V), var(U), default)]), E(bits)}, {generate, line(), var(W), {lc, line(), op('+', var(V), var(U)), [{generate, line(), var('_'), E(list)}]}}]};
        11 -> call(lists, sort, [call(maps, pick([keys, values]), [E(map)])]);
        12 -> erl(binary_to_list, [E(bin)]);
        13 -> erl(element, [int(2), E(tuple)]);
        14 -> {record_field, line(), E(record), r, atom(l)};
        15 -> {call, line(), atom(loop2), [op('band', E(int), int(15)), E(list)]};
        16 -> {call, line(), {named_fun, line(), W, [clause([cons(var(V), var(U))], [], [cons(gen(int, [{V, int}, {U, list} | Env], D), {call, line(), var(W), [var(U)]})]), clause([nil()], [], [gen(list, Env, D)])]}, [E(list)]};
        17 -> {'case', line(), E(list), [clause([cons(var('_'), var(V))], [], body(list, [{V, list} | Env], D)), clause([nil()], [], [E(list)])]};
        18 -> erl(integer_to_list, [E(int)]);
        19 -> call(lists, sublist, [E(list), op('band', E(int), int(7))]);
        20 -> local(2, E) end;
made(bin, E, Env, D) ->
    V = fresh(),
    case rand:uniform(11) of
        1 -> bin([elem(E(int), int(8), default), elem(E(bin), default, [binary])]);
        2 -> bin([elem(E(int), int(pick([16, 32, 64, 128])), pick([[little], [big], [signed]])), elem(E(bin), default, [binary]), elem(E(bin), default, [binary])]);
        3 -> erl(list_to_binary, [{lc, line(), op('band', var(V), int(255)), [{generate, line(), var(V), E(list)}]}]);
        4 -> {bc, line(), bin([elem(gen(int, [{V, int} | Env], D), int(8), default)]), [{generate, line(), var(V), E(list)} | [bool_guard([{V, int}]) || rand:uniform(2) =:= 1]]};
        5 -> {bc, line(), bin([elem(op('bxor', var(V), int(90)), int(8), default)]), [{b_generate, line(), bin([elem(var(V), int(8), default)]), E(bits)}]};
        6 -> erl(integer_to_binary, [E(int)]);
        7 -> bin([elem(op('band', E(int), int(16#7ff)), default, [pick([utf8, utf16, utf32])]), elem(E(bin), default, [binary])]);
        8 -> bin([elem(E(float), int(pick([64, 64, 32, 16])), [float, pick([big, little])])]);
        9 -> call(binary, copy, [E(bin), op('band', E(int), int(3))]);
        10 -> {call, line(), atom(loop3), [op('band', E(int), int(15)), E(bin)]};
        11 -> local(3, E) end;
made(bits, E, Env, D) ->
    V = fresh(), W = fresh(),
    case rand:uniform(5) of
        1 -> bin([elem(E(int), int(pick([1, 3, 12, 67])), default), elem(E(bits), default, [bitstring])]);
        2 -> bin([elem(E(int), op('band', E(int), int(31)), default), elem(E(bits), default, [bitstring])]);
        3 -> {bc, line(), bin([elem(gen(int, [{V, int} | Env], D), op('band', var(V), int(15)), default)]), [{generate, line(), var(V), E(list)}]};
        4 -> {bc, line(), bin([elem(var(V), int(pick([1, 5])), default), elem(var(W), int(3), default)]), [{b_generate, line(), bin([elem(var(V), int(3), default), elem(var(W), int(4), [signed])]), E(bits)}]};
        5 -> E(bin) end;
made(map, E, Env, D) ->
    V = fresh(), W = fresh(),
    case rand:uniform(9) of
        1 -> {map, line(), [{map_field_assoc, line(), E(int), E(int)} || _ <- lists:seq(1, rand:uniform(4))]};
        2 -> {map, line(), E(map), [{map_field_assoc, line(), E(int), E(int)} || _ <- lists:seq(1, rand:uniform(2))]};
        3 -> call(maps, put, [E(int), E(int), E(map)]);
        4 -> call(maps, merge, [E(map), E(map)]);
        5 -> call(maps, map, [function([var(V), var(W)], [], [gen(int, [{V, int}, {W, int} | Env], D)]), E(map)]);
        6 -> call(maps, from_list, [{lc, line(), tuple([var(V), E(int)]), [{generate, line(), var(V), E(list)}]}]);
        7 -> call(maps, remove, [E(int), E(map)]);
        8 -> call(maps, filter, [function([var(V), var(W)], [], [bool_guard([{V, int}, {W, int}])]), E(map)]);
        9 -> call(maps, with, [E(list), E(map)]) end;
made(tuple, E, _, _) ->
    case rand:uniform(4) of
        1 -> erl(setelement, [int(1), E(tuple), E(int)]);
        2 -> erl(setelement, [int(2), erl(setelement, [int(1), E(tuple), E(int)]), E(list)]);
        3 -> erl(list_to_tuple, [cons(E(int), cons(E(list), nil()))]);
        4 -> tuple([E(int), E(list)]) end;
made(record, E, _, _) ->
    case rand:uniform(3) of
        1 -> {record, line(), r, [{record_field, line(), atom(n), E(int)}]};
        2 -> {record, line(), r, [{record_field, line(), atom(n), E(int)}, {record_field, line(), atom(l), E(list)}]};
        3 -> {record, line(), E(record), r, [{record_field, line(), atom(l), E(list)}]} end;
made(float, E, _, _) ->
    case rand:uniform(6) of
        1 -> op(pick(['+', '-', '*']), E(float), E(float));
        2 -> op(pick(['+', '-', '*']), E(float), op('rem', E(int), int(1000)));
        3 -> op('/', E(float), {float, line(), pick([2.0, 0.3, -7.5])});
        4 -> erl(float, [op('rem', E(int), int(1 bsl 60))]);
        5 -> {op, line(), '-', E(float)};
        6 -> call(math, pick([sqrt, sin, ceil, floor]), [erl(abs, [op('rem', E(int), int(1 bsl 60))])]) end;
made(bool, E, Env, _) ->
    case rand:uniform(8) of
        1 -> op(pick(['<', '>', '=<', '>=', '==', '/=', '=:=', '=/=']), E(int), E(int));
        2 -> T = pick(types()), op(pick(['<', '=<', '==', '=:=', '=/=']), E(pick([T, int, float])), E(case T of 'fun' -> int; _ -> T end));
        3 -> op(pick(['andalso', 'orelse', 'and', 'or', 'xor']), E(bool), E(bool));
        4 -> {op, line(), 'not', E(bool)};
        5 -> call(lists, member, [E(int), E(list)]);
        6 -> call(maps, is_key, [E(int), E(map)]);
        7 -> call(lists, pick([any, all]), [begin V = fresh(), function([var(V)], [], [bool_guard([{V, int} | Env])]) end, E(list)]);
        8 -> erl(pick([is_list, is_integer, is_map, is_binary]), [E(pick(types()))]) end;
made(atom, E, _, _) -> pick([constant(atom), E(bool)]);
made('fun', E, Env, D) ->
    V = fresh(), W = fresh(),
    case rand:uniform(4) of
        1 -> function([var(V)], [], [op(pick(['+', '-', '*']), op('rem', var(V), int(1 bsl 80)), E(int))]);
        2 -> {'fun', line(), {clauses, [clause([int(pick([0, 1, 2]))], [], [E(int)]), clause([var(V)], [[bool_guard([{V, int}])]], body(int, [{V, int} | Env], D)), clause([var(W)], [], body(int, [{W, int} | Env], D))]}};
        3 -> {'fun', line(), {function, atom(erlang), atom(pick([abs, '-', '+', 'bnot'])), int(1)}};
        4 -> function([var(V)], [], body(int, [{V, int} | Env], D)) end.

%% Calls go to functions with higher numbers, so that all end; what comes back may be of any type.
local(I, E) ->
    T = element(I, {int, list, bin}),
    case get(function) of
        K when K < ?FUNCTIONS ->
            V = fresh(),
            N = K + rand:uniform(?FUNCTIONS - K),
            {'case', line(), {call, line(), atom(list_to_atom("g" ++ integer_to_list(N))), [E(int), E(list), E(bits), E(map)]}, [clause([var(V)], [[fitting(T, V)]], [var(V)]), clause([var('_')], [], [E(T)])]};
        _ -> constant(T)
    end.
