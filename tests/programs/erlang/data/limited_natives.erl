%% Checks natives that stop at a limit and continue: searches and conversions under a low limit, the
%% storage of binaries, other encodings of Unicode, stack traces of depth 0, and what follows the
%% signal that ends a process. @stress
%% The name is short: with longer ones stock ends with signal 11 here.
-module(limited_natives).
-export([main/0, thrown/1]).

main() ->
    logger:set_primary_config(level, error),
    erts_debug:set_internal_state(available_internal_state, true),
    io:format("~p~n", [searches()]),
    io:format("~p~n", [tl([erts_debug:set_internal_state(binary_loop_limit, N) || N <- [100, 10]])]),
    io:format("~p~n", [searches()]),
    io:format("~p~n", [erts_debug:set_internal_state(binary_loop_limit, default)]),
    io:format("~p~n", [conversions()]),
    io:format("~p~n", [tl([erts_debug:set_internal_state(unicode_loop_limit, N) || N <- [100, 10]])]),
    io:format("~p~n", [conversions()]),
    io:format("~p~n", [erts_debug:set_internal_state(unicode_loop_limit, default)]),
    L = binary:copy(<<"abc">>, 30),
    Info = fun(B) -> erts_debug:get_internal_state({binary_info, B}) end,
    {refc_binary, 90, {binary, 90}, _} = Info(L),
    io:format("~p ~p~n", [Info(<<"short">>), element(1, Info(binary:part(L, 1, 70)))]),
    {refc_binary, 30, {binary, 30}, _} = Info(<< <<X>> || <<X:24>> <= L >>),
    {refc_binary, 30, {binary, 256}, _} = Info(<< <<X>> || <<X>> <= L, X =:= $b, X < $c, byte_size(L) > 0 >>),
    Set = fun(K, V) -> try erts_debug:set_internal_state(K, V) catch _:R -> R end end,
    io:format("~p~n", [[Set(K, V) || {K, V} <- [{mbuf, "a fragment"}, {mbuf, {[1.5], <<0:900>>}}, {proc_sig_buffers, true}, {proc_sig_buffers, 1}]]]),
    on_heap = process_flag(message_queue_data, off_heap),
    io:format("~p~n", [Set(proc_sig_buffers, true)]),
    Beside = erts_debug:set_internal_state(colliding_names, {limited_natives, 5}),
    io:format("~p ~p~n", [length(lists:usort(Beside)), [ets:new(N, [named_table]) =:= N || N <- [limited_natives | Beside], ets:info(N) =:= undefined] =/= []]),
    io:format("~p~n", [[is_atom(erts_debug:get_internal_state({atom, N})) || N <- [0, 1, 1000, erlang:system_info(atom_count) + 5]]]),
    io:format("~p~n", [try erts_debug:get_internal_state({atom, -1}) catch error:E -> E end]),
    erts_debug:set_internal_state(available_internal_state, false),
    [io:format("~p~n", [encoded(E)]) || E <- [utf16, {utf16, big}, {utf16, little}, utf32, {utf32, little}, nonsense]],
    Old = erlang:system_flag(backtrace_depth, 0),
    Traces = [try ?MODULE:thrown(N) of _ -> none catch _:_:St -> [{M, F, A} || {M, F, A, _} <- St] end || N <- [1, 2, 3, 4]],
    erlang:system_flag(backtrace_depth, Old),
    io:format("~p~n", [Traces]),
    Reasons = [after_kill() || _ <- lists:seq(1, 200)],
    io:format("~p~n", [lists:usort(Reasons)]).

searches() ->
    B = binary:copy(<<"one, two, three; ">>, 5),
    [binary:match(B, <<"three">>), binary:match(B, [<<"two">>, <<"three">>], [{scope, {10, 40}}]),
     binary:matches(B, <<"o">>), binary:matches(B, [<<", ">>, <<";">>], [{scope, {3, 30}}]),
     binary:split(B, <<"; ">>), binary:split(B, [<<", ">>, <<"; ">>], [global, trim]),
     binary:copy(B), binary:copy(<<"xy">>, 9),
     binary:longest_common_prefix([B, <<"one, two, thirty or more">>]), binary:longest_common_suffix([B, <<"a longer three; ">>]),
     byte_size(B),
     [catch element(1, element(2, (catch F()))) || F <- [fun() -> binary:match(B, <<>>) end,
         fun() -> binary:match(B, <<"x">>, [{scope, {0, 1000}}]) end, fun() -> binary:split(B, []) end,
         fun() -> binary:copy(B, -1) end]]].

conversions() ->
    D = ["some text: ", <<"日本語"/utf8>>, [16#e9, [<<"nested">>], $x] | <<"the end">>],
    [unicode:characters_to_binary(D), unicode:characters_to_list(D), unicode:characters_to_list(<<"latin one, ", 233>>, latin1),
     unicode:characters_to_binary([<<"some bytes, then ">>, 16#110000, "x"]), unicode:characters_to_list([<<"broken off here ", 16#E6>>]),
     catch element(1, element(2, (catch unicode:characters_to_list([<<"some text">>, atom]))))].

encoded(E) ->
    try unicode:characters_to_binary("aé日😀", unicode, E) of
        B -> {E, B, unicode:characters_to_list(B, E), unicode:characters_to_binary([B], E)}
    catch C:R -> {E, C, R, catch element(1, element(2, (catch unicode:characters_to_list(<<"abc">>, E))))}
    end.

thrown(1) -> throw(x);
thrown(2) -> [hd(element(N, {[]})) || N <- [1]];
thrown(3) -> [lists:map(N, [a]) || N <- [1]];
thrown(4) -> [?MODULE:no_such_function(N) || N <- [1]].

after_kill() ->
    P = spawn(fun() -> receive stop -> ok end end),
    exit(P, kill),
    R = monitor(process, P),
    receive {'DOWN', R, process, P, Why} -> Why end.
