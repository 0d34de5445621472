%% Cases for the natives on numbers, tuples, lists and maps, and for tests of types: arguments of all kinds, mostly of
%% a kind that the native may take.
-module(natives_terms).
-export([cases/0]).

cases() -> [{M, F, A} || {M, F, N} <- natives(), _ <- lists:seq(1, 50), A <- [args(M, F, N)], takes(F, A)].

%% What makes terms of gigabytes is left out.
takes(F, A) -> not (lists:member(F, [make_tuple, 'bsl']) andalso lists:any(fun(X) -> is_integer(X) andalso X > 20000 end, A)).
natives() ->
    [{erlang, F, 2} || F <- ['+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor', 'bsl', 'bsr', '==', '/=', '=:=', '=/=', '<', '>', '=<', '>=', min, max,
        'and', 'or', 'xor', '++', '--', append, subtract, element, append_element, delete_element, make_tuple, is_function, is_record, map_get, is_map_key]] ++
    [{erlang, F, 1} || F <- ['bnot', '-', '+', 'not', abs, float, trunc, round, floor, ceil, hd, tl, length, tuple_to_list, list_to_tuple, tuple_size,
        is_atom, is_binary, is_bitstring, is_boolean, is_float, is_function, is_integer, is_list, is_map, is_number, is_pid, is_port, is_reference, is_tuple,
        size, byte_size, bit_size, map_size]] ++
    [{erlang, F, 3} || F <- [setelement, insert_element, make_tuple, is_record]] ++
    [{lists, F, A} || {F, A} <- [{reverse, 2}, {member, 2}, {keyfind, 3}, {keymember, 3}, {keysearch, 3}]] ++
    [{maps, F, A} || {F, A} <- [{get, 2}, {find, 2}, {is_key, 2}, {from_list, 1}, {from_keys, 2}, {keys, 1}, {values, 1}, {merge, 2}, {put, 3}, {remove, 2}, {take, 2}, {update, 3}]] ++
    [{math, F, 1} || F <- [cos, cosh, sin, sinh, tan, tanh, acos, acosh, asin, asinh, atan, atanh, erf, erfc, exp, log, log2, log10, sqrt, ceil, floor]] ++
    [{math, F, 2} || F <- [atan2, pow, fmod]].

pick(L) -> lists:nth(rand:uniform(length(L)), L).
args(_M, _F, A) ->
    K = rand:uniform(10),
    if K =< 4 -> L = [any() || _ <- lists:seq(1, A)], L;
       K =< 5 -> X = any(), [X || _ <- lists:seq(1, A)];
       true -> T = pick([fun int/0, fun num/0, fun list/0, fun tup/0, fun map/0, fun bin/0, fun chars/0, fun atom/0]), 
            L0 = [case rand:uniform(3) of 1 -> any(); 2 -> small(); 3 -> T() end || _ <- lists:seq(1, A)],
            P = rand:uniform(A), lists:sublist(L0, P - 1) ++ [T()] ++ lists:nthtail(P, L0)
    end.
small() -> pick([0, 1, 2, 3, 4, 5, -1, 10, 16, 36, 37, 32]).
int() -> pick([small(), small(), (rand:uniform(1 bsl pick([8,16,32,58,59,60,61,63,64,65,128,200])) - 1) * pick([1,-1]), 1 bsl 59, -(1 bsl 59), (1 bsl 59) - 1, 1 bsl 64, -(1 bsl 63), (1 bsl 63) - 1]).
flt() -> pick([0.0, -0.0, 1.0, 1.5, -2.5, 0.5, 1.0e22, 1.0e300, -1.0e300, 5.0e-324, 1.7976931348623157e308, rand:uniform() * 100, rand:normal(), float(1 bsl 59), 9007199254740993.0, 3.0, 2.0, 100.0]).
num() -> pick([int(), flt()]).
atom() -> pick([a, b, true, false, ok, undefined, utf8, latin1, unicode, '', 'å', '\x{400}', [], iterator, map, lists, node(), millisecond, native, signed, little, safe, all]).
bin() -> pick([<<>>, <<1>>, <<"abc">>, <<"123">>, <<"1.5">>, <<"-12">>, <<"FF">>, <<5:3>>, <<0:800>>, term_to_binary({small(), atom()}), unal(<<"123">>), <<195,165>>, <<255>>, rand:bytes(rand:uniform(10)), <<"å"/utf8>>, <<"a,b,c">>, <<",">>, <<1:1>>]).
unal(B) -> X = <<5:3, B/binary>>, <<_:3, Y/binary>> = X, Y.
chars() -> pick(["", "a", "abc", "123", "-5", "+7", "1.5", "1.5e3", "1e3", "FF", "zz", "<0.1.2>", "#Port<0.1>", "#Ref<0.1.2.3>", [1024], [16#D800], [256], [$a | b], [[65, <<66>>], 67], [<<1:3>>], "å", "PATH=", "HOME", [0]]).
list() -> pick([[], [1], [1, 2, 3], [a, b, c], [1.0, 2, a, "x"], [{a, 1}, {b, 2}], [{1, a}, {2, b}, {1.0, c}], [a | b], [{a}, x, {1, 2, 3}], [{a, 1} | x], chars(), [any(0) || _ <- lists:seq(1, rand:uniform(5))],
     [3, 1, 2, 1, 3], [compact], [short], [{decimals, 3}], [{scientific, 2}], [used], [safe], [global], [caseless], [{capture, all}], [signed], lists:seq(1, 40), [{X, X} || X <- lists:seq(1, 40)], [{a, 1}, {a, 2}], [{m, f, 1, []}], [{m, f, [1], [{line, 1}]}]]).
tup() -> pick([{}, {a}, {a, 1}, {1, 2, 3}, {a, b, c, d}, {1.0}, {0, 1}, {1, -1}, {any(0), any(0)}, list_to_tuple(lists:seq(1, 300))]).
map() -> pick([#{}, #{a => 1}, #{1 => a, 1.0 => b}, #{a => 1, b => 2, c => 3}, maps:from_list([{X, X} || X <- lists:seq(1, 40)]), #{any(0) => any(0)}, maps:from_keys(lists:seq(1, 33), x), maps:from_keys(lists:seq(20, 60), y), #{0 => z}, #{{a} => "b"}]).
pid() -> pick([list_to_pid("<0.4.0>"), list_to_pid("<0.9999.0>"), list_to_port("#Port<0.3>"), list_to_ref("#Ref<0.1.2.3>"),
     binary_to_term(<<131, 88, 119, 7, "foo@bar", 5:32, 7:32, 3:32>>), binary_to_term(<<131, 120, 119, 7, "foo@bar", 5:64, 3:32>>), binary_to_term(<<131, 90, 3:16, 119, 7, "foo@bar", 3:32, 5:32, 6:32, 7:32>>)]).
func() -> pick([fun lists:map/2, fun erlang:self/0, fun nosuch:f/3, fun erlang:abs/1, fun erlang:'+'/2]).
any() -> any(2).
any(0) -> pick([small(), int(), flt(), atom(), pid(), bin(), chars(), [], {}]);
any(D) -> 
    case rand:uniform(14) of 1 -> int(); 2 -> flt(); 3 -> atom(); 4 -> bin(); 5 -> list(); 6 -> tup(); 7 -> map(); 8 -> pid(); 9 -> func(); 10 -> chars(); 11 -> small();
       12 -> [any(D - 1), any(D - 1)]; 13 -> {any(D - 1), any(D - 1)}; 14 -> #{any(D - 1) => any(D - 1)} end.
