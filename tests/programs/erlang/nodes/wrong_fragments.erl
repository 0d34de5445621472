%% Another node sends invalid packets: missing, repeated, truncated or unrelated fragments, atoms
%% that are not in the cache, wrong lengths and numbers. Checks which close the connection, and what
%% was delivered before. @seconds 200
-module(wrong_fragments).
-export([main/0]).

%% Mandatory ones, monitors, senders, payloads of exits, numbers of unlinks; spawn, large
%% references, aliases.
-define(PASS, 16#34F5FBC bor (16#D bsl 32)).
-define(CACHE, 16#2000).
-define(FRAGMENTS, 16#800000).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Me = list_to_atom("wrong_fragments" ++ os:getpid()),
    {ok, _} = net_kernel:start(Me, #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    application:set_env(kernel, dist_auto_connect, never),
    net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    Plain = ?PASS band (bnot (?CACHE bor ?FRAGMENTS)),
    [io:format("~w: ~0p~n", [N, tried(case K of header -> Plain bor ?CACHE; _ -> Plain bor ?CACHE bor ?FRAGMENTS end, Fs)]) || {K, N, Fs} <- cases()],
    ok = net_kernel:stop(),
    init:stop().

%% What was delivered, and whether the connection stays; a good message shows it.
tried(Flags, Fs) ->
    S = open(Flags, "frags"),
    [packet(S, F) || F <- Fs(self(), pid(1))],
    R = make_ref(),
    packet(S, [<<131, 68, 0>>, ext({22, pid(1), self()}), ext(R)]),
    Got = got(R, []),
    gen_tcp:close(S),
    case lists:last(Got) of ended -> ok; _ -> receive {nodedown, _, _} -> ok after 5000 -> io:format("no nodedown~n") end end,
    Got.

got(R, Got) ->
    receive
        R -> lists:reverse([stays | Got]);
        {nodedown, _, _} -> lists:reverse([ended | Got]);
        M -> got(R, [M | Got])
    after 5000 -> lists:reverse([timeout | Got])
    end.

%% Fragments out of order, sequence 0, none or very many fragments left, and further fragments that
%% are cut make stock's emulator fail, so they aren't here.
cases() ->
    C = fun(To, From) -> [<<104, 3, 97, 22>>, ext(From), ext(To)] end,
    M = ext({a_message, lists:seq(1, 30)}),
    <<M1:20/binary, M2:20/binary, M3/binary>> = M,
    First = fun(Seq, Left) -> fun(T, F) -> [<<131, 69, Seq:64, Left:64, 0>>, C(T, F), M1] end end,
    More = fun(Seq, At, B) -> fun(_, _) -> [<<131, 70, Seq:64, At:64>>, B] end end,
    Raw = fun(B) -> fun(_, _) -> B end end,
    Head = fun(H, Msg) -> fun(T, F) -> [<<131, 68>>, H, C(T, F), Msg] end end,
    All = fun(Fs) -> fun(T, F) -> [X(T, F) || X <- Fs] end end,
    [{fragments, N, All(Fs)} || {N, Fs} <- [
        {good, [First(1, 3), More(1, 2, M2), More(1, 1, M3)]},
        {first_only, [First(1, 3)]},
        {last_missing, [First(1, 3), More(1, 2, M2)]},
        {unknown, [More(5, 1, M3)]},
        {unknown_among_others, [First(1, 3), More(5, 2, M2)]},
        {sequence_again, [First(1, 2), More(1, 1, [M2, M3]), First(1, 2), More(1, 1, [M2, M3])]},
        {first_twice, [First(1, 3), First(1, 3)]},
        {first_of_another, [First(1, 3), First(2, 3), More(2, 2, M2), More(1, 2, M2), More(1, 1, M3), More(2, 1, M3)]},
        {sequence_largest, [First((1 bsl 64) - 1, 2), More((1 bsl 64) - 1, 1, [M2, M3])]},
        {sequence_of_process, [First(77 bsl 32, 2), More(77 bsl 32, 1, [M2, M3])]},
        {single, [fun(T, F) -> [<<131, 69, 1:64, 1:64, 0>>, C(T, F), M] end]},
        {empty_more, [First(1, 4), More(1, 3, <<>>), More(1, 2, M2), More(1, 1, M3)]},
        {empty_last, [First(1, 3), More(1, 2, [M2, M3]), More(1, 1, <<>>)]},
        {all_in_first, [fun(T, F) -> [<<131, 69, 1:64, 2:64, 0>>, C(T, F), M] end, More(1, 1, <<>>)]},
        {too_much, [First(1, 3), More(1, 2, [M2, M3]), More(1, 1, <<1, 2, 3>>)]},
        {too_little, [First(1, 2), More(1, 1, M2)]},
        {bad_term, [First(1, 2), More(1, 1, <<255, 255, 255>>)]},
        {control_cut, [fun(T, _) -> [<<131, 69, 1:64, 2:64, 0, 104, 3, 97, 22>>, binary:part(ext(T), 0, 5)] end, More(1, 1, M)]},
        {control_in_second, [fun(_, _) -> <<131, 69, 1:64, 2:64, 0>> end, fun(T, F) -> [<<131, 70, 1:64, 1:64>>, C(T, F), M] end]},
        {control_split, [fun(_, _) -> <<131, 69, 1:64, 2:64, 0, 104, 3>> end, fun(T, F) -> [<<131, 70, 1:64, 1:64, 97, 22>>, ext(F), ext(T), M] end]},
        {bad_control, [fun(_, _) -> <<131, 69, 1:64, 2:64, 0, 255, 255, 255>> end, More(1, 1, M)]},
        {unknown_control, [fun(T, F) -> [<<131, 69, 1:64, 2:64, 0>>, ext({99, F, T}), M1] end, More(1, 1, [M2, M3])]},
        {dead_receiver, [fun(_, F) -> [<<131, 69, 1:64, 2:64, 0>>, C(dead(), F), M1] end, More(1, 1, [M2, M3])]},
        {dead_receiver_of_bad_term, [fun(_, F) -> [<<131, 69, 1:64, 2:64, 0>>, C(dead(), F), M1] end, More(1, 1, <<255>>)]},
        {version_in_payload, [fun(T, F) -> [<<131, 69, 1:64, 2:64, 0>>, C(T, F), 131, M1] end, More(1, 1, [M2, M3])]},
        {atoms, [fun(T, F) -> [<<131, 69, 1:64, 2:64, 1, 8, 5, 5, "other">>, C(T, F), <<104, 2, 82>>] end, More(1, 1, <<0, 97, 6>>)]},
        {atom_index, [fun(T, F) -> [<<131, 69, 1:64, 2:64, 1, 8, 5, 5, "other">>, C(T, F), <<104, 2, 82>>] end, More(1, 1, <<1, 97, 6>>)]},
        {atoms_in_more, [First(1, 2), fun(_, _) -> [<<131, 70, 1:64, 1:64, 1, 8, 5, 5, "other">>, M2, M3] end]},
        {unset_atom, [fun(T, F) -> [<<131, 69, 1:64, 2:64, 1, 0, 200>>, C(T, F), <<82, 0>>] end, More(1, 1, <<>>)]},
        {cut_head1, [Raw(<<131, 69>>)]}, {cut_head2, [Raw(<<131, 69, 1:64>>)]}, {cut_head3, [Raw(<<131, 69, 1:64, 2:56>>)]}, {cut_head4, [Raw(<<131, 69, 1:64, 2:64>>)]},
        {cut_head5, [Raw(<<131, 69, 1:64, 2:64, 1>>)]}, {cut_head6, [Raw(<<131, 69, 1:64, 2:64, 1, 8>>)]}, {no_body, [Raw(<<131, 69, 1:64, 1:64, 0>>)]}, {no_body2, [Raw(<<131, 69, 1:64, 2:64, 0>>)]},
        {cut_more1, [Raw(<<131, 70>>)]}, {no_more_body, [First(1, 2), Raw(<<131, 70, 1:64, 1:64>>)]},
        {kind, [Raw(<<131, 71, 1:64, 1:64, 0>>)]}, {kind0, [Raw(<<131, 0>>)]}, {kind67, [Raw(<<131, 67, 0>>)]}, {version, [Raw(<<130, 68, 0>>)]}, {pass_through, [Raw([<<112>>, term_to_binary({99})])]}, {one, [Raw(<<131>>)]}, {nothing, [Raw(<<>>)]}
     ]] ++
    [{header, N, All(Fs)} || {N, Fs} <- [
        {h_good, [Head(<<1, 8, 5, 5, "other">>, <<82, 0>>), Head(<<1, 0, 5>>, <<82, 0>>)]},
        {h_unset, [Head(<<1, 0, 5>>, <<82, 0>>)]}, {h_unset_unused, [Head(<<1, 0, 5>>, <<97, 1>>)]}, {h_unset_segment, [Head(<<1, 8, 5, 5, "other">>, <<82, 0>>), Head(<<1, 1, 5>>, <<82, 0>>)]},
        {h_index, [Head(<<0>>, <<82, 0>>)]}, {h_index_control, [fun(T, _) -> [<<131, 68, 0>>, <<104, 3, 97, 22, 82, 0>>, ext(T), <<97, 1>>] end]}, {h_index1, [Head(<<1, 8, 5, 5, "other">>, <<82, 1>>)]}, {h_index255, [Head(<<1, 8, 5, 5, "other">>, <<82, 255>>)]},
        {h_cut1, [Raw(<<131, 68>>)]}, {h_cut2, [Raw(<<131, 68, 1>>)]}, {h_cut3, [Raw(<<131, 68, 1, 8>>)]}, {h_cut4, [Raw(<<131, 68, 1, 8, 5>>)]}, {h_cut5, [Raw(<<131, 68, 1, 8, 5, 5, "oth">>)]}, {h_no_control, [Raw(<<131, 68, 0>>)]},
        {h_no_control1, [Raw(<<131, 68, 1, 8, 5, 5, "other">>)]}, {h_many_cut, [Raw(<<131, 68, 255, 0:1024>>)]}, {h_long, [Head(<<1, 16#18, 5, 5:16, "other">>, <<82, 0>>)]}, {h_long_cut, [Raw(<<131, 68, 1, 16#18, 5, 5>>)]},
        {h_long_lies, [Head(<<1, 16#18, 5, 60000:16, "other">>, <<82, 0>>)]}, {h_too_long_atom, [Head([<<1, 16#18, 5, 300:16>>, binary:copy(<<"a">>, 300)], <<82, 0>>)]}, {h_too_many_characters, [Head([<<1, 16#18, 5, 1024:16>>, binary:copy(<<"é"/utf8>>, 512)], <<82, 0>>)]},
        {h_255_characters, [Head([<<1, 16#18, 5, 510:16>>, binary:copy(<<"é"/utf8>>, 255)], <<82, 0>>)]}, {h_no_utf8, [Head(<<1, 8, 5, 2, 255, 254>>, <<82, 0>>)]}, {h_latin1, [Head(<<1, 8, 5, 1, 233>>, <<82, 0>>)]},
        {h_cut_utf8, [Head(<<1, 8, 5, 1, 195>>, <<82, 0>>)]}, {h_surrogate, [Head(<<1, 8, 5, 3, 16#ED, 16#A0, 16#80>>, <<82, 0>>)]}, {h_overlong, [Head(<<1, 8, 5, 2, 16#C0, 16#80>>, <<82, 0>>)]}, {h_empty_atom, [Head(<<1, 8, 5, 0>>, <<82, 0>>)]},
        {h_flags_beyond, [Head(<<1, 16#F8, 5, 5:16, "other">>, <<82, 0>>)]}, {h_same_slot, [Head(<<2, 16#88, 0, 5, 1, "a", 5, 1, "b">>, <<104, 2, 82, 0, 82, 1>>), Head(<<1, 0, 5>>, <<82, 0>>)]},
        {h_trailing, [Head(<<0>>, <<97, 1, 97, 2>>)]}, {h_fragment, [Raw(<<131, 69, 1:64, 1:64, 0>>)]}, {h_more, [Raw(<<131, 70, 1:64, 1:64>>)]}, {h_version_in_control, [fun(T, F) -> [<<131, 68, 0, 131>>, C(T, F), <<97, 1>>] end]},
        {h_cut_control, [Raw(<<131, 68, 0, 104, 3, 97, 22>>)]}, {h_no_payload, [fun(T, F) -> [<<131, 68, 0>>, C(T, F)] end]}, {h_bad_payload, [Head(<<0>>, <<255>>)]}, {h_cut_payload, [Head(<<0>>, <<104, 2, 97, 1>>)]}, {h_lying_list, [Head(<<0>>, <<108, 255, 255, 255, 255, 106>>)]},
        {h_lying_binary, [Head(<<0>>, <<109, 255, 255, 255, 255, 1>>)]}, {h_lying_tuple, [Head(<<0>>, <<105, 255, 255, 255, 255, 106>>)]}, {h_lying_map, [Head(<<0>>, <<116, 255, 255, 255, 255, 106>>)]}, {h_pass_through, [fun(T, F) -> [<<112>>, term_to_binary({22, F, T}), term_to_binary(x)] end]}
     ]].

dead() -> {P, M} = spawn_monitor(fun() -> ok end), receive {'DOWN', M, _, _, _} -> P end.
say(A, B) -> io:format("~p: ~p~n", [A, B]).

%% The handshake, as the node that asks for the connection.

node_name(Name) ->
    [_, Host] = string:split(atom_to_list(node()), "@"),
    list_to_atom(Name ++ "@" ++ Host).

open(Flags, Name) ->
    Node = atom_to_list(node_name(Name)),
    put(evil, node_name(Name)),
    [Short, Host] = string:split(atom_to_list(node()), "@"),
    {port, Port, _} = erl_epmd:port_please(Short, Host),
    {ok, S} = gen_tcp:connect(Host, Port, [{active, false}, binary, {packet, 2}]),
    ok = gen_tcp:send(S, <<$N, Flags:64, 77:32, (length(Node)):16, (list_to_binary(Node))/binary>>),
    case gen_tcp:recv(S, 0, 5000) of
        {ok, <<"sok">>} -> opened(S);
        _ ->
            catch gen_tcp:send(S, <<"false">>),
            gen_tcp:close(S),
            receive after 20 -> ok end,
            open(Flags, Name)
    end.

opened(S) ->
    {ok, <<$N, _:64, Challenge:32, _:32, _/binary>>} = gen_tcp:recv(S, 0, 5000),
    Digest = fun(C) -> erlang:md5(["biscuit", integer_to_list(C)]) end,
    ok = gen_tcp:send(S, <<$r, 4711:32, (Digest(Challenge))/binary>>),
    {ok, <<$a, Ack:16/binary>>} = gen_tcp:recv(S, 0, 5000),
    Ack = Digest(4711),
    inet:setopts(S, [{packet, 4}]),
    receive {nodeup, _, _} -> ok after 5000 -> say(no, nodeup) end,
    S.

packet(S, F) -> _ = gen_tcp:send(S, F).

%% Things of the other node.
atom(A) -> B = atom_to_binary(A), <<119, (byte_size(B)), B/binary>>.
pid(N) -> binary_to_term(<<131, 88, (atom(get(evil)))/binary, N:32, 0:32, 77:32>>).
ext(T) -> <<131, B/binary>> = term_to_binary(T, [{minor_version, 2}]), B.
