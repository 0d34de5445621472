%% Another node sends control messages with a term of each wrong type at each position, and with
%% bytes after a message that carries none. Checks which close the connection; after the others, a
%% message still arrives. @seconds 200
-module(control_messages_of_wrong_terms).
-export([main/0]).

%% Mandatory ones, monitors, senders, payloads of exits, numbers of unlinks; spawn, large
%% references, aliases.
-define(PASS, 16#34F5FBC bor (16#D bsl 32)).
-define(CACHE, 16#2000).
-define(FRAGMENTS, 16#800000).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Me = list_to_atom("wrong_terms" ++ os:getpid()),
    {ok, _} = net_kernel:start(Me, #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}),
    put(flags, ?PASS band (bnot (?CACHE bor ?FRAGMENTS))),
    put(socket, open(get(flags), "wrong")),
    P = pid(1),
    L = spawn(fun looper/0),
    T = {64, 0, 1, P, 0},
    trailing(P, L),
    %% Good ones, what follows them, and the places that are given a term of each wrong kind. Others
    %% make stock fail.
    [io:format("~w ~w ~w~n", [N, I, [K || {K, W} <- wrong(), ends(setelement(I, M, W), Payload)]])
     || {N, M, Payload, Places} <- [
        {link, {1, P, L}, none, [2, 3]}, {send, {2, '', L}, m, [2, 3]}, {exit, {3, P, L, normal}, none, [2, 3, 4]},
        {reg_send, {6, P, '', nobody_there}, m, [2, 3, 4]}, {group_leader, {7, P, L}, none, [2, 3]},
        {exit2, {8, P, L, normal}, none, [3, 4]}, {monitor, {19, P, L, ref(1)}, none, [2, 3]},
        {demonitor, {20, P, L, ref(1)}, none, [2, 3]}, {monitor_exit, {21, P, L, ref(1), normal}, none, [2, 3, 4, 5]},
        {send_sender, {22, P, L}, m, [2, 3]}, {send_sender_tt, {23, P, L, T}, m, [2, 3]}, {payload_exit, {24, P, L}, normal, [2, 3]},
        {payload_exit_tt, {25, P, L, T}, normal, [4]}, {payload_monitor_exit, {28, P, L, ref(1)}, normal, [2, 3, 4]},
        {spawn_request, {29, ref(1), P, P, {m, f, 0}, []}, [], [2, 4, 5]}, {spawn_reply, {31, ref(1), L, 0, P}, none, [2, 3, 4, 5]},
        {alias_send, {33, P, make_ref()}, m, [2, 3]}, {unlink_id, {35, 5, P, L}, none, [2, 3]}
     ], I <- Places],
    gen_tcp:close(get(socket)),
    ok = net_kernel:stop(),
    init:stop().

looper() -> receive stop -> ok; _ -> looper() end.

wrong() ->
    Other = binary_to_term(<<131, 88, 119, 3, "a@b", 0:32, 0:32, 1:32>>),
    OtherRef = binary_to_term(<<131, 90, 3:16, 119, 3, "a@b", 1:32, 1:32, 1:32, 1:32>>),
    Gone = spawn(fun() -> ok end),
    [{integer, 17}, {large, 1 bsl 70}, {atom, foo}, {nil, []}, {tuple, {}}, {local_pid, Gone}, {remote_pid, pid(2)},
     {other_pid, Other}, {old_pid, pid_of_old_life()}, {local_ref, make_ref()}, {other_ref, OtherRef}, {local_port, hd(erlang:ports())}].

%% Bytes behind what is whole.
trailing(P, L) ->
    Message = term_to_binary(m),
    Reason = term_to_binary(normal),
    [io:format("~w ~w~n", [N, [K || {K, B} <- behind(), ends(M, {raw, [F, B]})]])
     || {N, M, F} <- [
        {link, {1, P, L}, <<>>}, {exit, {3, P, L, normal}, <<>>}, {group_leader, {7, P, L}, <<>>}, {exit2, {8, P, L, normal}, <<>>},
        {monitor, {19, P, L, ref(9)}, <<>>}, {demonitor, {20, P, L, ref(9)}, <<>>}, {monitor_exit, {21, P, L, ref(9), normal}, <<>>},
        {send_sender, {22, P, L}, Message}, {reg_send, {6, P, '', nobody_there}, Message}, {payload_exit, {24, P, L}, Reason},
        {payload_exit2, {26, P, L}, Reason}, {payload_monitor_exit, {28, P, L, ref(9)}, Reason}, {spawn_reply, {31, ref(9), L, 0, P}, <<>>},
        {alias_send, {33, P, make_ref()}, Message}, {unlink_id, {35, 9, P, L}, <<>>}, {unlink_id_ack, {36, 9, P, L}, <<>>},
        {spawn_request, {29, ref(9), P, P, {m, f, 0}, []}, term_to_binary([])}]],
    [begin
        packet(get(socket), [control({22, P, self()}), term_to_binary(Sent), B]),
        io:format("~w ~w~n", [K, receive Got -> Got =:= Sent after 10000 -> none end])
     end || {K, B} <- behind(), Sent <- [short, lists:seq(1, 20000)]].

behind() -> [{nothing, <<>>}, {term, term_to_binary(a)}, {bytes, <<1, 2>>}, {no_version, <<97, 1>>}, {zero, <<0>>}].

%% Whether it ends the connection, which is then made anew.
ends(M, Payload) ->
    S = get(socket),
    packet(S, [control(M), case Payload of none -> <<>>; {raw, B} -> B; _ -> term_to_binary(Payload) end]),
    R = make_ref(),
    send(S, {22, pid(1), self()}, R),
    receive
        R -> false;
        {nodedown, _, _} ->
            gen_tcp:close(S),
            put(socket, open(get(flags), "wrong")),
            true
    after 10000 -> timeout
    end.

open(Flags, Name) ->
    Node = atom_to_list(node_name(Name)),
    put(evil, node_name(Name)),
    [Short, Host] = string:split(atom_to_list(node()), "@"),
    {port, Port, _} = erl_epmd:port_please(Short, Host),
    {ok, S} = gen_tcp:connect(Host, Port, [{active, false}, binary, {packet, 2}]),
    ok = gen_tcp:send(S, <<$N, Flags:64, 77:32, (length(Node)):16, (list_to_binary(Node))/binary>>),
    case gen_tcp:recv(S, 0, 5000) of
        {ok, <<"sok">>} -> opened(S);
        {ok, <<"salive">>} ->
            %% The one before isn't forgotten yet.
            ok = gen_tcp:send(S, <<"false">>),
            gen_tcp:close(S),
            open(Flags, Name)
    end.

opened(S) ->
    {ok, <<$N, _:64, Challenge:32, _:32, _/binary>>} = gen_tcp:recv(S, 0, 5000),
    Digest = fun(C) -> erlang:md5(["biscuit", integer_to_list(C)]) end,
    ok = gen_tcp:send(S, <<$r, 4711:32, (Digest(Challenge))/binary>>),
    {ok, <<$a, Ack:16/binary>>} = gen_tcp:recv(S, 0, 5000),
    Ack = Digest(4711),
    inet:setopts(S, [{packet, 4}]),
    receive {nodeup, _, _} -> ok after 5000 -> io:format("no nodeup~n") end,
    S.

packet(S, F) -> _ = gen_tcp:send(S, F).
control(T) -> <<112, (term_to_binary(T))/binary>>.
send(S, T, Msg) -> packet(S, [control(T), term_to_binary(Msg)]).

%% Things of the other node.
atom(A) -> B = atom_to_binary(A), <<119, (byte_size(B)), B/binary>>.
pid(N) -> binary_to_term(<<131, 88, (atom(get(evil)))/binary, N:32, 0:32, 77:32>>).
ref(N) -> binary_to_term(<<131, 90, 3:16, (atom(get(evil)))/binary, 77:32, N:32, 0:32, 0:32>>).
pid_of_old_life() ->
    <<131, 88, R/binary>> = ext_v(self()),
    At = byte_size(R) - 4,
    <<Front:At/binary, C:32>> = R,
    binary_to_term(<<131, 88, Front/binary, (C + 1):32>>).
ext_v(T) -> term_to_binary(T, [{minor_version, 2}]).
node_name(Name) ->
    [_, Host] = string:split(atom_to_list(node()), "@"),
    list_to_atom(Name ++ "@" ++ Host).
