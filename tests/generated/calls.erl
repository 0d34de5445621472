%% Random calls of natives, with right and wrong arguments: what each gives, as a line. Both runtimes are given the same
%% seed and must print the same lines.
%%
%%   erl -noshell -run calls main FAMILY SEED COUNT
-module(calls).
-export([main/1, families/0, name/1]).

main([Family, Seed, Count]) ->
    rand:seed(exsss, list_to_integer(Seed)),
    Calls = list_to_tuple(calls(list_to_atom(Family))),
    ok = io:setopts([{encoding, latin1}]),
    logger:set_primary_config(level, none),
    run(list_to_integer(Count), Calls),
    halt(0).

run(0, _) -> ok;
run(N, Calls) ->
    {M, F, Kinds} = element(rand:uniform(tuple_size(Calls)), Calls),
    Args = [arg(K) || K <- Kinds],
    Line = outcome(M, F, Args),
    io:put_chars(io_lib:format("~w:~w(~ts) ~ts~n", [M, F, text(Args, 400), Line])),
    run(N - 1, Calls).

%% In a process of its own, so that nothing of one call is left for the next.
outcome(M, F, Args) ->
    {Pid, Ref} = spawn_opt(fun() -> exit(attempt(M, F, Args)) end, [monitor, {max_heap_size, #{size => 20000000, kill => true, error_logger => false}}]),
    receive
        {'DOWN', Ref, process, Pid, {text, T}} -> T;
        {'DOWN', Ref, process, Pid, R} -> ["ended: ", text(R, 200)]
    after 20000 -> exit(Pid, kill), "no end"
    end.

attempt(M, F, Args) ->
    {text, try apply(M, F, Args) of
               R -> ["= ", text(plain(R), 600)]
           catch
               C:R:S -> [atom_to_list(C), " ", text(plain(R), 200), " at ", text(top(S), 300), explained(C, R, S)]
           end}.

%% The frames of the natives; what is below is ours.
top([{M, F, A, I} | _]) ->
    Arity = try length(A) catch _:_ -> A end,
    {M, F, Arity, proplists:get_value(error_info, I)};
top([]) -> [].

%% What `erl_error` tells the user about the arguments.
explained(error, R, [{_, _, _, I} | _] = S) ->
    case lists:keyfind(error_info, 1, I) of
        {_, Info} ->
            Module = maps:get(module, Info, erl_erts_errors),
            try [" ", text(apply(Module, format_error, [R, S]), 300)] catch _:_ -> " ?" end;
        false -> ""
    end;
explained(_, _, _) -> "".

text(T, Max) ->
    S = lists:flatten(io_lib:format("~0p", [T])),
    case length(S) > Max of
        true -> [lists:sublist(S, Max), "... ", integer_to_list(erlang:phash2(S))];
        false -> S
    end.

%% Without what differs from run to run.
plain(T) when is_pid(T) -> 'PID';
plain(T) when is_port(T) -> 'PORT';
plain(T) when is_reference(T) -> 'REF';
plain(T) when is_function(T) -> {'FUN', erlang:fun_info(T, arity)};
plain([H | T]) -> [plain(H) | plain(T)];
%% How the rest of character data is nested depends on the reductions that were left in stock.
plain({E, B, R}) when is_binary(B), (E =:= error orelse E =:= incomplete) -> {E, B, try lists:flatten([R]) catch _:_ -> R end};
plain({re_pattern, A, B, C, Code}) when is_binary(Code) -> {re_pattern, A, B, C};
plain(T) when is_tuple(T), tuple_size(T) < 1000 -> list_to_tuple(plain(tuple_to_list(T)));
plain(T) when is_map(T), map_size(T) =< 32 -> maps:map(fun(_, V) -> plain(V) end, T);
%% The order of large maps depends on the numbers of atoms.
plain(T) when is_map(T) -> {map, lists:sort(plain(maps:to_list(T)))};
plain(T) -> T.

families() -> [arithmetic, conversions, terms, tuples, lists, maps, binaries, unicode, format, regex, codes, tables, bits, floats].

any() -> any.
a1(M, Names, K) -> [{M, F, [K]} || F <- Names].
a2(M, Names, K, L) -> [{M, F, [K, L]} || F <- Names].

calls(arithmetic) ->
    a2(erlang, ['+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor', max, min], num, num) ++
        a2(erlang, ['bsl', 'bsr'], int, small) ++
        a1(erlang, ['-', '+', 'bnot', abs, float, round, trunc, ceil, floor, is_integer, is_float, is_number], num) ++
        a2(erlang, ['+', '*', 'div', 'bsl'], any(), num);
calls(floats) ->
    a1(math, [sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, exp, log, log2, log10, sqrt, erf, erfc,
              ceil, floor], num) ++ a2(math, [atan2, pow, fmod], num, num) ++
        [{erlang, float_to_list, [float]}, {erlang, float_to_binary, [float]},
         {erlang, float_to_list, [float, float_options]}, {erlang, float_to_binary, [float, float_options]},
         {erlang, list_to_float, [number_text]}, {erlang, binary_to_float, [number_bin]},
         {erlang, round, [float]}, {erlang, trunc, [float]}, {io_lib, format, [{literal, "~w ~p"}, two_floats]},
         {io_lib_format, fwrite_g, [float]}];
calls(conversions) ->
    a1(erlang, [atom_to_list, atom_to_binary, integer_to_list, integer_to_binary, float_to_list, tuple_to_list, list_to_tuple,
                list_to_binary, iolist_to_binary, iolist_size, binary_to_list, bitstring_to_list, list_to_bitstring,
                list_to_existing_atom, binary_to_existing_atom, is_atom, is_list, is_tuple, is_binary, is_bitstring,
                is_map, is_boolean, is_function, is_pid, is_reference], any) ++
        a1(erlang, [list_to_integer, list_to_float, list_to_atom, list_to_pid, list_to_ref, list_to_port], number_text) ++
        a1(erlang, [binary_to_integer, binary_to_float, binary_to_atom], number_bin) ++
        [{erlang, integer_to_list, [int, base]}, {erlang, integer_to_binary, [int, base]},
         {erlang, list_to_integer, [number_text, base]}, {erlang, binary_to_integer, [number_bin, base]},
         {erlang, binary_to_atom, [bin, encoding]}, {erlang, atom_to_binary, [atom, encoding]},
         {erlang, list_to_atom, [chars]}, {erlang, iolist_to_binary, [iolist]}, {erlang, iolist_size, [iolist]},
         {erlang, list_to_binary, [iolist]}, {erlang, list_to_bitstring, [iolist]}, {erlang, iolist_to_iovec, [iolist]},
         {erlang, binary_to_list, [bin, small, small]}, {string, to_integer, [number_text]}, {string, to_float, [number_text]},
         {erlang, fun_info, [any]}, {erlang, make_tuple, [small, any]}, {erlang, make_tuple, [small, any, pairs]}];
calls(terms) ->
    a2(erlang, ['==', '/=', '=:=', '=/=', '<', '>', '=<', '>=', max, min], any, any) ++
        a1(erlang, [phash2, term_to_binary, external_size, size, byte_size, bit_size, length, tuple_size, map_size, hd, tl, 'not'], any) ++
        [{erlang, phash2, [any, small]}, {erlang, phash, [any, small]}, {erlang, term_to_binary, [any, etf_options]},
         {calls, name, [any]}, {erlang, 'and', [bool, any]}, {erlang, 'or', [bool, any]}, {erlang, 'xor', [bool, bool]},
         {erlang, binary_to_term, [bin]}, {erlang, binary_to_term, [bin, any]}, {erts_debug, flat_size, [any]},
         {erlang, is_record, [any, atom, small]}, {erlang, is_function, [any, any]}, {erlang, apply, [atom, atom, any]},
         {erlang, error, [any, any]}, {erlang, exit, [any]}, {erlang, throw, [any]}, {erlang, raise, [atom, any, any]},
         {erlang, md5, [iolist]}, {erlang, crc32, [iolist]}, {erlang, adler32, [iolist]}, {erlang, crc32, [int, iolist]},
         {erlang, adler32, [int, iolist]}, {erlang, crc32_combine, [int, int, small]}, {erlang, adler32_combine, [int, int, small]}];
calls(tuples) ->
    [{erlang, element, [small, tuple]}, {erlang, setelement, [small, tuple, any]}, {erlang, append_element, [tuple, any]},
     {erlang, delete_element, [small, tuple]}, {erlang, insert_element, [small, tuple, any]}, {erlang, tuple_to_list, [tuple]},
     {erlang, element, [any, any]}, {erlang, setelement, [any, any, any]}, {erlang, tuple_size, [any]}];
calls(lists) ->
    [{erlang, '++', [list, any]}, {erlang, '--', [list, list]}, {lists, reverse, [list]}, {lists, reverse, [list, any]},
     {lists, member, [any, list]}, {lists, keyfind, [any, small, tuples]}, {lists, keymember, [any, small, tuples]},
     {lists, keysearch, [any, small, tuples]}, {lists, sort, [list]}, {lists, usort, [list]}, {lists, seq, [small, small, small]},
     {lists, nth, [small, list]}, {lists, sublist, [list, small, small]}, {lists, split, [small, list]}, {lists, sum, [list]},
     {lists, flatten, [list]}, {lists, keysort, [small, tuples]}, {lists, ukeysort, [small, tuples]}, {lists, zip, [list, list]},
     {lists, merge, [list, list]}, {lists, subtract, [list, list]}, {lists, append, [list]}, {lists, concat, [list]},
     {erlang, length, [any]}, {erlang, hd, [any]}, {erlang, tl, [any]}, {lists, duplicate, [small, any]},
     {lists, delete, [any, list]}, {lists, max, [list]}, {lists, min, [list]}, {lists, last, [list]}, {lists, prefix, [list, list]}];
calls(maps) ->
    a1(maps, [keys, values, size, to_list, from_list], map) ++
        [{maps, get, [any, map]}, {maps, get, [any, map, any]}, {maps, find, [any, map]}, {maps, is_key, [any, map]},
         {maps, put, [any, any, map]}, {maps, update, [any, any, map]}, {maps, remove, [any, map]}, {maps, take, [any, map]},
         {maps, merge, [map, map]}, {maps, from_list, [pairs]}, {maps, from_keys, [list, any]}, {maps, with, [list, map]},
         {maps, without, [list, map]}, {maps, intersect, [map, map]}, {erlang, map_get, [any, any]}, {erlang, is_map_key, [any, any]},
         {erlang, '==', [map, map]}, {erlang, '<', [map, map]}, {erlang, phash2, [map]}, {erlang, map_size, [any]},
         {maps, next, [any]}, {maps, invert, [map]}];
calls(binaries) ->
    [{binary, match, [bin, pattern]}, {binary, match, [bin, pattern, match_options]}, {binary, matches, [bin, pattern]},
     {binary, matches, [bin, pattern, match_options]}, {binary, split, [bin, pattern]}, {binary, split, [bin, pattern, split_options]},
     {binary, replace, [bin, pattern, bin]}, {binary, replace, [bin, pattern, bin, split_options]},
     {binary, part, [bin, small, small]}, {binary, part, [bin, any]}, {erlang, binary_part, [bin, small, small]},
     {erlang, split_binary, [bin, small]}, {binary, at, [bin, small]}, {binary, first, [bin]}, {binary, last, [bin]},
     {binary, copy, [bin, small]}, {binary, bin_to_list, [bin]}, {binary, bin_to_list, [bin, small, small]},
     {binary, list_to_bin, [iolist]}, {binary, longest_common_prefix, [bins]}, {binary, longest_common_suffix, [bins]},
     {binary, encode_unsigned, [int]}, {binary, encode_unsigned, [int, endian]}, {binary, decode_unsigned, [bin]},
     {binary, decode_unsigned, [bin, endian]}, {binary, encode_hex, [bin]}, {binary, decode_hex, [bin]},
     {binary, compile_pattern, [pattern]}, {erlang, decode_packet, [packet_type, bin, packet_options]}];
calls(unicode) ->
    [{unicode, characters_to_binary, [chardata]}, {unicode, characters_to_list, [chardata]},
     {unicode, characters_to_binary, [chardata, encoding]}, {unicode, characters_to_binary, [chardata, encoding, encoding]},
     {unicode, characters_to_list, [chardata, encoding]}, {unicode, characters_to_nfc_list, [chardata]},
     {unicode, characters_to_nfd_binary, [chardata]}, {unicode, bom_to_encoding, [bin]}, {string, length, [chardata]},
     {string, uppercase, [chardata]}, {string, casefold, [chardata]}, {string, split, [chardata, chardata]},
     {string, trim, [chardata]}, {string, lexemes, [chardata, chars]}, {string, equal, [chardata, chardata, bool, atom]},
     {unicode_util, gc, [chardata]}, {unicode_util, cp, [chardata]}];
calls(format) ->
    [{io_lib, format, [format, list]}, {io_lib, write, [any]}, {io_lib, print, [any]}, {io_lib, format, [{literal, "~p|~w|~P"}, three]},
     {io_lib, write_atom, [atom]}, {io_lib, write_string, [chars]}, {erl_scan, string, [chars]}, {io_lib, fread, [format, chars]}];
calls(regex) ->
    [{re, run, [bin, pattern_text]}, {re, run, [bin, pattern_text, re_options]}, {re, compile, [pattern_text]},
     {re, compile, [pattern_text, re_options]}, {re, replace, [bin, pattern_text, bin]}, {re, split, [bin, pattern_text]},
     {re, replace, [bin, pattern_text, bin, re_options]}, {re, split, [bin, pattern_text, re_options]}, {re, run, [any, any, any]}];
calls(codes) ->
    [{erlang, binary_to_term, [etf]}, {erlang, binary_to_term, [etf, etf_in_options]}, {erlang, external_size, [any]},
     {erlang, term_to_binary, [any, etf_options]}, {erlang, term_to_iovec, [any]}, {zlib, gzip, [iolist]}, {zlib, gunzip, [bin]},
     {zlib, zip, [iolist]}, {zlib, unzip, [bin]}, {zlib, uncompress, [bin]}, {base64, encode, [bin]}, {base64, decode, [bin]},
     {erl_parse, normalise, [any]}];
calls(bits) ->
    [{calls, name, [bits]}, {erlang, bit_size, [bits]}, {erlang, byte_size, [bits]}, {erlang, bitstring_to_list, [bits]},
     {erlang, list_to_bitstring, [bit_list]}, {erlang, '==', [bits, bits]}, {erlang, '<', [bits, bits]}, {erlang, phash2, [bits]},
     {erlang, term_to_binary, [bits]}, {erlang, split_binary, [bits, small]}, {erlang, binary_part, [bits, small, small]},
     {binary, match, [bits, pattern]}, {erlang, iolist_to_binary, [bits]}];
calls(tables) ->
    [{ets, F, A} || {F, A} <- [{new, [atom, ets_options]}, {lookup, [any, any]}, {insert, [any, any]}, {info, [any]}, {info, [any, any]},
                               {match_spec_compile, [match_spec]}, {test_ms, [tuple, match_spec]}, {is_compiled_ms, [any]},
                               {tab2list, [any]}, {first, [any]}, {delete, [any]}, {rename, [any, any]}]].

name(T) -> T.

utf8(Chars) ->
    try unicode:characters_to_binary(Chars) of
        B when is_binary(B) -> B;
        {_, B, _} -> B
    catch _:_ -> <<"1">>
    end.

%% Arguments: mostly of the kind asked for, now and then anything.
arg({literal, T}) -> T;
arg(K) -> case rand:uniform(25) of 1 -> term(2); _ -> make(K) end.

pick(L) -> lists:nth(rand:uniform(length(L)), L).
many(Max, F) -> [F() || _ <- lists:seq(1, rand:uniform(Max + 1) - 1)].

make(any) -> term(3);
make(bool) -> pick([true, false, true, false, 1]);
make(num) -> case rand:uniform(3) of 1 -> make(float); _ -> make(int) end;
make(small) -> pick([-1, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 20, 31, 32, 33, 63, 64, 65, 100, 255, 256, 1 bsl 27]);
make(int) ->
    case rand:uniform(4) of
        1 -> rand:uniform(20) - 10;
        2 -> pick([1, -1]) * ((1 bsl pick([7, 8, 15, 16, 26, 27, 28, 31, 32, 58, 59, 60, 63, 64, 65, 127, 128, 500])) + rand:uniform(3) - 2);
        3 -> rand:uniform(1 bsl 62) - (1 bsl 61);
        4 -> pick([1, -1]) * rand:uniform(1 bsl rand:uniform(300))
    end;
make(float) ->
    case rand:uniform(5) of
        1 -> pick([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 1.0e308, -1.0e308, 5.0e-324, 2.2250738585072014e-308, 9007199254740992.0,
                   9007199254740993.0, 1.0e22, 1.0e23, 0.1, 123456789.125, 4294967296.0]);
        2 -> rand:uniform();
        3 -> (rand:uniform() - 0.5) * math:pow(10, rand:uniform(600) - 300);
        4 -> float(rand:uniform(1 bsl 40) - (1 bsl 39));
        5 -> <<F/float>> = finite(), F
    end;
make(two_floats) -> [make(float), make(float)];
make(three) -> [term(3), term(3), term(3), make(small)];
make(atom) -> pick([a, b, ok, true, false, undefined, '', 'hello world', 'A', error, binary_to_atom(<<"åäö"/utf8>>), lists, exit, throw,
                    binary_to_atom(<<"日本"/utf8>>), nfc, none]);
make(base) -> pick([2, 8, 10, 16, 36, 3, 1, 37, 0, -1]);
make(encoding) -> pick([latin1, utf8, unicode, utf16, {utf16, little}, {utf16, big}, utf32, {utf32, little}, utf8, latin1, strange]);
make(endian) -> pick([big, little, big, little, native, strange]);
make(number_text) ->
    case rand:uniform(6) of
        1 -> integer_to_list(make(int));
        2 -> float_to_list(make(float));
        3 -> pick(["", "+", "-", "1.", ".5", "1e5", "1.0e", "1.0e5", "-0.0", "+7", " 1", "1 ", "0x10", "16#ff", "1_000", "<0.1.0>",
                   "#Ref<0.1.2.3>", "#Port<0.1>", "1.0e400", "-1.0e-400", "zz", "ZZ", "7fffffffffffffff", "123abc", "--1"]);
        4 -> [pick("0123456789+-.eE#_ abzAZ") || _ <- lists:seq(1, rand:uniform(8))];
        5 -> integer_to_list(make(int), pick([2, 8, 16, 36]));
        6 -> make(chars)
    end;
make(number_bin) -> utf8(make(number_text));
make(chars) -> many(8, fun() -> char() end);
make(chardata) ->
    case rand:uniform(5) of
        1 -> make(chars);
        2 -> utf8(make(chars));
        3 -> make(bin);
        4 -> many(4, fun() -> pick([char(), utf8(make(chars)), make(chars), make(bin)]) end);
        5 -> many(3, fun() -> make(chardata) end)
    end;
make(format) ->
    lists:append(many(5, fun() -> pick(["~p", "~w", "~s", "~ts", "~c", "~tc", "~b", "~B", "~x", "~#", "~+", "~e", "~f", "~g", "~10p", "~-10w",
                                        "~10.3.0f", "~.2f", "~5..0b", "~*c", "~n", "~~", "~i", "~tp", "~tw", "~P", "~W", "~a", "~d", "~u",
                                        "~0p", "~3s", "~.3s", "~10.5s", "abc ", " ", "~", "~k", "~.16b", "~.16x", "~-6.2e"]) end));
make(bin) ->
    case rand:uniform(6) of
        1 -> <<>>;
        2 -> list_to_binary(many(12, fun() -> rand:uniform(256) - 1 end));
        3 -> list_to_binary(many(20, fun() -> pick("abc") end));
        4 -> utf8(make(chars));
        5 -> B = list_to_binary(many(100, fun() -> pick("abcd \n:") end)), N = rand:uniform(byte_size(B) + 1) - 1, <<_:N/binary, R/binary>> = B, R;
        6 -> term_to_binary(term(2))
    end;
make(bins) -> many(4, fun() -> <<"ab", (make(bin))/binary>> end);
make(bits) -> B = make(bin), N = rand:uniform(bit_size(B) + 1) - 1, <<R:N/bits, _/bits>> = B, R;
make(bit_list) -> many(5, fun() -> pick([make(bits), rand:uniform(256) - 1, [make(bits)]]) end);
make(iolist) ->
    case rand:uniform(3) of
        1 -> make(bin);
        2 -> many(6, fun() -> pick([rand:uniform(256) - 1, make(bin), many(3, fun() -> rand:uniform(256) - 1 end)]) end);
        3 -> many(3, fun() -> make(iolist) end) ++ pick([[], [], make(bin)])
    end;
make(tuple) -> list_to_tuple(many(6, fun() -> term(2) end));
make(tuples) -> many(8, fun() -> case rand:uniform(9) of 1 -> term(1); _ -> list_to_tuple([term(1) | many(3, fun() -> term(1) end)]) end end);
make(pairs) -> many(40, fun() -> {term(1), term(1)} end);
make(list) -> case rand:uniform(12) of 1 -> [term(1) | term(1)]; 2 -> lists:seq(1, rand:uniform(300)); _ -> many(10, fun() -> term(1) end) end;
make(map) ->
    case rand:uniform(4) of
        1 -> maps:from_list([{I, term(1)} || I <- lists:seq(1, rand:uniform(33))]);
        _ -> maps:from_list(many(6, fun() -> {term(1), term(1)} end))
    end;
make(pattern) -> case rand:uniform(3) of 1 -> many(3, fun() -> list_to_binary(many(3, fun() -> pick("abc") end)) end);
                     _ -> list_to_binary([pick("abcd") || _ <- lists:seq(1, rand:uniform(3))]) end;
make(match_options) -> many(1, fun() -> pick([{scope, {make(small), make(small)}}, strange]) end);
make(split_options) -> many(3, fun() -> pick([global, trim, trim_all, {scope, {make(small), make(small)}}, {insert_replaced, make(small)}]) end);
make(float_options) -> many(2, fun() -> pick([{decimals, make(small)}, {scientific, make(small)}, compact, short, strange]) end);
make(etf_options) -> many(2, fun() -> pick([compressed, {compressed, 9}, {compressed, 1}, {minor_version, pick([0, 1, 2, 3])}, deterministic, local]) end);
make(etf_in_options) -> many(2, fun() -> pick([safe, used, strange]) end);
make(etf) ->
    B = term_to_binary(term(3), pick([[], [{minor_version, 0}], [{minor_version, 1}], [compressed]])),
    case rand:uniform(3) of
        1 -> B;
        2 -> damaged(B);
        3 -> damaged(damaged(B))
    end;
make(packet_type) -> pick([raw, 0, 1, 2, 4, asn1, sunrm, cdr, fcgi, line, tpkt, http, httph, http_bin, httph_bin, strange]);
make(packet_options) -> many(2, fun() -> pick([{packet_size, make(small)}, {line_length, make(small)}, {line_delimiter, $b}, strange]) end);
make(pattern_text) ->
    case rand:uniform(4) of
        1 -> lists:append(many(5, fun() -> pick(["a", "b", "(a|b)", "[a-c]", "a*", "b+?", "(?<n>c)", "\\d", "\\w+", "^", "$", ".", "(", ")", "[", "\\1",
                                                 "(?i)", "x{2,3}", "(?=a)", "\\b", "(?:ab)*", "a|", "[^a]", "\\x{e5}", "(*UTF8)", "?"]) end));
        _ -> pick(["a", "a(b)c", "(a)(b)?(c)", "[ab]+", "^a.*c$", "(?<x>a)(?<y>b)", "\\s", "b*", "", "(ab|cd)+", "."])
    end;
make(re_options) ->
    many(4, fun() -> pick([global, caseless, unicode, multiline, dotall, anchored, ungreedy, extended, dupnames, firstline, dollar_endonly,
                           no_auto_capture, notbol, notempty, {offset, make(small)}, {capture, pick([all, first, none, all_but_first, all_names])},
                           {capture, pick([all, first, [0, 1], [x], ["y", 5]]), pick([index, list, binary])}, {newline, pick([cr, lf, crlf, any, anycrlf])},
                           {return, pick([iodata, list, binary])}, {parts, pick([0, 1, 2, 3, infinity])}, trim, group, report_errors,
                           {match_limit, 10}, strange]) end);
make(ets_options) -> many(4, fun() -> pick([set, bag, ordered_set, duplicate_bag, public, private, {keypos, make(small)}, {heir, none}, compressed,
                                            {read_concurrency, true}, {write_concurrency, auto}, {decentralized_counters, true}, strange]) end);
make(match_spec) -> [{list_to_tuple(many(4, fun() -> spec_term() end)), many(2, fun() -> guard(2) end), many(2, fun() -> guard(2) end)}].

spec_term() -> pick(['_', '$1', '$2', '$3', a, 1, {'$1', '_'}, ['$2' | '_'], #{a => '$1'}, '$0']).
guard(0) -> pick(['$1', '$2', '$_', '$$', 1, a, {const, {a}}, [], <<"x">>]);
guard(D) ->
    case rand:uniform(3) of
        1 -> guard(0);
        2 -> {pick([is_atom, is_integer, is_list, 'not', hd, tl, length, size, abs, element, '-', map_size, node, self]), guard(D - 1)};
        3 -> {pick(['+', '-', '==', '=:=', '<', 'and', 'or', 'andalso', 'orelse', element, 'div', 'bsl', is_map_key, map_get]), guard(D - 1), guard(D - 1)}
    end.

finite() ->
    B = <<(rand:uniform(1 bsl 60) - 1):64>>,
    case B of <<_/float>> -> B; _ -> finite() end.

damaged(<<>>) -> <<>>;
damaged(B) ->
    N = rand:uniform(byte_size(B)) - 1,
    <<A:N/binary, _, C/binary>> = B,
    case rand:uniform(3) of
        1 -> <<A/binary, (rand:uniform(256) - 1), C/binary>>;
        2 -> <<A/binary, C/binary>>;
        3 -> A
    end.

char() ->
    case rand:uniform(8) of
        1 -> rand:uniform(256) - 1;
        2 -> pick([16#e5, 16#e4, 16#300, 16#301, 16#1F600, 16#65e5, 16#10FFFF, 16#D7FF, 16#E000, 16#200D, 16#FEFF, 16#0, 16#7f, 16#80, 16#7ff, 16#800, 16#ffff,
                   16#10000, 16#110000, 16#D800, 16#1100, 16#AC00]);
        _ -> pick("abcxyz ABC019.,-\n")
    end.

key(D) -> case term(D) of K when is_function(K) -> a; K -> K end.

term(0) -> pick([a, b, [], {}, 0, 1, -1, 1.0, <<>>, <<"ab">>, "ab", true, false, ok, undefined, #{}]);
term(D) ->
    case rand:uniform(12) of
        1 -> make(int);
        2 -> make(float);
        3 -> make(atom);
        4 -> make(bin);
        5 -> many(4, fun() -> term(D - 1) end);
        6 -> list_to_tuple(many(4, fun() -> term(D - 1) end));
        7 -> maps:from_list(many(3, fun() -> {key(D - 1), term(D - 1)} end));
        8 -> [term(D - 1) | term(D - 1)];
        9 -> make(bits);
        10 -> make(chars);
        11 -> pick([fun erlang:abs/1, fun lists:map/2]);
        12 -> term(0)
    end.
