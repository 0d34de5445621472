%% Calls natives that no other program calls, once or a few times. Results that vary from run to run
%% are printed by type only.
-module(rarely_called_natives).
-export([main/0]).

main() ->
    display(),
    [call(C) || C <- calls()],
    [kind(C) || C <- kinds()],
    tables(),
    [quiet(C) || C <- own()],
    bytes(),
    ok.

call({M, F, A}) ->
    io:format("~p:~p/~p ~p~n", [M, F, length(A), result(M, F, A)]).

%% What is of which type.
kind({M, F, A}) ->
    R = case result(M, F, A) of
        {_, _} = X -> element(1, X);
        X when is_integer(X) -> integer;
        X when is_list(X) -> list;
        X when is_map(X) -> map;
        X when is_binary(X) -> binary;
        X when is_tuple(X) -> {tuple, size(X)};
        X when is_reference(X) -> reference;
        X -> X
    end,
    io:format("~p:~p/~p ~p~n", [M, F, length(A), R]).

quiet({M, F, A}) -> catch apply(M, F, A).

result(M, F, A) ->
    try apply(M, F, A)
    catch C:R -> {C, R}
    end.

calls() ->
    Math1 = [acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, erf, erfc, exp, floor, log10, sinh, tan, tanh],
    [{math, F, [X]} || F <- Math1, X <- [0.5, 1, 2.0, -3, a]] ++
    [{math, F, [X, Y]} || F <- [atan2, fmod, pow], X <- [2, -0.5], Y <- [3.0, 0, x]] ++
    [{binary, decode_unsigned, [<<1, 2, 3>>, E]} || E <- [big, little, x]] ++
    [{binary, encode_unsigned, [16#010203, E]} || E <- [big, little, x]] ++
    [{erlang, F, A} || {F, A} <- [
        {'-', [3]}, {'-', [1.5]}, {'-', [a]}, {append, [[1], [2]]}, {append, [1, 2]}, {subtract, [[1, 2, 1], [1]]},
        {adler32_combine, [1, 2, 3]}, {adler32_combine, [1, 2, x]}, {crc32_combine, [1, 2, 3]}, {crc32_combine, [-1, 2, 3]},
        {binary_part, [<<"abcdef">>, {1, 3}]}, {binary_part, [<<"abc">>, {1, 3}]},
        {binary_to_existing_atom, [<<"ok">>, utf8]}, {binary_to_existing_atom, [<<"no such atom">>, latin1]},
        {binary_to_float, [<<"1.5e3">>]}, {binary_to_float, [<<"1">>]}, {'bsl', [1, 70]}, {'bsl', [1.0, 2]}, {'bsr', [-5, 1]},
        {'bsr', [x, 1]}, {check_old_code, [lists]}, {check_old_code, [1]}, {delete_element, [2, {a, b, c}]},
        {delete_element, [4, {a, b, c}]}, {float_to_binary, [1.5]}, {float_to_binary, [1]}, {is_bitstring, [<<1:3>>]},
        {is_float, [1.0]}, {is_map, [#{}]}, {is_number, [a]}, {is_port, [a]}, {is_record, [{a, 1}, a]}, {is_record, [{a, 1}, a, 2]},
        {is_record, [{a, 1}, 1, 2]}, {list_to_ref, ["x"]}, {list_to_ref, ["#Ref<0.1.2.3>"]}, {make_tuple, [3, x, [{2, y}, {2, z}]]},
        {make_tuple, [3, x, [{4, y}]]}, {match_spec_test, [{1, 2}, [{{'$1', '_'}, [], ['$1']}], table]},
        {match_spec_test, [[a], [{['$1'], [{'=:=', '$1', a}], [true]}], trace]}, {match_spec_test, [x, y, table]},
        {nif_error, [why, [1]]}, {'xor', [true, false]}, {'xor', [true, 1]}, {time_offset, [x]}, {spawn_request_abandon, [x]},
        {exit_signal, [x, y]}, {external_size, [a, [{minor_version, 0}]]}, {external_size, [a, [x]]}, {dist_get_stat, [x]},
        {dist_ctrl_get_data, [x]}, {dist_ctrl_get_data_notification, [x]}, {dist_ctrl_get_opt, [x, y]},
        {dist_ctrl_input_handler, [x, y]}, {dist_ctrl_put_data, [x, y]}, {dist_ctrl_set_opt, [x, y, z]},
        {dt_append_vm_tag_data, [x]}, {dt_get_tag, []}, {dt_get_tag_data, []}, {dt_prepend_vm_tag_data, [x]}, {dt_put_tag, [x]}]] ++
    [{error_logger, warning_map, []}, {maps, get, [a, #{a => 1}]}, {maps, get, [b, #{a => 1}]}, {maps, get, [a, b]},
     {maps, is_key, [a, #{a => 1}]}, {maps, is_key, [a, b]}, {binary, first, [<<7, 8>>]}, {binary, first, [<<>>]},
     {erts_debug, copy_shared, [{a, [b]}, false]}, {erts_debug, copy_shared, [x, y]},
     {erts_debug, dirty, [normal, x, y]}, {erts_debug, dirty_cpu, [x, y]},
     {erts_internal, cmp_term, [1, 1.0]}, {erts_internal, cmp_term, [b, a]}, {erts_internal, counters_info, [x]},
     {erts_internal, counters_put, [x, 1, 2]}, {erts_internal, is_process_alive, [x, y]},
     {erts_internal, map_hashmap_children, [#{}]}, {erts_internal, map_to_tuple_keys, [#{b => 1, a => 2}]},
     {erts_internal, map_to_tuple_keys, [x]}, {erts_internal, new_connection, [x]},
     {erts_internal, abort_pending_connection, [x, y]}, {erts_internal, port_call, [x, y, z]},
     {erts_internal, request_system_task, [x, y, z, w]}] ++
    [{erts_internal, term_type, [T]} || T <- [1, 1 bsl 70, 1.5, a, [], [1], {}, #{}, <<1>>, <<1:3>>, self(), make_ref(), fun() -> ok end]] ++
    [{ets, F, A} || {F, A} <- [{is_compiled_ms, [x]}, {match, [x]}, {match_object, ['$end_of_table']}, {select_reverse, [x]}, {select_reverse, ['$end_of_table']}]] ++
    [{erl_ddll, F, A} || {F, A} <- [{info, [x, y]}, {try_unload, [x, []]}]] ++
    [{prim_file, F, A} || {F, A} <- [{internal_normalize_utf8, [<<"a">>]}]] ++
    [{os, set_signal, [x, y]}, {os, set_signal, [sigusr2, default]}].

kinds() ->
    [{erlang, now, []}, {erlang, time_offset, [second]}, {erts_internal, get_creation, []}, {erts_internal, perf_counter_unit, []},
     {os, env, []}, {os, perf_counter, []}, {persistent_term, info, []}, {erts_internal, erase_persistent_terms, []},
     {re, version, []}, {prim_net, nif_command, [x]},
     {prim_net, nif_get_adapters_addresses, [#{}]}, {prim_net, nif_get_interface_info, [#{}]}, {prim_net, nif_get_ip_address_table, [#{}]},
     {erts_debug, instructions, []}, {erlang, get_keys, []}, {erlang, get_keys, [x]},
     {erlang, spawn_request_abandon, [make_ref()]}, {erlang, exit_signal, [self(), kill_not]}].

tables() ->
    T = ets:new(t, [ordered_set, named_table, public]),
    ets:insert(T, [{N, N * N} || N <- lists:seq(1, 10)]),
    {L, C} = ets:match(T, {'$1', '_'}, 4),
    io:format("~p ~p~n", [L, element(1, ets:match(C))]),
    {O, D} = ets:match_object(T, {'_', '_'}, 4),
    io:format("~p ~p~n", [O, element(1, ets:match_object(D))]),
    Spec = [{{'$1', '$2'}, [{'>', '$1', 4}], ['$2']}],
    {R, E} = ets:select_reverse(T, Spec, 3),
    io:format("~p ~p ~p~n", [R, element(1, ets:select_reverse(E)), ets:select_reverse(T, Spec)]),
    io:format("~p ~p ~p~n", [ets:slot(T, 3), ets:slot(T, 10), result(ets, slot, [T, 11])]),
    io:format("~p ~p~n", [ets:setopts(T, {heir, none}), result(ets, setopts, [T, x])]),
    io:format("~p ~p~n", [ets:rename(T, other), ets:info(other, size)]),
    true = ets:is_compiled_ms(ets:match_spec_compile(Spec)).

%% Written at once, not by the group leader.
display() ->
    erlang:display_string("to the terminal"),
    erlang:display_nl(),
    erts_debug:display({a, "b"}),
    timer:sleep(100).

%% Those of this runtime, those that only their module calls, and those that tell what differs.
own() ->
    [{erts_debug, disassemble, [x]}, {erts_debug, disassemble, [{lists, reverse, 1}]}, {erl_ddll, format_error_int, [inconsistent]},
     {erl_ddll, loaded_drivers, []}, {prim_file, file_desc_to_ref_nif, [x]}, {prim_file, get_device_cwd_nif, [1]},
     {prim_file, delayed_close_nif, [x]}, {crypto, ng_crypto_update_nif, [x, y, z]}, {prim_socket, nif_command, [x]},
     {prim_socket, nif_ioctl, [x, 1, 2, 3]}, {prim_socket, nif_sendfile, [x]}, {prim_socket, nif_supports, []}, {prim_net, nif_info, []},
     {zlib, clearStash_nif, [x]}, {zlib, setStash_nif, [x, y]}, {zlib, set_controller_nif, [x, y]},
     {zlib, crc32_nif, [x]},
     {purlin, limits, []}, {purlin, limit, [x]}, {purlin, set_limit, [x, 1]}, {purlin, regions, [x]}, {purlin, sharing, [self()]},
     {purlin, watch_writes, [x, y]}, {purlin, normal, [x]}, {purlin, dirty_cpu, [x]}, {purlin, dirty_io, [x]}].

bytes() ->
    Z = zlib:open(),
    ok = zlib:setBufSize(Z, 100),
    io:format("~p~n", [zlib:getBufSize(Z)]),
    ok = zlib:deflateInit(Z),
    Id = zlib:deflateSetDictionary(Z, <<"the words of a dictionary">>),
    A = zlib:deflate(Z, <<"the words">>),
    ok = zlib:deflateParams(Z, best_speed, default),
    B = zlib:deflate(Z, <<" of text">>, finish),
    ok = zlib:deflateReset(Z),
    ok = zlib:set_controlling_process(Z, self()),
    I = zlib:open(),
    ok = zlib:inflateInit(I),
    Data = iolist_to_binary([A, B]),
    {error, {need_dictionary, Id, _} = N} = {error, try zlib:inflate(I, Data) catch error:{need_dictionary, Y} -> {need_dictionary, Y, x} end},
    ok = zlib:inflateSetDictionary(I, <<"the words of a dictionary">>),
    io:format("~p ~p~n", [element(1, N), iolist_to_binary(zlib:inflate(I, []))]),
    io:format("~p~n", [iolist_to_binary(zlib:inflateGetDictionary(I))]),
    io:format("~p ~p~n", [result(zlib, crc32, [Z]), result(zlib, crc32, [Z, <<"a">>])]).
