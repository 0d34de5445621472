%% Converts pids, ports and references of another node to text and back. While connected they stay
%% the same on both nodes; without a connection the creation of the node is unknown.
%% @stress @shared @fence @seconds 200
-module(remote_identifiers_as_text).
-export([main/0, same/1, answers/0]).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("texts" ++ os:getpid()), #{name_domain => shortnames}),
    {ok, Peer, Node} = peer:start(#{name => peer:random_name(), wait_boot => 60000,
        args => ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie", atom_to_list(erlang:get_cookie())]}),
    Pid = rpc:call(Node, erlang, whereis, [init]),
    Server = spawn(Node, ?MODULE, answers, []),
    Port = hd(rpc:call(Node, erlang, ports, [])),
    Ref = rpc:call(Node, erlang, make_ref, []),
    Things = [Pid, Server, Port, Ref],
    Texts = [text(T) || T <- Things],
    show(there, [same(T) || T <- Things]),
    show(back, rpc:call(Node, ?MODULE, same, [again(text(Server))])),
    show(mine, [rpc:call(Node, erlang, '=:=', [T, again(text(T))]) || T <- Things]),
    show(equal, [erlang:phash2(again(X)) =:= erlang:phash2(T) || {X, T} <- lists:zip(Texts, Things)]),
    show(external, [term_to_binary(again(X)) =:= term_to_binary(T) || {X, T} <- lists:zip(Texts, Things)]),
    [erlang:garbage_collect() || _ <- [1, 2, 3]],
    S = again(text(Server)),
    S ! {self(), ping},
    show(answer, receive {Server, pong} -> pong after 30000 -> timeout end),
    M = monitor(process, S),
    S ! stop,
    show(down, receive {'DOWN', M, process, Server, R} -> R after 30000 -> timeout end),
    Kept = maps:from_list([{again(X), X} || X <- Texts]),
    show(keys, [maps:is_key(T, Kept) || T <- Things]),
    N = number(text(Pid)),
    [show(F, catch_all(fun() -> again(F(N)) end)) || F <- [fun(A) -> "<" ++ A ++ ".1>" end, fun(A) -> "<" ++ A ++ ".1.2.3>" end, fun(A) -> "<" ++ A ++ ".-1.2>" end,
        fun(A) -> "<" ++ A ++ ".1.2>x" end, fun(A) -> "#Port<" ++ A ++ ">" end, fun(A) -> "#Port<" ++ A ++ ".1.1>" end, fun(A) -> "#Ref<" ++ A ++ ">" end,
        fun(A) -> "#Ref<" ++ A ++ ".1.2.4294967296>" end, fun(A) -> "#Ref<" ++ A ++ ".1.2.3.4.5.6>" end]],
    [show(ok, is_ref_of(Node, catch_all(fun() -> again("#Ref<" ++ N ++ Rest ++ ">") end))) || Rest <- [".1", ".1.2", ".1.2.3", ".1.2.3.4", ".1.2.3.4.5", ".4294967295.4294967295.4294967295"]],
    [show(wide, catch_all(fun() -> node(again(T)) =:= Node end)) || T <- ["<" ++ N ++ ".4294967295.4294967295>", "#Port<" ++ N ++ ".18446744073709551615>"]],
    show(nobody, [catch_all(fun() -> again(T) end) || T <- ["<999999999.1.1>", "#Port<4000000000.1>", "#Ref<5.1.2.3>", "<99999999999999999999.1.1>"]]),
    true = erlang:monitor_node(Node, true),
    peer:stop(Peer),
    receive {nodedown, Node} -> ok end,
    show(gone, [catch_all(fun() -> again(X) end) || X <- Texts]),
    show(kept, [is_map_key(T, Kept) || T <- Things]),
    init:stop().

show(F, V) when is_function(F) -> io:format("~s: ~p~n", [F("N"), V]);
show(What, V) -> io:format("~p: ~p~n", [What, V]).

same(T) -> again(text(T)) =:= T.

answers() -> receive {From, ping} -> From ! {self(), pong}, answers(); stop -> exit(stopped) end.

text(T) when is_pid(T) -> pid_to_list(T);
text(T) when is_port(T) -> port_to_list(T);
text(T) when is_reference(T) -> ref_to_list(T).

again("<" ++ _ = T) -> list_to_pid(T);
again("#Port" ++ _ = T) -> list_to_port(T);
again("#Ref" ++ _ = T) -> list_to_ref(T).

number("<" ++ T) -> hd(string:split(T, ".")).

is_ref_of(Node, T) when is_reference(T) -> node(T) =:= Node;
is_ref_of(_, T) -> T.

catch_all(F) -> try F() catch C:R -> {C, R} end.
