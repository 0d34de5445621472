%% Terms are sent repeatedly, to local processes and to another node alternately; what comes back is
%% sent on. @stress @shared @fence @seconds 200
-module(shared_again_nodes).
-export([main/0, echo/0]).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    Me = list_to_atom("again" ++ os:getpid()),
    {ok, _} = net_kernel:start(Me, #{name_domain => shortnames}),
    erlang:set_cookie(biscuit),
    {ok, Peer, Node} = peer:start_link(#{name => list_to_atom("peer" ++ os:getpid()), connection => standard_io,
                                         args => ["-setcookie", "biscuit", "-pa", filename:dirname(code:which(?MODULE))]}),
    V = maps:from_list([{I, {I, [I, I + 1]}} || I <- lists:seq(1, 150)]),
    There = spawn(Node, ?MODULE, echo, []),
    Here = spawn(?MODULE, echo, []),
    [begin
        [P ! {self(), {told, V, I}} || P <- [Here, There, Here, There]],
        L = [receive {P, X} -> X end || P <- [Here, There, Here, There]],
        io:format("~p ~p~n", [I, lists:usort(L) =:= [{told, V, I}]])
    end || I <- lists:seq(1, 4)],
    %% What came from there is sent on, to both.
    There ! {self(), V},
    W = receive {There, Y} -> Y end,
    [P ! {self(), {W, W}} || P <- [Here, There, Here, There]],
    io:format("~p~n", [[receive {P, {A, B}} -> A =:= V andalso B =:= V end || P <- [Here, There, Here, There]]]),
    F = fun() -> V end,
    io:format("~p~n", [[(erpc:call(N, fun() -> F() end)) =:= V || N <- [Node, node(), Node]]]),
    peer:stop(Peer),
    init:stop().

echo() ->
    receive {From, X} -> erlang:garbage_collect(), From ! {self(), X}, echo() end.
