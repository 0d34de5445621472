%% Families of natives: which are called, and with what kinds of arguments.
-module(families).
-export([names/0, calls/1]).

%% All but `patterns`, which has patterns with several faults: of those Purlin may tell another.
names() ->
    [arithmetic, conversions, terms, tuples, lists, maps, binaries, unicode, format, regex, codes, tables, bits, floats,
     integers, strings, paths, calendar, flags, identifiers, funs, shared_numbers, os, erlang, data, emulator, rest].

a1(M, Names, K) -> [{M, F, [K]} || F <- Names].
a2(M, Names, K, L) -> [{M, F, [K, L]} || F <- Names].

calls(arithmetic) ->
    a2(erlang, ['+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor', max, min], num, num) ++
        a2(erlang, ['bsl', 'bsr'], int, small) ++
        a1(erlang, ['-', '+', 'bnot', abs, float, round, trunc, ceil, floor, is_integer, is_float, is_number], num) ++
        a2(erlang, ['+', '*', 'div', 'bsl'], any, num);
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
     {lists, keysearch, [any, small, tuples]}, {lists, sort, [list]}, {lists, usort, [list]}, {lists, seq, [width, width, width]},
     {lists, nth, [small, list]}, {lists, sublist, [list, small, small]}, {lists, split, [small, list]}, {lists, sum, [list]},
     {lists, flatten, [list]}, {lists, keysort, [small, tuples]}, {lists, ukeysort, [small, tuples]}, {lists, zip, [list, list]},
     {lists, merge, [list, list]}, {lists, subtract, [list, list]}, {lists, append, [list]}, {lists, concat, [list]},
     {erlang, length, [any]}, {erlang, hd, [any]}, {erlang, tl, [any]}, {lists, duplicate, [width, any]},
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
     {binary, copy, [bin, width]}, {binary, bin_to_list, [bin]}, {binary, bin_to_list, [bin, small, small]},
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
                               {tab2list, [any]}, {first, [any]}, {delete, [any]}, {rename, [any, any]}]];
calls(integers) ->
    %% Around the limits of small integers, of words, of what big integers may be.
    a2(erlang, ['+', '-', '*', 'div', 'rem', 'band', 'bor', 'bxor', '==', '<', '=<', '=:=', '/', max], edge, edge) ++
        a2(erlang, ['bsl', 'bsr'], edge, shift) ++ a1(erlang, ['-', 'bnot', abs, float, integer_to_list, integer_to_binary, phash2, external_size], edge) ++
        [{erlang, term_to_binary, [edge]}, {binary, encode_unsigned, [edge]}, {erlang, integer_to_list, [edge, base]}, {erlang, round, [float]},
         {erlang, '==', [edge, float]}, {erlang, '<', [edge, float]}, {erlang, '<', [float, edge]}, {erlang, '+', [edge, float]}, {erlang, phash, [edge, edge]},
         {erlang, phash2, [any, edge]}, {erlang, crc32, [edge, bin]}, {erlang, make_tuple, [arity_edge, any]}, {erlang, element, [edge, tuple]},
         {erlang, binary_part, [bin, edge, edge]}, {binary, part, [bin, edge, edge]}, {binary, at, [bin, edge]}, {erlang, split_binary, [bin, edge]},
         {lists, nth, [edge, list]}, {lists, sublist, [list, edge]}, {math, pow, [edge, small]}];
calls(strings) ->
    a1(string, [is_empty, length, to_graphemes, reverse, lowercase, uppercase, titlecase, casefold, to_integer, to_float, next_codepoint, next_grapheme, trim,
                chomp, strip, to_upper, to_lower], chardata) ++
        [{string, F, [chardata, chardata]} || F <- [equal, prefix, concat, find, split, str, rstr, span, cspan]] ++
        [{string, slice, [chardata, width]}, {string, slice, [chardata, width, width]}, {string, pad, [chardata, width]}, {string, pad, [chardata, width, word]},
         {string, trim, [chardata, word, chars]}, {string, take, [chardata, chars]}, {string, take, [chardata, chars, bool]}, {string, lexemes, [chardata, chars]},
         {string, nth_lexeme, [chardata, width, chars]}, {string, replace, [chardata, chardata, chardata]}, {string, replace, [chardata, chardata, chardata, {literal, all}]},
         {string, split, [chardata, chardata, word]}, {string, find, [chardata, chardata, word]}, {string, equal, [chardata, chardata, bool]},
         {string, tokens, [chars, chars]}, {string, join, [list, chars]}, {string, chars, [width, width]}, {string, centre, [chars, width]},
         {string, substr, [chars, width, width]}, {string, list_to_integer, [number_text]}, {string, list_to_float, [number_text]},
         {io_lib, fread, [format, chars]}, {io_lib, format, [format, list]}, {io_lib, latin1_char_list, [any]}, {io_lib, char_list, [any]},
         {io_lib, printable_list, [any]}, {io_lib, printable_unicode_list, [any]}, {io_lib, write_string, [chars]}, {io_lib, write_string_as_latin1, [chars]},
         {io_lib, write, [any, width]}, {io_lib, print, [any, width, width, width]}, {io_lib, format, [format, list, options]}, {io_lib, limit_term, [any, width]},
         {io_lib, build_text, [any]}, {io_lib, scan_format, [format, list]}, {io_lib, unscan_format, [any]}, {erl_scan, string, [chars, any, word]},
         {base64, encode, [iolist]}, {base64, decode, [bin]}, {base64, mime_decode, [bin]}, {base64, decode_to_string, [chars]},
         {uri_string, parse, [chardata]}, {uri_string, normalize, [chardata]}, {uri_string, quote, [chardata]}, {unicode_util, uppercase, [chardata]},
         {unicode_util, nfkd, [chardata]}, {unicode_util, nfkc, [chardata]}, {unicode_util, lookup, [width]}, {erl_parse, abstract, [any]}];
calls(paths) ->
    a1(filename, [absname, basename, dirname, extension, rootname, split, flatten, nativename, pathtype], path) ++
        [{filename, join, [names]}, {filename, join, [path, path]}, {filename, basename, [path, path]}, {filename, rootname, [path, path]},
         {filename, absname_join, [path, path]}, {filelib, safe_relative_path, [path, path]}, {filename, append, [path, path]}, {filelib, is_regular, [path]},
         {filelib, wildcard, [path]}] ++
        %% Paths of a made-up kind are for `file`: stock's `prim_file` faults at some.
        a1(file, [read_file, read_file_info, read_link, list_dir, list_dir_all, del_dir, delete, consult, script], path) ++
        [{prim_file, is_translatable, [chars]}, {prim_file, read, [thing, small]}, {prim_file, position, [thing, thing]}, {prim_file, write, [thing, iolist]},
         {file, open, [path, options]}, {file, position, [thing, thing]}, {file, pread, [thing, small, small]}, {file, format_error, [any]}];
calls(calendar) ->
    [{erlang, localtime_to_universaltime, [datetime]}, {erlang, localtime_to_universaltime, [datetime, word]}, {erlang, universaltime_to_localtime, [datetime]},
     {erlang, universaltime_to_posixtime, [datetime]}, {erlang, posixtime_to_universaltime, [int]}, {erlang, posixtime_to_universaltime, [edge]},
     {erlang, localtime_to_universaltime, [thing, thing]}, {erlang, universaltime_to_localtime, [thing]}, {erlang, universaltime_to_posixtime, [thing]},
     {erlang, convert_time_unit, [int, unit, unit]}, {erlang, convert_time_unit, [thing, unit, thing]}] ++
        a1(calendar, [date_to_gregorian_days, day_of_the_week, valid_date, iso_week_number], date) ++
        a1(calendar, [datetime_to_gregorian_seconds, local_time_to_universal_time_dst, local_time_to_universal_time, universal_time_to_local_time], datetime) ++
        a1(calendar, [gregorian_days_to_date, gregorian_seconds_to_datetime, seconds_to_daystime, seconds_to_time, is_leap_year], int) ++
        [{calendar, last_day_of_the_month, [year, small]}, {calendar, time_difference, [datetime, datetime]}, {calendar, time_to_seconds, [time]},
         {calendar, system_time_to_universal_time, [int, unit]}, {calendar, rfc3339_to_system_time, [chars]}, {calendar, system_time_to_rfc3339, [edge]},
         {calendar, system_time_to_local_time, [small, unit]}];
calls(flags) ->
    %% What may not be set, or is not there, and what is told of it. Not `schedulers_online`: more
    %% is no fault here.
    [{erlang, process_flag, [word, thing]}, {erlang, process_flag, [word, word]}, {erlang, process_flag, [word, small]}, {erlang, process_flag, [identifier, word, thing]},
     {erlang, process_info, [identifier, word]}, {erlang, process_info, [identifier, options]}, {erlang, process_info, [thing, thing]}, {erlang, process_info, [identifier]},
     {erlang, system_info, [{literal, strange}]}, {erlang, system_info, [number_text]}, {erlang, system_info, [tuple]}, {erlang, system_flag, [{literal, strange}, thing]},
     {erlang, system_flag, [number_text, thing]}, {erlang, system_flag, [{literal, fullsweep_after}, wrong]},
     {erlang, system_flag, [{literal, min_heap_size}, word]}, {erlang, system_flag, [{literal, max_heap_size}, wrong]}, {erlang, system_flag, [{literal, backtrace_depth}, wrong]},
     {erlang, system_flag, [{literal, multi_scheduling}, wrong]}, {erlang, system_flag, [{literal, time_offset}, wrong]}, {erlang, system_flag, [{literal, trace_control_word}, wrong]},
     {erlang, statistics, [{literal, strange}]}, {erlang, statistics, [wrong]}, {erlang, system_monitor, [wrong]}, {erlang, system_monitor, [identifier, wrong]},
     {erlang, system_profile, [identifier, wrong]}, {erlang, trace, [thing, bool, options]}, {erlang, trace, [identifier, thing, options]}, {erlang, trace_info, [thing, wrong]},
     {erlang, trace_pattern, [wrong, thing]}, {erlang, trace_pattern, [wrong, thing, options]}, {erlang, trace_pattern, [{literal, {nowhere, '_', '_'}}, match_spec, options]},
     {erlang, trace_pattern, [{literal, {nowhere, f, 1}}, guards, {literal, [local]}]},
     {erlang, trace_delivered, [thing]}, {erlang, suspend_process, [identifier]}, {erlang, suspend_process, [thing, options]}, {erlang, resume_process, [thing]},
     {erlang, garbage_collect, [thing]}, {erlang, garbage_collect, [identifier, options]}, {erlang, check_process_code, [thing, atom]}, {erlang, check_process_code, [identifier, atom, options]},
     {erlang, check_old_code, [thing]}, {erlang, function_exported, [thing, thing, thing]}, {erlang, function_exported, [{literal, lists}, atom, small]},
     {erlang, is_builtin, [{literal, erlang}, word, small]}, {erlang, is_builtin, [thing, thing, thing]}, {erlang, module_loaded, [thing]}, {erlang, get_module_info, [thing]},
     {erlang, get_module_info, [atom, word]}, {erlang, bump_reductions, [thing]}, {erlang, memory, [options]}, {erlang, memory, [wrong]}, {erlang, seq_trace, [thing, thing]},
     {erlang, seq_trace_info, [thing]}, {seq_trace, get_token, [thing]}, {erlang, nodes, [wrong]}, {erlang, node, [thing]}, {erlang, monitor_node, [thing, thing]}, {erlang, set_cookie, [wrong]},
     {erlang, get_cookie, [wrong]}, {erlang, delay_trap, [any, wrong]}, {erlang, unique_integer, [no_unit]}, {erlang, time_offset, [no_unit]},
     {erlang, monotonic_time, [no_unit]}, {erlang, system_time, [no_unit]}, {os, system_time, [no_unit]}, {erlang, raise, [word, any, stack]}, {erlang, error, [any, list, options]},
     {erlang, error, [any, list]}, {erlang, error, [any, list, {literal, [{error_info, #{module => nowhere, cause => 1}}]}]}, {erlang, nif_error, [any]},
     {erlang, nif_error, [any, list]}, {erlang, match_spec_test, [any, match_spec, word]}, {erlang, match_spec_test, [list, guards, {literal, trace}]},
     {erlang, match_spec_test, [list, match_spec, {literal, trace}]}, {erlang, match_spec_test, [tuple, match_spec, {literal, table}]}];
calls(identifiers) ->
    [{erlang, F, [K]} || K <- [thing, identifier], F <- [pid_to_list, ref_to_list, port_to_list, link, unlink, is_process_alive, unregister, whereis, alias, unalias, demonitor,
                                                          cancel_timer, read_timer, port_info, port_close, port_get_data, port_connect, is_pid, is_port, is_reference, fun_to_list,
                                                          list_to_pid, list_to_ref, list_to_port, garbage_collect, process_info, node, spawn_request_abandon, dist_get_stat, md5_final],
                                                        F =/= port_connect] ++
        [{erlang, exit, [identifier, any]}, {erlang, exit, [thing, any]}, {erlang, monitor, [word, thing]}, {erlang, monitor, [word, identifier, options]},
         {erlang, monitor, [{literal, process}, identifier]}, {erlang, monitor, [{literal, port}, identifier]}, {erlang, monitor, [{literal, process}, {literal, {strange, nonode@nohost}}]},
         {erlang, monitor, [{literal, time_offset}, word]}, {erlang, demonitor, [thing, options]}, {erlang, demonitor, [identifier, options]}, {erlang, register, [thing, thing]},
         {erlang, register, [atom, identifier]}, {erlang, send, [identifier, any]}, {erlang, send, [thing, any, options]}, {erlang, '!', [identifier, any]}, {erlang, '!', [wrong, any]},
         {erlang, send_nosuspend, [identifier, any]}, {erlang, send_nosuspend, [thing, any, options]}, {erlang, send_after, [thing, thing, any]}, {erlang, send_after, [small, identifier, any]},
         {erlang, send_after, [small, identifier, any, options]}, {erlang, start_timer, [edge, identifier, any]}, {erlang, start_timer, [thing, thing, any, options]},
         {erlang, cancel_timer, [identifier, options]}, {erlang, read_timer, [thing, options]}, {erlang, group_leader, [thing, thing]}, {erlang, group_leader, [identifier, identifier]},
         {erlang, port_command, [thing, iolist]}, {erlang, port_command, [identifier, iolist, options]}, {erlang, port_control, [identifier, small, iolist]}, {erlang, port_call, [thing, small, any]},
         {erlang, port_connect, [identifier, identifier]}, {erlang, port_info, [identifier, word]}, {erlang, port_info, [thing, thing]}, {erlang, port_set_data, [thing, any]},
         {erlang, open_port, [thing, options]}, {erlang, open_port, [{literal, {spawn_executable, "/nowhere"}}, options]},
         {erlang, alias, [options]}, {erlang, process_display, [thing, thing]}, {erlang, is_process_alive, [identifier]}, {erlang, exit_signal, [identifier, any]},
         {erlang, phash2, [identifier]}, {erlang, '<', [identifier, identifier]}, {erlang, '==', [identifier, identifier]}, {erlang, term_to_binary, [identifier]}, {erlang, element, [small, identifier]}];
calls(funs) ->
    [{erlang, fun_info, [closure]}, {erlang, fun_info, [closure, word]}, {erlang, fun_info, [thing, thing]}, {erlang, make_fun, [atom, atom, small]}, {erlang, make_fun, [thing, thing, thing]},
     {erlang, is_function, [closure, small]}, {erlang, is_function, [closure]}, {erlang, apply, [closure, list]}, {erlang, apply, [thing, list]}, {erlang, apply, [{literal, lists}, atom, list]},
     {erlang, apply, [{literal, erlang}, word, list]}, {erlang, apply, [thing, thing, thing]}, {erlang, spawn, [closure]}, {erlang, spawn, [thing]}, {erlang, spawn, [wrong, thing, thing]},
     {erlang, spawn_opt, [closure, options]}, {erlang, spawn_monitor, [thing]}, {erlang, spawn_monitor, [closure]}, {erlang, spawn_monitor, [wrong, thing, thing]}, {erlang, spawn_link, [thing]},
     {erlang, spawn_opt, [{literal, lists}, {literal, sort}, list, options]}, {erlang, spawn_request, [closure, wrong]}, {erlang, spawn_request, [thing, options]}, {erlang, hibernate, [wrong, thing, thing]}] ++
        [{lists, F, [closure, list]} || F <- [map, filter, foreach, any, all, flatmap, partition, takewhile, dropwhile, search, filtermap, sort, usort, splitwith, uniq]] ++
        [{lists, F, [closure, any, list]} || F <- [foldl, foldr, mapfoldl, mapfoldr, zipwith, merge]] ++
        [{maps, F, [closure, map]} || F <- [map, filter, filtermap, foreach, groups_from_list]] ++ [{maps, fold, [closure, any, map]}, {maps, merge_with, [closure, map, map]},
         {maps, update_with, [any, closure, map]}, {maps, update_with, [any, closure, any, map]}, {maps, intersect_with, [closure, map, map]}, {lists, keymap, [closure, small, tuples]},
         {lists, zipwith3, [closure, list, list, list]}, {lists, foldl, [closure, any, any]}, {erlang, '<', [closure, closure]}, {calls, name, [closure]}];
calls(shared_numbers) ->
    [{atomics, new, [small, options]}, {atomics, new, [wrong, thing]}, {counters, new, [small, options]}, {counters, new, [wrong, thing]}, {calls, atomic, [small, array_steps]},
     {calls, counter, [small, word, array_steps]}, {calls, persistent, [persistent_steps]}, {persistent_term, get, [any, any]}, {persistent_term, get, [thing]},
     {persistent_term, erase, [thing]}] ++
        [{atomics, F, [identifier, small]} || F <- [get]] ++ [{atomics, F, [thing, thing, thing]} || F <- [put, add, sub, add_get, sub_get, exchange]] ++
        [{counters, F, [thing, thing, thing]} || F <- [put, add, sub]] ++ [{atomics, info, [thing]}, {counters, info, [thing]}, {counters, get, [thing, thing]},
         {atomics, compare_exchange, [thing, thing, thing, thing]}];
calls(os) ->
    [{os, getenv, [chars]}, {os, getenv, [chars, any]}, {os, getenv, [thing]}, {calls, environment, [chars, chars]}, {calls, environment, [thing, thing]}, {os, unsetenv, [thing]},
     {os, find_executable, [chars]}, {os, find_executable, [path, chars]}, {os, putenv, [wrong, thing]}, {os, set_signal, [wrong, word]}, {os, set_signal, [{literal, sigusr1}, wrong]},
     {os, set_signal, [{literal, sigkill}, word]}, {os, cmd, [wrong]}, {os, cmd, [{literal, "true"}, thing]}, {init, get_argument, [thing]}, {application, get_env, [thing, thing]},
     {code, which, [atom]}, {code, lib_dir, [atom]}, {code, lib_dir, [thing]}, {code, is_loaded, [thing]}, {code, get_object_code, [wrong]},
     {zlib, crc32, [iolist]}, {zlib, compress, [iolist]}, {zlib, uncompress, [bin]}, {zlib, unzip, [bin]}, {zlib, gunzip, [bin]}, {zlib, inflate, [thing, iolist]}, {zlib, deflate, [thing, iolist, word]}];
calls(patterns) ->
    [{re, compile, [regex]}, {re, compile, [regex, re_options]}, {re, run, [subject, regex, {literal, [{match_limit, 20000}]}]},
     {re, run, [subject, regex, {literal, [unicode, report_errors, {match_limit, 20000}]}]},
     {re, run, [subject, regex, {literal, [caseless, {capture, all, binary}, {match_limit, 20000}]}]},
     {re, run, [subject, regex, {literal, [global, {capture, all, index}, {match_limit, 20000}]}]},
     {re, run, [subject, regex, {literal, [extended, multiline, dotall, {capture, all_names, list}, {match_limit, 20000}]}]},
     {re, replace, [subject, regex, {literal, <<"<&\\1\\2>">>}, {literal, [global, {match_limit, 20000}]}]}, {re, split, [subject, regex, {literal, [{match_limit, 20000}]}]},
     {calls, inspected, [regex]}];
calls(erlang) -> every(erlang, harmful());
%% Not what fills the memory where it is told large numbers.
calls(data) ->
    lists:append([every(M, [version, on_load, info, duplicate, seq, copy, copies, chars, pad, new, referenced_byte_size]) || M <- [lists, maps, binary, string, unicode, math, re, base64, proplists, queue, ordsets, gb_sets, gb_trees, orddict, sets, array, zlib,
                                        atomics, counters]]);
calls(emulator) ->
    every(ets, [i, all, fun2ms, info]) ++
        [C || {_, F, _} = C <- every(erts_debug, []), lists:member(F, [flat_size, size, size_shared, same, copy_shared])] ++
        [C || {_, F, _} = C <- every(erts_internal, []), lists:member(F, [cmp_term, map_to_tuple_keys, term_type, is_process_alive])] ++
        every(erl_eval, [function_name, init_ok | [F || {F, _} <- erl_eval:module_info(exports), F =/= expr]]) ++
        [{erts_internal, map_next, [small, map, word]}, {erl_scan, string, [chars]}, {erlang, match_spec_test, [thing, thing, word]}, {ets, match_spec_run, [list, thing]}, {ets, test_ms, [any, guards]}];

%% What the others leave out: what tells of the moment and of this process, of which the kind is
%% compared; what acts on the process that it is called in; and natives that are called by libraries
%% only, with arguments that are wrong.
calls(rest) ->
    [{calls, kind, [{literal, M}, {literal, F}]} || {M, Fs} <- [{erlang, [date, time, localtime, universaltime, timestamp, now, monotonic_time, system_time, time_offset, unique_integer, make_ref, node, nodes, self,
                                                                          registered, processes, ports, loaded, group_leader, get, get_keys, erase, md5_init, system_profile, system_monitor, get_cookie, is_alive]},
                                                                {os, [env, getpid, perf_counter, system_time, timestamp, type, version]}, {persistent_term, [info]}, {erl_ddll, [loaded_drivers]},
                                                                {erts_internal, [time_unit, perf_counter_unit, get_creation, no_aux_work_threads]}, {math, [pi]}],
                                                     F <- Fs] ++
        [{file, native_name_encoding, []}, {io, printable_range, []}, {error_logger, warning_map, []}] ++
        [{erlang, F, [thing]} || F <- [get, erase, get_keys, has_prepared_code_on_load, seq_trace_print, dt_put_tag, dt_get_tag_data, dt_restore_tag, dt_append_vm_tag_data, dt_prepend_vm_tag_data, call_on_load_function,
                                       finish_loading, dist_ctrl_get_data, dist_ctrl_get_data_notification]] ++
        [{erlang, F, [thing, thing]} || F <- [put, nodes, seq_trace_print, finish_after_on_load, dist_ctrl_get_opt, dist_ctrl_input_handler]] ++
        [{erlang, F, [thing, thing, thing]} || F <- [monitor_node, spawn_link, spawn, spawn_monitor, dist_ctrl_set_opt]] ++
        [{erlang, spawn_opt, [wrong, options]}, {erlang, spawn_opt, [closure, wrong]}, {erlang, spawn_opt, [thing, thing, thing, options]}, {erlang, spawn_request, [wrong, options]}, {erlang, hibernate, [thing, thing, wrong]},
         {erlang, delete_module, [wrong]}, {erlang, purge_module, [wrong]}, {erlang, halt, [{literal, 1.5}, thing]}, {erlang, halt, [{literal, {a}}]}, {erlang, setnode, [wrong, thing]}, {erlang, process_info, [identifier, wrong]},
         {erlang, load_module, [wrong, bin]}, {erlang, load_module, [{literal, nowhere}, bin]}, {erlang, prepare_loading, [{literal, nowhere}, bin]}, {erlang, is_builtin, [atom, atom, small]}, {erlang, apply, [thing, thing]},
         {erts_internal, prepare_loading, [thing, thing]}, {erts_internal, beamfile_chunk, [bin, chars]}, {erts_internal, beamfile_module_md5, [bin]}, {erts_internal, check_process_code, [wrong]},
         {erts_internal, port_info, [identifier, word]}, {erts_internal, port_close, [identifier]}, {erts_internal, port_command, [identifier, iolist, options]}, {erts_internal, port_control, [identifier, small, iolist]},
         {erts_internal, is_process_alive, [thing, thing]}, {erts_internal, is_system_process, [thing]}, {erts_internal, process_flag, [identifier, word, thing]},
         {erts_debug, get_internal_state, [wrong]}, {erts_debug, set_internal_state, [wrong, thing]}, {erts_debug, breakpoint, [thing, bool]},
         {erl_ddll, info, [thing, word]},
         {net_kernel, dflag_unicode_io, [identifier]}, {persistent_term, put, [key, any]}, {prim_file, internal_name2native, [chars]}, {prim_file, internal_native2name, [bin]},
         {ets, lookup_element, [thing, any, small]}, {lists, keyfind, [thing, thing, thing]}, {lists, keymember, [thing, thing, thing]}, {lists, keysearch, [thing, thing, thing]}, {lists, member, [thing, thing]},
         {lists, reverse, [thing, thing]}].

%% All that a module exports, with anything for arguments.
every(M, Without) ->
    {module, M} = code:ensure_loaded(M),
    [{M, F, lists:duplicate(A, thing)} || {F, A} <- lists:sort(M:module_info(exports)), F =/= module_info, F =/= behaviour_info, not lists:member(F, Without)].

%% Those of `erlang` that end the runtime, wait, print, change it for all, or tell what differs from
%% run to run.
harmful() ->
    [halt, display, display_nl, display_string, hibernate, now, date, time, localtime, universaltime, timestamp, monotonic_time, system_time, time_offset, unique_integer, make_ref,
     statistics, memory, system_info, system_flag, processes, ports, loaded, pre_loaded, registered, nodes, node, get_cookie, set_cookie, setnode, disconnect_node, monitor_node,
     spawn_link, spawn_opt, spawn_request, spawn, spawn_monitor, delete_module, purge_module, load_module, prepare_loading, finish_loading, finish_after_on_load, call_on_load_function,
     has_prepared_code_on_load, get_module_info, trace, trace_pattern, trace_info, trace_delivered, system_monitor, system_profile, process_display, process_info, garbage_collect, garbage_collect_message_area,
     group_leader, self, yield, gather_gc_info, get_keys, get, erase, put, alloc_info, alloc_sizes, dist_ctrl_get_data, dist_ctrl_input_handler, dist_ctrl_put_data, dist_get_stat, dist_ctrl_get_data_notification,
     dist_ctrl_set_opt, dist_ctrl_get_opt, send_nosuspend, crasher, dexit, dlink, dunlink, dsend, dmonitor_node, dgroup_leader, dsend_nosuspend, dt_get_tag, dt_get_tag_data, dt_put_tag, dt_restore_tag, dt_spread_tag,
     dt_append_vm_tag_data, dt_prepend_vm_tag_data, seq_trace, seq_trace_print, seq_trace_info, fun_to_list, process_flag, dmonitor_p, open_port, send_after, start_timer, gather_sched_wall_time_result,
     load_nif, suspend_process, resume_process, exit, md5_init, set_cpu_topology, format_cpu_topology, await_proc_exit, await_sched_wall_time_modifications, bump_reductions, dist_spawn_request, spawn_opt_request, fun_info].
