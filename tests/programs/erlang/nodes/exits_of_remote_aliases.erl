%% Exit signals to aliases of another node (OTP 28), with reasons so large that the call takes long.
%% Earlier releases take no alias there. @stress
-module(exits_of_remote_aliases).
-export([main/0, target/1]).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("exits" ++ os:getpid()), #{name_domain => shortnames}),
    {ok, Peer, Node} = peer:start(#{name => peer:random_name(), wait_boot => 60000, args => ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie", atom_to_list(erlang:get_cookie())]}),
    spawn(Node, ?MODULE, target, [self()]),
    {To, Alias} = receive Both -> Both end,
    [io:format("~p ~w: ~p~n", [What, Size, exits(What, To, Alias, lists:seq(1, Size))])
     || Size <- [3, 300000], What <- [pid, alias, no_options, priority]],
    peer:stop(Peer),
    init:stop().

exits(What, To, Alias, Reason) ->
    try sends(What, To, Alias, Reason) of
        true -> receive {got, Sender, Sum} -> {Sender =:= self(), Sum} after 60000 -> nothing end
    catch error:Why -> Why
    end.

sends(pid, To, _, Reason) -> exit(To, Reason);
sends(alias, _, Alias, Reason) -> exit(Alias, Reason);
sends(no_options, _, Alias, Reason) -> erlang:exit(Alias, Reason, []);
sends(priority, _, Alias, Reason) -> erlang:exit(Alias, Reason, [priority]).

target(From) ->
    process_flag(trap_exit, true),
    Alias = try alias([priority]) catch error:_ -> alias() end,
    From ! {self(), Alias},
    answers(From).

answers(From) ->
    receive {'EXIT', Sender, Reason} -> From ! {got, Sender, lists:sum(Reason)} end,
    answers(From).
