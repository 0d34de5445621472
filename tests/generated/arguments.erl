%% Random arguments for natives: terms of a kind that is asked for, and now and then anything.
-module(arguments).
-export([arg/1, make/1, term/1, pick/1, many/2, utf8/1]).

utf8(Chars) ->
    try unicode:characters_to_binary(Chars) of
        B when is_binary(B) -> B;
        {_, B, _} -> B
    catch _:_ -> <<"1">>
    end.

%% Arguments: mostly of the kind asked for, now and then anything.
arg({literal, T}) -> T;
arg(no_unit) -> make(no_unit);
arg(K) -> case rand:uniform(25) of 1 -> term(2); _ -> make(K) end.

pick(L) -> lists:nth(rand:uniform(length(L)), L).
%% How many arguments: stock takes a fun's arity for their number modulo 256.
applied() -> case rand:uniform(300) of N when N < 256; N > 260 -> N; _ -> 1030 end.
many(Max, F) -> [F() || _ <- lists:seq(1, rand:uniform(Max + 1) - 1)].

make(any) -> term(3);
make(bool) -> pick([true, false, true, false, 1]);
make(num) -> case rand:uniform(3) of 1 -> make(float); _ -> make(int) end;
make(width) -> pick([-1, 0, 1, 2, 3, 5, 10, 20, 80, 200, 255, 256]);
make(small) -> pick([-1, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 20, 31, 32, 33, 63, 64, 65, 100, 255, 256, case rand:uniform(20) of 1 -> 1 bsl 27; _ -> 12 end]);
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
make(bits) ->
    B = make(bin),
    N = rand:uniform(bit_size(B) + 1) - 1,
    %% Half of them begin within a byte.
    case rand:uniform(2) of
        1 -> <<R:N/bits, _/bits>> = B, R;
        2 -> K = rand:uniform(N + 1) - 1, L = N - K, <<_:K/bits, R:L/bits, _/bits>> = B, R
    end;
make(bit_list) -> many(5, fun() -> pick([make(bits), rand:uniform(256) - 1, [make(bits)]]) end);
make(iolist) ->
    case rand:uniform(3) of
        1 -> make(bin);
        2 -> many(6, fun() -> pick([rand:uniform(256) - 1, make(bin), many(3, fun() -> rand:uniform(256) - 1 end)]) end);
        3 -> many(3, fun() -> make(iolist) end) ++ pick([[], [], make(bin)])
    end;
%% The same in every run.
make(identifier) ->
    pick([list_to_pid("<0.30000.0>"), list_to_pid("<0.30001.2>"), list_to_ref("#Ref<0.1.2.3>"), list_to_ref("#Ref<0.4.0.0>"),
          list_to_port("#Port<0.30000>"), fun erlang:abs/1, fun lists:map/2, fun nowhere:to_be_found/3]);
make(closure) ->
    X = term(1),
    pick([fun() -> X end, fun(A) -> A end, fun(A) -> {A, X} end, fun(A, B) -> {X, A, B} end, fun(A, B) -> A < B end, fun(_) -> throw(X) end,
          fun(A, B, C) -> [A, B, C | X] end, fun(A) -> A =:= X end, fun erlang:abs/1, fun(A, B) -> A =< B end, fun(_) -> error(X) end]);
make(large) ->
    pick([lists:seq(1, 200), list_to_tuple(lists:seq(1, 70)), maps:from_list([{I, I} || I <- lists:seq(1, 40)]), 1 bsl 5000, -(1 bsl 4095) + 1,
          binary:copy(<<"abc">>, 100), binary:copy(<<0>>, 5000), lists:duplicate(300, $a), lists:foldl(fun(_, A) -> [A] end, [], lists:seq(1, 100)),
          binary_to_atom(binary:copy(<<"ä"/utf8>>, 255)), <<(binary:copy(<<255>>, 65))/binary, 1:3>>,
          maps:from_list([{{I, float(I)}, <<I>>} || I <- lists:seq(1, 33)]), [1 | lists:duplicate(20, [a | b])]]);
%% What natives may take for an option, or give a meaning.
make(word) ->
    pick([link, monitor, flush, info, trap_exit, priority, normal, low, high, max, kill, killed, noproc, async, sync, true, false, all, infinity, undefined,
          min_heap_size, max_heap_size, message_queue_data, on_heap, off_heap, save_calls, sensitive, registered_name, links, dictionary, messages, memory,
          reductions, second, millisecond, microsecond, nanosecond, native, perf_counter, monotonic, positive, big, little, latin1, utf8, unicode, compressed,
          deterministic, local, safe, used, minor_version, binary, list, process, port, time_offset, abs, scope, nosuspend, noconnect, spawn, name, arity, env,
          module, type, external, keypos, set, bag, ordered_set, named_table, public, private, protected, size, owner, heir, error_logger, allow_gc,
          is_record, '_', '$1', '$_', [], exact_reductions, current_function, current_stacktrace, status, suspended, new_index, refc]);
make(option) ->
    case rand:uniform(3) of
        1 -> make(word);
        2 -> {make(word), term(1)};
        3 -> {make(word), pick([make(small), make(word), make(int)])}
    end;
make(options) -> many(3, fun() -> make(option) end) ++ pick([[], [], [], [], make(word)]);
%% An argument for a native that nothing is known about.
make(thing) ->
    case rand:uniform(15) of
        N when N < 4 -> term(3);
        N when N < 6 -> make(word);
        6 -> make(option);
        7 -> make(options);
        8 -> make(small);
        9 -> make(int);
        10 -> make(closure);
        11 -> make(identifier);
        12 -> make(bits);
        13 -> make(map);
        14 -> make(list);
        15 -> pick([make(chars), make(chardata), make(iolist), make(tuple), make(pairs), make(number_text), make(atom)])
    end;
%% Never what is allowed.
make(wrong) -> pick([strange, {}, "strange", <<"strange">>, -1, 1 bsl 70, 1.5, [strange], {strange, 1}, {strange}, [1 | 2], #{strange => 1}, []]);
make(no_unit) -> pick([strange, {}, 0, -1, -5, 1.5, <<>>, [a], [positive | a], [[]], "strange", seconds_, #{}]);
make(edge) ->
    case rand:uniform(12) of
        1 -> rand:uniform(20) - 10;
        3 -> pick([1, -1]) * rand:uniform(1 bsl (64 * rand:uniform(40)));
        _ -> pick([1, -1]) * ((1 bsl pick([15, 16, 24, 26, 27, 28, 31, 32, 33, 52, 53, 54, 58, 59, 60, 61, 62, 63, 64, 65, 127, 128, 129, 1023, 1024, 2048, 4096])) + rand:uniform(5) - 3)
    end;
%% None that is allowed and takes as much memory as a process may have.
make(arity_edge) -> case make(edge) of N when N > 1 bsl 17, N < 1 bsl 24 -> 1 bsl 24; N -> N end;
make(shift) -> pick([1, -1]) * pick([0, 1, 2, 3, 31, 32, 59, 60, 63, 64, 65, 127, 128, 1000, 4096, 1 bsl 40, 1 bsl 64]);
make(guards) -> [{'_', many(2, fun() -> guard(2) end), many(3, fun() -> action() end)}, {['$1' | '$2'], [], [guard(2)]}];
make(stack) ->
    many(3, fun() -> pick([{lists, map, 2, []}, {lists, map, [a, b], [{file, "x"}, {line, 3}]}, {a, b, c, d}, {lists, map, 2}, {lists, map, -1, []}, {lists, map, 1, [strange]},
                           {fun erlang:abs/1, [1]}, {fun erlang:abs/1, 1, []}, strange, {lists, map, 1 bsl 70, []}, {lists, map, 255, []}]) end) ++ pick([[], [], [], strange]);
make(array_steps) ->
    many(12, fun() -> pick([{get, make(small), 0}, {info, 1, 1}, {compare_exchange, make(small), make(edge64), make(edge64)},
                            {pick([put, add, sub, add_get, sub_get, exchange]), make(small), make(edge64)},
                            {pick([put, add, sub, add_get, sub_get, exchange]), make(small), make(thing)}]) end);
make(edge64) -> pick([1, -1]) * ((1 bsl pick([0, 1, 8, 31, 32, 58, 59, 60, 62, 63, 64])) + rand:uniform(3) - 2);
make(persistent_steps) ->
    many(10, fun() -> pick([{put, make(key), make(any)}, {get, make(key)}, {get, make(key), none}, {erase, make(key)}, {all}]) end);
make(key) -> pick([a, b, 1, 1.0, 0.0, -0.0, {a}, {a, 1}, "k", <<"k">>, [], #{}, 1 bsl 70, #{a => 1.0}, #{0.0 => 1}, 'ä']);
make(unit) -> pick([second, millisecond, microsecond, nanosecond, native, perf_counter, 1, 1000, 7, 1 bsl 70, 0, strange, seconds, milli_seconds]);
make(year) -> pick([1969, 1970, 1971, 2000, 2024, 2026, 2038, 2100, 1600, 0, -1, 9999, 1 bsl 40]);
make(date) -> {make(year), pick([1, 2, 3, 6, 12, 0, 13]), pick([1, 15, 28, 29, 30, 31, 0, 32])};
make(time) -> {pick([0, 1, 12, 23, 24, -1]), pick([0, 1, 30, 59, 60]), pick([0, 1, 59, 60, 61])};
make(datetime) -> {make(date), make(time)};
make(path) ->
    case rand:uniform(4) of
        1 -> lists:append(many(5, fun() -> pick(["/", "a", "..", ".", "b.erl", "~", "//", "å", "x y", ".hidden", "c.tar.gz", [0], [16#65e5], "\\"]) end));
        2 -> utf8(make(path));
        3 -> pick([a, 'b.erl', "", <<>>, ["a", $b, <<"c">>], [a, "b"], ["a" | b], [300], [-1], <<255>>, <<"a", 0, "b">>]);
        4 -> make(chardata)
    end;
make(names) -> many(4, fun() -> make(path) end);
make(tuple) -> list_to_tuple(many(6, fun() -> term(2) end));
make(tuples) -> many(8, fun() -> case rand:uniform(9) of 1 -> term(1); _ -> list_to_tuple([term(1) | many(3, fun() -> term(1) end)]) end end);
make(pairs) -> many(40, fun() -> {term(1), term(1)} end);
make(list) -> case rand:uniform(12) of 1 -> [term(1) | term(1)]; 2 -> lists:seq(1, applied()); _ -> many(10, fun() -> term(1) end) end;
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
        2 -> no_internal(damaged(B));
        3 -> no_internal(damaged(damaged(B)))
    end;
make(packet_type) -> pick([raw, 0, 1, 2, 4, asn1, sunrm, cdr, fcgi, line, tpkt, http, httph, http_bin, httph_bin, strange]);
make(packet_options) -> many(2, fun() -> pick([{packet_size, make(small)}, {line_length, make(small)}, {line_delimiter, $b}, strange]) end);
make(pattern_text) ->
    case rand:uniform(4) of
        1 -> lists:append(many(5, fun() -> pick(["a", "b", "(a|b)", "[a-c]", "a*", "b+?", "(?<n>c)", "\\d", "\\w+", "^", "$", ".", "(", ")", "[", "\\1",
                                                 "(?i)", "x{2,3}", "(?=a)", "\\b", "(?:ab)*", "a|", "[^a]", "\\x{e5}", "(*UTF8)", "?"]) end));
        _ -> pick(["a", "a(b)c", "(a)(b)?(c)", "[ab]+", "^a.*c$", "(?<x>a)(?<y>b)", "\\s", "b*", "", "(ab|cd)+", "."])
    end;
%% Patterns of all that PCRE knows, and of what only its successor does.
make(regex) -> lists:append(many(6, fun() -> piece(2) end));
make(subject) -> case rand:uniform(4) of 1 -> utf8(make(chars)); 2 -> make(bin); _ -> list_to_binary(many(12, fun() -> pick("aabbccAB1 \n-_xyé") end)) end;
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

action() ->
    case rand:uniform(3) of
        1 -> guard(2);
        2 -> pick([{return_trace}, {exception_trace}, {message, guard(1)}, {message, {caller}}, {silent, guard(1)}, {set_tcw, 1}, {get_tcw}, {enable_trace, a}, {is_seq_trace},
                   {display, a}, {process_dump}, {caller_line}, {current_stacktrace}, {get_seq_token}, {set_seq_token, label, 1}, {self}, {trace, [a], [b]}, {strange}, {enable_trace}]);
        3 -> guard(0)
    end.

atom_piece() ->
    pick(["a", "b", "c", "ab", ".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\h", "\\v", "\\R", "\\N", "\\X", "\\C", "\\b", "\\B", "\\A", "\\z", "\\Z", "\\G", "\\K",
          "^", "$", "\\1", "\\2", "\\g1", "\\g{1}", "\\g{-1}", "\\k<n>", "\\k{n}", "\\k'n'", "(?P=n)", "\\x41", "\\x{61}", "\\x{e9}", "\\101", "\\o{141}", "\\cA", "\\e", "\\n", "\\t",
          "\\p{L}", "\\p{Lu}", "\\P{L}", "\\pL", "\\p{Latin}", "\\p{Any}", "\\Qa.b\\E", "[abc]", "[^a]", "[a-c]", "[\\w-]", "[[:alpha:]]", "[[:^digit:]b]", "[]a]", "[^]a]", "[\\]a]",
          "[\\d\\s]", "[a-\\d]", "[\\b]", "[\\p{L}1]", "\\.", "\\\\", "x", "1", "-", "é", "\\0", "\\81", "[[:<:]]", "{", "}", "]", "a{,2}", "{1}", "{1,", ",", "#", " "]).
odd_piece() ->
    pick(["(*ACCEPT)", "(*FAIL)", "(*F)", "(*COMMIT)", "(*PRUNE)", "(*PRUNE:x)", "(*SKIP)", "(*SKIP:x)", "(*THEN)", "(*MARK:x)", "(*:x)", "(*UTF8)", "(*UTF)", "(*UCP)", "(*CR)", "(*ANYCRLF)", "(*BSR_ANYCRLF)",
          "(*NO_START_OPT)", "(*LIMIT_MATCH=100)", "(*LIMIT_RECURSION=100)", "(*NO_AUTO_POSSESS)", "(?R)", "(?1)", "(?-1)", "(?+1)", "(?&n)", "(?P>n)", "\\g<1>", "\\g'1'", "\\g<n>", "(?C)", "(?C1)", "(?C256)",
          "(?#comment)", "(?#", "(?i)", "(?-i)", "(?x)", "(?s)", "(?m)", "(?J)", "(?U)", "(?X)", "(?i-s)", "(?z)", "(", ")", "[", "[a", "\\", "\\x{", "\\x{110000}", "\\o{", "\\p{Foo}", "\\p", "\\L", "\\u", "\\c", "\\cé",
          "[b-a]", "[[:foo:]]", "[[.a.]]", "[:alpha:]", "(?<1>a)", "(?<n", "(?<>a)", "(?P<n>a", "(?(1", "(?(9)a)", "(?(x)a)", "(?(R)a|b)", "(?(R1)a)", "(?(DEFINE)(a))", "(?(?a)b)", "(?(a)b|c|d)", "a**", "a+++", "*a", "+", "?",
          "a{2,1}", "a{65536}", "\\8", "\\99", "\\g", "\\g{", "\\k", "\\k{x}", "(?'n'a)", "(?'n", "(?P", "(?Pn)", "(?", "(?<", "(?=", "(*", "(*X)", "(*ACCEPT:x)", "(*MARK)", "\\E", "\\Q", "\\Qab",
          %% Not known to PCRE.
          "(?xx)", "(?n)", "(?^)", "(?^i)", "(*pla:a)", "(*positive_lookahead:a)", "(*nla:a)", "(*plb:a)", "(*atomic:a)", "(*sr:a)", "(*napla:a)", "(?*a)", "(?<*a)", "\\N{U+41}", "(?C'x')", "(*NOTEMPTY)", "(*NO_JIT)",
          "(*LIMIT_HEAP=1)", "(*LIMIT_DEPTH=1)", "(*NUL)", "(*NO_DOTSTAR_ANCHOR)", "(?(VERSION>=10)a)", "\\p{Script=Latin}", "\\p{sc:Latin}", "\\p{greek}", "\\p{bidiclass:L}", "\\p{Alphabetic}", "\\p{latin}", "(?aD)", "(?[a])",
          "(?<=a|bc)", "(?<=ab*)", "(?<=a{1,2})", "a{ 1 }", "a{1, 2}", "\\x{ 41 }", "\\g{ 1 }", "\\k{ n }", "(?<abcdefghijklmnopqrstuvwxyzabcdefg>a)", "(?a)", "(?r)", "(*ASCII_RESTRICT)", "(*CASELESS_RESTRICT)"]).
piece(0) -> atom_piece();
piece(D) ->
    P = fun() -> lists:append(many(2, fun() -> piece(D - 1) end)) end,
    case rand:uniform(12) of
        1 -> "(" ++ P() ++ ")";
        2 -> pick(["(?:", "(?>", "(?|", "(?<n>", "(?P<n>", "(?'m'", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?-i:", "(?s-m:"]) ++ P() ++ ")";
        3 -> P() ++ "|" ++ P();
        4 -> "(" ++ P() ++ "|" ++ P() ++ ")";
        5 -> piece(D - 1) ++ pick(["*", "+", "?", "*?", "+?", "??", "*+", "++", "{2}", "{1,2}", "{0,1}?", "{1,}+", "{0}", "{,2}"]);
        6 -> pick(["(?(1)", "(?(<n>)", "(?('n')", "(?(n)", "(?(?=a)", "(?(-1)", "(?(R&n)"]) ++ P() ++ pick(["", "|" ++ P()]) ++ ")";
        7 -> odd_piece();
        _ -> atom_piece()
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

%% Without the tags by which stock names atoms by their numbers in its own table.
no_internal(B) -> << <<(case C of $I -> $H; $K -> $H; _ -> C end)>> || <<C>> <= B>>.

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
    case rand:uniform(14) of
        1 -> make(int);
        2 -> make(float);
        3 -> make(atom);
        4 -> make(bin);
        13 -> make(identifier);
        14 -> case rand:uniform(4) of 1 -> make(large); _ -> term(0) end;
        5 -> many(4, fun() -> term(D - 1) end);
        6 -> list_to_tuple(many(4, fun() -> term(D - 1) end));
        7 -> maps:from_list(many(3, fun() -> {key(D - 1), term(D - 1)} end));
        8 -> [term(D - 1) | term(D - 1)];
        9 -> make(bits);
        10 -> make(chars);
        11 -> pick([fun erlang:abs/1, fun lists:map/2]);
        12 -> term(0)
    end.
