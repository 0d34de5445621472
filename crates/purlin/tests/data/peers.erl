%% Two nodes that know the cookie begin messages which they don't end, of so many MiB.
-module(peers).
-export([start/0]).

-define(FLAGS, (16#34F5FBC bor (16#D bsl 32) bor 16#2000 bor 16#800000)).

start() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("peers" ++ os:getpid()), #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    application:set_env(kernel, dist_auto_connect, never),
    net_kernel:monitor_nodes(true, #{node_type => all}),
    [begin
         [A, B] = [{open(Name), Name, M} || {Name, M} <- [{"first", First}, {"second", Second}]],
         [Begin(S, M) || {S, _, M} <- [A, B]],
         io:format("~s ~s~n", [state(N) || {_, N, _} <- [A, B]]),
         [begin gen_tcp:close(S), gone(N) end || {S, N, _} <- [A, B]]
     end || Begin <- [fun fragments/2, fun packet/2, fun mixed/2], {First, Second} <- [{80, 80}, {200, 100}, {150, 1}]],
    init:stop().

%% Messages of 10 MiB, as fragments without the last.
fragments(S, M) ->
    inet:setopts(S, [{packet, 4}]),
    Part = binary:copy(<<1>>, 1 bsl 20),
    %% The control message is whole in the first fragment.
    <<131, Control/binary>> = term_to_binary({2, '', self()}),
    [begin
         At = (M - N) rem 10,
         I = (M - N) div 10,
         send(S, case At of
                     0 -> [<<131, 69, I:64, 11:64, 0>>, Control, Part];
                     _ -> [<<131, 70, I:64, (11 - At):64>>, Part]
                 end)
     end || N <- lists:seq(M, 1, -1)],
    settle(S).

%% One packet of 256 MiB, which is not whole.
packet(S, M) ->
    inet:setopts(S, [{packet, raw}]),
    Part = binary:copy(<<1>>, 1 bsl 20),
    send(S, <<16#10000000:32, 131, 68, 0>>),
    [send(S, Part) || _ <- lists:seq(1, M)],
    settle(S).

mixed(S, M) when M > 100 -> fragments(S, M);
mixed(S, M) -> packet(S, M).

send(S, B) -> _ = gen_tcp:send(S, B).

%% Until the other side has read all, or has closed.
settle(S) ->
    case inet:getstat(S, [send_pend]) of
        {ok, [{send_pend, N}]} when N > 0 -> receive after 20 -> settle(S) end;
        _ -> receive after 500 -> ok end
    end.

state(Name) ->
    case lists:member(node_name(Name), nodes(hidden)) of
        true -> up;
        false -> down
    end.

gone(Name) ->
    Node = node_name(Name),
    receive {nodedown, Node, _} -> ok after 5000 -> exit(Name) end.

node_name(Name) ->
    [_, Host] = string:split(atom_to_list(node()), "@"),
    list_to_atom(Name ++ "@" ++ Host).

%% The handshake, as the node that asks for the connection; once more where the kernel's process has not heard yet that the one before
%% is gone, of which others are told sooner.
open(Name) ->
    case shake(Name) of
        alive -> receive after 100 -> open(Name) end;
        S -> S
    end.

shake(Name) ->
    Node = atom_to_list(node_name(Name)),
    [Short, Host] = string:split(atom_to_list(node()), "@"),
    {port, Port, _} = erl_epmd:port_please(Short, Host),
    {ok, S} = gen_tcp:connect(Host, Port, [{active, false}, binary, {packet, 2}]),
    ok = gen_tcp:send(S, <<$N, ?FLAGS:64, 77:32, (length(Node)):16, (list_to_binary(Node))/binary>>),
    case gen_tcp:recv(S, 0, 5000) of
        {ok, <<"sok">>} -> shake_on(S);
        {ok, <<"salive">>} -> gen_tcp:close(S), alive
    end.

shake_on(S) ->
    {ok, <<$N, _:64, Challenge:32, _:32, _/binary>>} = gen_tcp:recv(S, 0, 5000),
    Digest = fun(C) -> erlang:md5(["biscuit", integer_to_list(C)]) end,
    ok = gen_tcp:send(S, <<$r, 4711:32, (Digest(Challenge))/binary>>),
    {ok, <<$a, Ack:16/binary>>} = gen_tcp:recv(S, 0, 5000),
    Ack = Digest(4711),
    receive {nodeup, _, _} -> ok after 5000 -> exit(nodeup) end,
    S.
