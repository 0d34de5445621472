-module(ets_oracle).
-export([main/1]).

%% What is generated, from which seed, and where it is written.
main([What, Seed, File]) ->
    rand:seed(exsss, {1, 2, list_to_integer(Seed)}),
    Types = [[set], [bag], [duplicate_bag], [ordered_set], [set, private], [bag, public], [ordered_set, private],
             [{keypos, 2}], [ordered_set, {keypos, 2}], [duplicate_bag, {keypos, 2}], [compressed],
             [set, public, {write_concurrency, true}], [ordered_set, public, {write_concurrency, true}]],
    Records = case What of
        "tables" -> [{O, ops(O, 80)} || O <- Types, _ <- lists:seq(1, 10)];
        %% With write_concurrency, sizes are estimates, and so the order of large tables is a matter of chance.
        "large" -> [{O, large(O)} || O <- Types, not lists:member({write_concurrency, true}, O) orelse hd(O) =:= ordered_set];
        _ ->
            K = list_to_atom(What),
            [begin A = [subject(K), spec(K), K], {spec, A, outcome(fun() -> apply(erlang, match_spec_test, A) end)} end
             || _ <- lists:seq(1, 1000)]
    end,
    Out = [begin B = term_to_binary(R), <<(byte_size(B)):32, B/binary>> end || R <- Records],
    ok = file:write_file(File, Out),
    halt().

outcome(F) ->
    try {value, F()}
    catch error:E:S ->
        {_, _, _, I} = hd(S),
        {error, E, maps:get(cause, proplists:get_value(error_info, I, #{}), none)}
    end.

pick(L) -> lists:nth(rand:uniform(length(L)), L).
chance(N) -> rand:uniform(N) =:= 1.

ops(O, N) ->
    T = ets:new(t, O),
    R = [run(T, op(O)) || _ <- lists:seq(1, N)],
    ets:delete(T),
    R.

large(O) ->
    T = ets:new(t, O),
    Is = [lists:seq(A, A + 499) || A <- lists:seq(1, 6000, 500)],
    Ops = [{insert, [[{I, I rem 10, x} || I <- L]]} || L <- Is] ++
        [{info, [size]}] ++ [{info, [memory]} || not lists:member(compressed, O), not lists:member({write_concurrency, true}, O)] ++
        [{walk, []}, {walk_back, []}, {match, ['$1']}, {match_object, [{'_', 3, '_'}]},
         {select, [[{{'$1', '$2', '_'}, [{'<', '$2', 2}], ['$1']}]]},
         {select_reverse, [[{{'$1', '$2', '_'}, [{'<', '$2', 2}], ['$1']}]]},
         {chunks_select, [[{{'$1', '$2', '_'}, [{'<', '$2', 7}], ['$1']}], 700]},
         {chunks_select_reverse, [[{{'$1', '$2', '_'}, [{'<', '$2', 7}], ['$1']}], 1300]},
         {chunks_match, [{'$1', 5, '$2'}, 7]},
         {select_count, [[{{'_', '$2', '_'}, [{'=:=', '$2', 2}], [true]}]]}] ++
        [{select_replace, [[{{'$1', 5, '_'}, [], [{{'$1', 5, y}}]}]]} || not lists:member(bag, O), not lists:member({keypos, 2}, O)] ++
        [{internal_select_delete, [[{{'_', '$2', '_'}, [{'>=', '$2', 4}], [true]}]]}, {info, [size]}, {walk, []},
         {match_object, ['_']}, {safe_fixtable, [true]},
         {internal_select_delete, [[{{'$1', '_', '_'}, [{'>=', '$1', 1000}], [true]}]]}, {info, [size]}, {walk, []},
         {safe_fixtable, [false]}, {walk, []}, {match_object, ['_']}] ++
        [{delete, [I]} || I <- lists:seq(1, 990)] ++ [{info, [size]}, {match_object, ['_']}, {internal_delete_all, [undefined]}, {info, [size]}],
    R = [run(T, Op) || Op <- Ops],
    ets:delete(T),
    R.

run(T, {F, A}) ->
    R = outcome(fun() ->
        case F of
            walk -> walk(T, ets:first(T), next);
            walk_back -> walk(T, ets:last(T), prev);
            chunks_select -> chunks(select, apply(ets, select, [T | A]));
            chunks_match -> chunks(match, apply(ets, match, [T | A]));
            chunks_match_object -> chunks(match_object, apply(ets, match_object, [T | A]));
            chunks_select_reverse -> chunks(select_reverse, apply(ets, select_reverse, [T | A]));
            _ -> apply(ets, F, [T | A])
        end
    end),
    {F, A, R}.

walk(_, '$end_of_table', _) -> [];
walk(T, K, F) -> [K | walk(T, ets:F(T, K), F)].
chunks(F, {L, C}) -> [L | chunks(F, ets:F(C))];
chunks(_, E) -> [E].

%% No atoms within other terms: where such keys lie in a table depends on the numbers of atoms.
keys() -> [1, 2, 3, 4, 5, 1.0, 2.0, -7, a, b, 'long_atom_here', {8, 1}, {8, 2}, {8, 1.0}, "ab", "b", <<"x">>, [], #{8 => 1}, #{8 => 1.0}, 1 bsl 70,
    {7, {6, 1}}, {7, {6, 2}}, 0.0].
key() -> pick(keys()).
val(0) -> pick([1, -1, 100, 0, a, b, [], 2.5, true, false, 1 bsl 59 - 1, 1 bsl 60, <<"bin">>, binary:copy(<<"z">>, 100), "str", x]);
val(D) ->
    case rand:uniform(8) of
        1 -> {};
        2 -> [val(D - 1) || _ <- lists:seq(1, rand:uniform(3))];
        3 -> list_to_tuple([val(D - 1) || _ <- lists:seq(1, rand:uniform(3))]);
        4 -> maps:from_list([{pick([a, b, 1, "k"]), val(D - 1)} || _ <- lists:seq(1, rand:uniform(3))]);
        _ -> val(0)
    end.
obj(O) ->
    V = [val(2) || _ <- lists:seq(1, rand:uniform(3))],
    L = case lists:keyfind(keypos, 1, O) of
        {_, 2} -> [hd(V), key() | tl(V)];
        _ -> [key() | V]
    end,
    case chance(30) of true -> pick([{}, {1}, [], a]); _ -> list_to_tuple(L) end.
small_obj() -> {key(), pick([1, 2, 3, 1 bsl 59 - 1, a])}.

op(O) ->
    K = key(),
    case rand:uniform(46) of
        N when N < 8 -> {insert, [obj(O)]};
        N when N < 11 -> {insert, [small_obj()]};
        11 -> {insert, [[obj(O) || _ <- lists:seq(1, rand:uniform(5) - 1)]]};
        12 -> {insert, [[obj(O) | pick([a, [a], {a, b}])]]};
        13 -> {insert_new, [obj(O)]};
        14 -> {insert_new, [[small_obj() || _ <- lists:seq(1, rand:uniform(3))]]};
        15 -> {lookup, [K]};
        16 -> {member, [K]};
        17 -> {lookup_element, [K, pick([1, 2, 3, 0, 5, a])]};
        18 -> {delete, [K]};
        19 -> {delete_object, [case chance(2) of true -> small_obj(); _ -> obj(O) end]};
        20 -> {take, [K]};
        N when N < 24 -> {update_counter, [K, counter()]};
        %% Stock crashes where an update fails after a default was put into an ordered table, and leaves a trace of it in a
        %% table that is fixed: so these succeed, or fail before.
        24 -> {update_counter, [K, pick([{2, 1}, [{2, 1}, {3, -4}], []]), pick([{x, 1, 2}, a, {1, 2, 3, 4}])]};
        25 -> {update_element, [K, element()]};
        26 -> {walk, []};
        27 -> {walk_back, []};
        28 -> {next, [K]};
        29 -> {prev, [K]};
        30 -> case lists:member({write_concurrency, true}, O) of true -> {info, [size]}; _ -> {slot, [pick([0, 1, 2, 3, 100, 255, 256, 257, -1, a])]} end;
        31 -> {info, [pick([size, type, keypos, protection, named_table, compressed, fixed, name, heir, foo])]};
        32 -> {match, [pattern(O)]};
        33 -> {match_object, [pattern(O)]};
        N when N < 37 -> {select, [spec(O, table)]};
        37 -> {select_reverse, [spec(O, table)]};
        38 -> {chunks_select, [spec(O, table), pick([1, 2, 3, 10, 0, a])]};
        39 -> {chunks_select_reverse, [spec(O, table), pick([1, 2, 3, 10, 0, a])]};
        40 -> {chunks_match_object, [pattern(O), pick([1, 2, 3, 10])]};
        41 -> {select_count, [spec(O, table)]};
        42 -> {internal_select_delete, [spec(O, table)]};
        43 -> {select_replace, [replace()]};
        44 -> case chance(6) of true -> {internal_delete_all, [undefined]}; _ -> {info, [size]} end;
        45 -> {safe_fixtable, [pick([true, false, false, a])]};
        46 -> {match_object, ['_']}
    end.
counter() ->
    U = fun() -> pick([{2, 1}, {2, -1}, {3, 1}, {2, 1 bsl 59}, {2, 1, 3, 0}, {2, -1, 0, 10}, {1, 1}, {9, 1}, {2, a}, {2, 1, a, 1}, {2}, {a, 1}, {2, 0}]) end,
    case rand:uniform(4) of
        1 -> pick([1, -1, 5, 1 bsl 62, 0]);
        2 -> [U() || _ <- lists:seq(1, rand:uniform(4) - 1)];
        3 -> pick([a, [{2, 1} | x], [{2, 1}, x]]);
        _ -> U()
    end.
element() ->
    E = fun() -> {pick([2, 3, 1, 2, 9, 0, a]), val(1)} end,
    case rand:uniform(3) of 1 -> [E() || _ <- lists:seq(1, rand:uniform(3) - 1)]; 2 -> pick([a, {1}, [{2, x} | a]]); _ -> E() end.

var() -> pick(['$1', '$2', '$3', '_', '_', '$0', '$12']).
sub(0) -> case chance(3) of true -> val(0); _ -> var() end;
sub(D) ->
    case rand:uniform(9) of
        1 -> {sub(D - 1), sub(D - 1)};
        2 -> [sub(D - 1) | pick([[], var()])];
        3 -> maps:from_list([{pick([a, b, "k"]), sub(D - 1)} || _ <- lists:seq(1, rand:uniform(2))]);
        4 -> key();
        _ -> sub(0)
    end.
pattern(O) ->
    case rand:uniform(10) of
        1 -> var();
        2 -> sub(2);
        _ ->
            L = [sub(1) || _ <- lists:seq(1, rand:uniform(3))],
            K = case chance(3) of true -> key(); _ -> pick([var(), {8, var()}, {7, {6, var()}}, {7, '_'}, #{8 => '_'}]) end,
            case lists:keyfind(keypos, 1, O) of
                {_, 2} -> list_to_tuple([hd(L), K | tl(L)]);
                _ -> list_to_tuple([K | L])
            end
    end.
spec(K) -> spec([], K).
spec(O, K) ->
    case rand:uniform(40) of
        1 -> pick([[], a, [a], [{a}], [{'_', [], ['$_']} | x]]);
        _ -> [{head(O, K), guards(K), body(K)} || _ <- lists:seq(1, pick([1, 1, 1, 2, 3]))]
    end.
head(O, table) -> pattern(O);
head(_, trace) -> case chance(8) of true -> pick(['_', '$1', {a}, a]); _ -> [sub(1) || _ <- lists:seq(1, rand:uniform(3))] end.
guards(K) -> case chance(25) of true -> pick([a, [true | b]]); _ -> [guard(K, 2) || _ <- lists:seq(1, rand:uniform(3) - 1)] end.
guard(K, D) ->
    E = fun() -> expr(K, D - 1) end,
    case rand:uniform(9) of
        1 -> {pick(['and', 'or', 'andalso', 'orelse', 'andthen']), guard(K, D - 1), guard0(K, D - 1)};
        2 -> {pick(['not', 'is_atom', is_integer, is_tuple, is_list, is_map, is_binary, is_float, is_number, is_function, is_pid]), E()};
        3 -> list_to_tuple([pick(['and', 'or', 'andalso', 'orelse']) | [guard0(K, D - 1) || _ <- lists:seq(1, rand:uniform(3) - 1)]]);
        4 -> expr(K, D);
        5 -> {is_record, E(), pick([x, y, '$1']), pick([1, 2, a])};
        _ -> {pick(['>', '<', '>=', '=<', '=:=', '==', '=/=', '/=']), E(), E()}
    end.
guard0(_, D) when D < 0 -> pick([true, false, a, '$1']);
guard0(K, D) -> guard(K, D).
expr(_, D) when D < 0 -> pick([1, 2, a, 'true', '$1', '$2', '$1', '$2', '$_', '$$', [], {const, {a, '$1'}}, 2.5, <<"bin">>]);
expr(K, D) ->
    E = fun() -> expr(K, D - 1) end,
    case rand:uniform(22) of
        1 -> {{E(), E()}};
        2 -> [E(), E()];
        3 -> [E() | E()];
        4 -> {pick(['+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor', 'bsl', 'bsr']), E(), pick([E(), 1, 2, 0])};
        5 -> {pick([element]), pick([1, 2, E()]), E()};
        6 -> {pick([hd, tl, length, size, abs, round, trunc, float, map_size, byte_size, bit_size, '-', '+', 'bnot', 'not', node]), E()};
        7 -> {pick([map_get, is_map_key]), pick([a, b, E()]), E()};
        8 -> #{a => E(), pick([b, '$1']) => E()};
        9 -> {binary_part, E(), pick([0, 1]), pick([0, 1, 2, -1])};
        10 -> {binary_part, E(), {{pick([0, 1]), 1}}};
        11 -> {'xor', E(), E()};
        12 -> {const, val(1)};
        13 -> {{}};
        14 -> case chance(4) of true -> pick([{nofunction, 1}, {1, 2}, {}, {'$1', 1}, {const}, {const, 1, 2}, {self, 1}, '$77', {'and'}, {node, 1, 2}]); _ -> E() end;
        15 when K =:= trace, D > 0 -> action(K);
        15 -> case chance(5) of true -> action(K); _ -> E() end;
        16 -> {pick(['and', 'or', 'andalso', 'orelse']), E(), E()};
        _ -> expr(K, -1)
    end.
action(K) ->
    E = fun() -> expr(K, 0) end,
    pick([{message, E()}, {message, false}, {return_trace}, {exception_trace}, {caller}, {is_seq_trace}, {get_seq_token}, {silent, true}, {return_trace, 1},
          {message}, {caller, 1}, {get_tcw, 1}, {caller_line}, {is_seq_trace, 1}, {enable_trace}, {trace, 1}, {disable_trace, 1, 2, 3}, {silent}, {display},
          {process_dump, 1}, {set_seq_token, 1}, {exception_trace, 1}]).
body(K) -> case chance(25) of true -> pick([[], a, [a | b]]); _ -> [expr(K, 2) || _ <- lists:seq(1, pick([1, 1, 2]))] end.
replace() ->
    pick([[{{'$1', '$2'}, [], [{{'$1', '$1'}}]}], [{{'$1', '$2'}, [], ['$_']}], [{{'$1', '$2'}, [{is_integer, '$2'}], [{{'$1', {'+', '$2', 1}}}]}],
          [{{'$1', '$2'}, [], [{{'$2', '$1'}}]}], [{{a, '$2'}, [], [{const, {a, new}}]}], [{{'$1', '$2', '$3'}, [], [{{{element, 1, '$_'}, x}}]}],
          [{{{'$1', '$2'}, '$3'}, [], [{{{{'$1', '$2'}}, z}}]}], [{'$1', [], [{{1, 2}}]}], [{{[], '$1'}, [], [{{[], "long list"}}]}],
          [{{#{8 => 1}, '$1'}, [], [{{#{8 => 1}, 1}}]}], [{{'$1', '$2'}, [], [a]}], [{{'$1', '_'}, [{is_tuple, '$1'}], [{{'$1'}}]}]]).

subject(table) -> pick([list_to_tuple([pick([key(), val(2)]) || _ <- lists:seq(1, rand:uniform(3))]), val(2)]);
subject(trace) -> case chance(40) of true -> val(2); _ -> [pick([key(), val(2)]) || _ <- lists:seq(1, rand:uniform(3))] end.
