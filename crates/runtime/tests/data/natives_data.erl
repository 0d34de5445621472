%% Cases for the natives that convert, hash and encode terms.
-module(natives_data).
-export([cases/0]).

cases() -> fixed() ++ lists:append([random() || _ <- lists:seq(1, 300)]).

one(L) -> lists:nth(rand:uniform(length(L)), L).
int() ->
    N = rand:uniform(1 bsl one([3, 8, 16, 32, 58, 59, 60, 61, 63, 64, 65, 128, 300, 3000])),
    one([1, -1]) * (N - 1).
float() ->
    <<F:64>> = <<(rand:uniform(1 bsl 64) - 1):64>>,
    case <<F:64>> of
        <<X/float>> when abs(X) < 1.0e300 -> one([X, rand:uniform() * 1000, rand:normal(), float(rand:uniform(1000)), X * 0.0]);
        _ -> one([rand:uniform(), math:pow(10, rand:uniform(600) - 300), -0.0, 0.1, 1 / 3])
    end.
chr() -> one([rand:uniform(128) - 1, $a + rand:uniform(26) - 1, rand:uniform(256) - 1, rand:uniform(16#D7FF), 16#10000 + rand:uniform(1000)]).
chars(N) -> [chr() || _ <- lists:seq(1, rand:uniform(N + 1) - 1)].
latin(N) -> [rand:uniform(256) - 1 || _ <- lists:seq(1, rand:uniform(N + 1) - 1)].
bits(N) -> K = rand:uniform(N), <<(rand:uniform(1 bsl K) - 1):K>>.
unaligned(B) -> X = <<5:3, B/bitstring>>, <<_:3, Y/bitstring>> = X, Y.
term(0) ->
    one([int(), int(), one([a, b, ok, '', 'A b', 'å', '\x{400}x']), float(), [], rand:bytes(rand:uniform(20)), bits(80), unaligned(rand:bytes(20)),
        self(), list_to_pid("<0.5.0>"), list_to_port("#Port<0.3>"), list_to_ref("#Ref<0.1.2.3>"), fun lists:map/2, {}, #{}, latin(10), chars(10),
        rand:bytes(rand:uniform(300)), external()]);
term(D) ->
    case rand:uniform(6) of
        1 -> [term(D - 1) || _ <- lists:seq(1, rand:uniform(6))];
        2 -> [term(D - 1), term(D - 1) | term(D - 1)];
        3 -> list_to_tuple([term(D - 1) || _ <- lists:seq(1, rand:uniform(6))]);
        4 -> maps:from_list([{term(D - 1), term(D - 1)} || _ <- lists:seq(1, rand:uniform(6))]);
        5 -> latin(30);
        6 -> term(0)
    end.
%% Terms of another node.
external() ->
    N = <<119, 7, "foo@bar">>,
    binary_to_term(one([<<131, 88, N/binary, 5:32, 7:32, 3:32>>, <<131, 89, N/binary, 5:32, 3:32>>, <<131, 120, N/binary, 5:64, 3:32>>,
        <<131, 120, N/binary, (1 bsl 40):64, 3:32>>, <<131, 90, 3:16, N/binary, 3:32, 5:32, 6:32, 7:32>>, <<131, 90, 5:16, N/binary, 3:32, 5:32, 6:32, 7:32, 8:32, 9:32>>])).
%% Free of what is different in each run, and of orders that hash maps have.
plain(T) when is_map(T) -> maps:size(T) =< 32 andalso plain(maps:to_list(T));
plain([H | T]) -> plain(H) andalso plain(T);
plain(T) when is_tuple(T) -> plain(tuple_to_list(T));
plain(_) -> true.
damaged(B) ->
    P = rand:uniform(byte_size(B)) - 1,
    <<X:P/binary, C, Y/binary>> = B,
    case one([1, 2, 3]) of
        1 -> <<X/binary, (rand:uniform(256) - 1), Y/binary>>;
        2 -> X;
        3 -> <<X/binary, C, (rand:bytes(2))/binary, Y/binary>>
    end.
number() ->
    S = integer_to_list(int()),
    one([S, "+" ++ S, "-" ++ S, S ++ one(["a", " ", ".", ".5", "e5"]), " " ++ S, "", "-", float_to_list(float()), io_lib_format:fwrite_g(float()),
        one(["1.5", "-2.0", "+3.25", "1.", "1,5", ".5", "-.5", "1.5.2", "12.0"]) ++ one(["", "e", "e5", "E-3", "e+", "e+x", "e-2e", "e9x", "ee5", "e+5.2", "e400", "e-400", "-", "+1", "x"])]).
options() ->
    [one([{decimals, rand:uniform(24) - 2}, {scientific, rand:uniform(260) - 3}, compact, short, {decimals, rand:uniform(260)}]) || _ <- lists:seq(1, rand:uniform(3) - 1)].
random() ->
    I = int(), F = float(), B = rand:uniform(37), S = number(), C = chars(20), T = term(3), T2 = term(2), O = options(), Cb = unicode:characters_to_binary(C),
    L = list_to_binary(latin(20)), M = rand:uniform(1 bsl one([4, 16, 32, 33])), P = fun plain/1,
    Enc = term_to_binary(T), Base = S ++ one(["", "z", "FF", "g"]),
    [{erlang, integer_to_list, [I]}, {erlang, integer_to_list, [I, B]}, {erlang, integer_to_binary, [I]}, {erlang, integer_to_binary, [I, B]},
     {erlang, list_to_integer, [S]}, {erlang, list_to_integer, [Base, B]}, {erlang, binary_to_integer, [list_to_binary(S)]},
     {erlang, binary_to_integer, [unaligned(list_to_binary(Base)), B]}, {erlang, list_to_float, [S]}, {erlang, binary_to_float, [list_to_binary(S)]},
     {string, list_to_integer, [S]}, {string, list_to_float, [S]}, {string, list_to_integer, [S ++ latin(9)]}, {string, list_to_float, [S ++ C]},
     {erlang, float_to_list, [F]}, {erlang, float_to_list, [F, O]}, {erlang, float_to_binary, [F]}, {erlang, float_to_binary, [F, O]},
     {erlang, list_to_atom, [C]}, {erlang, list_to_existing_atom, [C]}, {erlang, binary_to_atom, [Cb, utf8]}, {erlang, binary_to_atom, [L, utf8]},
     {erlang, binary_to_atom, [unaligned(L), latin1]}, {erlang, binary_to_existing_atom, [Cb, unicode]},
     {erlang, atom_to_list, [list_to_atom(C)]}, {erlang, atom_to_binary, [list_to_atom(C), one([utf8, latin1, unicode])]},
     {erlang, phash2, [T, M]}, {erlang, phash2, [T]}, {erlang, phash, [T, M]}, {erts_internal, cmp_term, [T, T2]}, {erts_internal, cmp_term, [T, T]},
     {erts_internal, term_type, [binary_to_term(Enc)]}] ++
    [{erts_debug, flat_size, [binary_to_term(Enc)]} || no_foreign_ref(T)] ++
    case P(T) of
        true -> [{erlang, term_to_binary, [T]}, {erlang, term_to_binary, [T, [{minor_version, 0}]]}, {erlang, term_to_binary, [T, [{minor_version, 2}]]},
            {erlang, external_size, [T]}, {erlang, external_size, [T, [{minor_version, 0}]]}];
        false -> []
    end ++
    [{erlang, term_to_binary, [T, [deterministic]]}, {erlang, binary_to_term, [Enc]}, {erlang, binary_to_term, [unaligned(Enc), [used]]},
     {erlang, binary_to_term, [<<Enc/binary, L/binary>>, [used, safe]]}, {erlang, binary_to_term, [term_to_binary(T, [compressed, {minor_version, 0}])]}] ++
    [{erlang, binary_to_term, [damaged(Enc)]} || byte_size(Enc) < 10000] ++
    [{erlang, F1, [T3]} || F1 <- [pid_to_list, port_to_list, ref_to_list, fun_to_list], T3 <- [term(0)], local(T3)] ++
    [{erlang, F1, [text()]} || F1 <- [list_to_pid, list_to_port, list_to_ref]].
%% How many words references of other nodes take is not stock's affair.
no_foreign_ref(T) when is_map(T) -> no_foreign_ref(maps:to_list(T));
no_foreign_ref([H | T]) -> no_foreign_ref(H) andalso no_foreign_ref(T);
no_foreign_ref(T) when is_tuple(T) -> no_foreign_ref(tuple_to_list(T));
no_foreign_ref(T) -> not is_reference(T) orelse node(T) =:= node().
local(T) when is_pid(T); is_port(T); is_reference(T) -> node(T) =:= node();
local(_) -> true.
text() ->
    N = fun() -> integer_to_list(one([0, 1, 32767, 32768, 8191, 8192, 268435455, 268435456, 262143])) end,
    one(["<0." ++ N() ++ "." ++ N() ++ ">", "#Port<0." ++ N() ++ ">", "#Ref<0." ++ N() ++ ".1." ++ N() ++ ">", "<0.1>", "<0.1.2", "<0..2>", "<0.1.2>x", "<a.1.2>",
        "#Ref<0.1>", "#Port<0>", "", "#Port<0.+1>"]).

fixed() ->
    [{erlang, float_to_list, [F, O]} || F <- [1.005, -0.0, -0.4, 0.5, 1.5, 2.5, 1.0e22, 9007199254740993.0, 1.0e300, 1.5e-300, 123.456, 0.05, 99.995],
        O <- [[{decimals, 0}], [{decimals, 2}], [{decimals, 2}, compact], [{decimals, 18}], [{decimals, 19}], [{decimals, 253}], [{decimals, 254}],
              [{scientific, 249}], [{scientific, 250}], [{scientific, -1}], [{decimals, -1}], [short], [compact], [foo], [{decimals, a}], [compact | foo], foo,
              [{decimals, 1 bsl 59}], [{scientific, 0}], [short, {decimals, 1}], [{decimals, 1, 2}]]] ++
    [{erlang, F, A} || {F, A} <- [
        {list_to_atom, [[300 | a]]}, {list_to_atom, [[16#d800]]}, {list_to_atom, [lists:duplicate(256, $a) ++ [foo]]}, {list_to_atom, [lists:duplicate(256, $a)]},
        {list_to_atom, [lists:duplicate(255, 955)]}, {list_to_atom, [a]}, {list_to_atom, [[-1]]}, {list_to_atom, [[16#110000]]}, {list_to_atom, [[16#ffff]]},
        {list_to_existing_atom, [lists:duplicate(256, $a)]}, {binary_to_atom, [binary:copy(<<"a">>, 256), utf8]}, {binary_to_atom, [binary:copy(<<"a">>, 256), latin1]},
        {binary_to_existing_atom, [binary:copy(<<"a">>, 256), utf8]}, {binary_to_atom, [<<255, (binary:copy(<<"a">>, 256))/binary>>, utf8]},
        {binary_to_atom, [<<"a">>, foo]}, {binary_to_atom, [a, utf8]}, {binary_to_atom, [<<1:3>>, utf8]}, {atom_to_binary, ["a", utf8]}, {atom_to_binary, [a, foo]},
        {atom_to_list, ["a"]}, {atom_to_binary, ['\x{400}', latin1]}, {list_to_integer, [[]]}, {list_to_integer, [a]}, {list_to_integer, [[$1 | b]]},
        {list_to_integer, ["12", 1]}, {list_to_integer, ["12", 37]}, {list_to_integer, ["12", a]}, {list_to_integer, [[$1 | b], 10]}, {binary_to_integer, [<<>>]},
        {binary_to_integer, [a]}, {binary_to_integer, [<<"1">>, 1]}, {binary_to_integer, [<<1:3>>]}, {integer_to_list, [a]}, {integer_to_list, [1.0]},
        {integer_to_list, [10, 1]}, {integer_to_list, [10, a]}, {integer_to_binary, [10, 37]}, {integer_to_binary, [a, 10]}, {list_to_float, ["1"]}, {list_to_float, [a]},
        {list_to_float, [[$1, $., $0 | a]]}, {list_to_float, [[300]]}, {binary_to_float, [<<>>]}, {binary_to_float, [a]}, {float_to_list, [1]}, {float_to_binary, [1, []]},
        {phash, [a, 0]}, {phash, [a, 1 bsl 32]}, {phash, [a, (1 bsl 32) + 1]}, {phash2, [a, 0]}, {phash2, [a, 1 bsl 32]}, {phash2, [a, (1 bsl 32) + 1]}, {phash2, [a, -1]},
        {pid_to_list, [a]}, {port_to_list, [a]}, {ref_to_list, [a]}, {fun_to_list, [a]}, {fun_to_list, [fun lists:map/2]}, {list_to_pid, [a]}, {list_to_pid, [[$<, 300]]},
        {make_fun, [a, b, 255]}, {make_fun, [a, b, 256]}, {make_fun, [a, b, -1]}, {make_fun, [a, 1, 1]}, {fun_info, [a, type]}, {fun_info, [fun lists:map/2, foo]},
        {fun_info, [fun lists:map/2, 1]}, {fun_info_mfa, [fun lists:map/2]}, {fun_info_mfa, [a]},
        {binary_to_term, [a]}, {binary_to_term, [<<>>]}, {binary_to_term, [<<131>>]}, {binary_to_term, [<<131, 97, 1>>, [foo]]}, {binary_to_term, [<<131, 97, 1>>, foo]},
        {binary_to_term, [<<131, 97, 1:7>>]}, {term_to_binary, [a, [foo]]}, {term_to_binary, [a, foo]}, {term_to_binary, [a, [{minor_version, 3}]]},
        {term_to_binary, [a, [{compressed, 10}]]}, {term_to_binary, [a, [{compressed, 9}]]}, {term_to_binary, [a, [compressed]]}, {external_size, [a, [compressed]]},
        {external_size, [a, [{minor_version, 2}]]}, {external_size, [a, a]}, {term_to_binary, [lists:seq(1, 255)]}, {term_to_binary, [lists:duplicate(65535, 1)]},
        {term_to_binary, [lists:duplicate(65536, 1)]}, {term_to_binary, [list_to_tuple(lists:seq(1, 255))]}, {term_to_binary, [list_to_tuple(lists:seq(1, 256))]},
        {term_to_binary, [1 bsl 2039]}, {term_to_binary, [1 bsl 2040]}, {external_size, [1 bsl 2040]}, {external_size, [lists:duplicate(65536, 1)]}]] ++
    [{erlang, fun_info, [fun lists:map/2, I]} || I <- [type, module, name, arity, env, pid, index, uniq, new_index, new_uniq, refc]] ++
    [{string, list_to_integer, [A]} || A <- [a, [], "+", "-", "-a", "+-1", "12a" ++ b, [$1 | b], [a], [$-, a], [$1, 1.0], <<"1">>]] ++
    [{string, list_to_float, [A]} || A <- [a, [], "1", "1.", "1.5", "+1.5x", "1.5e", "1.5e+", "1.5e+1x", [$1, $., $5 | a], [$1, a], [a], "-1.5e--", "1e5", "1.2e400", <<>>, [$1, $., $2, 1 bsl 70]]] ++
    [{erts_internal, map_next, [P, M, K]} || M <- [#{}, #{a => 1, b => 2}, a], P <- [0, 1, 2, 3, -1, a, 1 bsl 70], K <- [iterator, [], [x], foo]] ++
    [{erts_internal, F, [M]} || F <- [map_to_tuple_keys, map_hashmap_children], M <- [#{}, #{a => 1, b => 2}, a]] ++
    [{erts_internal, map_to_tuple_keys, [maps:from_keys(lists:seq(1, 40), 1)]}] ++
    [{erts_internal, map_next, [P, maps:from_keys(lists:seq(1, 40), 1), K]} || P <- [0, 1, 5, 16, 1 bsl 70], K <- [iterator, []]] ++
    [{erts_debug, flat_size, [T]} || T <- [a, [1], {}, {1}, #{}, #{a => {}}, maps:from_keys(lists:seq(1, 40), 1), 1.0, 1 bsl 70, <<>>, <<1>>, <<0:800>>, <<1:3>>, fun lists:map/2]] ++
    [{atomics, F, A} || {F, A} <- [{get, [a, 1]}, {put, [list_to_ref("#Ref<0.1.2.3>"), 1, 1]}, {info, [a]}]] ++
    [{erts_internal, F, A} || {F, A} <- [{atomics_new, [0, 0]}, {atomics_new, [-1, 0]}, {atomics_new, [a, 0]}, {atomics_new, [1 bsl 70, 0]}, {atomics_new, [(1 bsl 64) - 1, 0]},
        {atomics_new, [1, a]}, {counters_new, [0]}, {counters_new, [1 bsl 62]}, {counters_new, [1 bsl 70]}, {counters_new, [a]}, {counters_get, [a, 1]}, {counters_info, [a]}]] ++
    [{persistent_term, F, A} || {F, A} <- [{get, [nobody]}, {get, [nobody, d]}, {erase, [nobody]}, {put, [k, v]}, {get, [k]}, {put, [{k, 1.0}, "v"]}, {get, [{k, 1.0}]}, {get, [{k, 1}, no]},
        {put, [{k, 1.0}, "w"]}, {get, [{k, 1.0}, no]}, {erase, [{k, 1.0}]}, {erase, [{k, 1.0}]}, {get, [{k, 1.0}, no]}, {put, [{k, 1.0}, #{a => b}]}, {get, [{k, 1.0}]}, {erase, [k]},
        {get, [k]}]].
