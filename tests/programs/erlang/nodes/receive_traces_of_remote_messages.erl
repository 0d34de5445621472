%% Traces messages from another node by trace patterns that ask for node and sender: short messages,
%% long ones that the receiver decodes, messages to names and aliases, and messages with a trace
%% token. @stress @shared @fence @seconds 200
-module(receive_traces_of_remote_messages).
-export([main/0, sends/0]).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("received" ++ os:getpid()), #{name_domain => shortnames}),
    {ok, Peer, Node} = peer:start(#{name => peer:random_name(), wait_boot => 60000,
        args => ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie", atom_to_list(erlang:get_cookie())]}),
    There = spawn_link(Node, ?MODULE, sends, []),
    Here = spawn_link(fun sends/0),
    Me = self(),
    R = spawn(fun() -> Me ! {alias, alias()}, receives() end),
    Alias = receive {alias, A} -> A end,
    register(receiver, R),
    1 = erlang:trace(R, true, ['receive']),
    Specs = [{all, true},
             {other, [{[Node, undefined, "Unexpected"], [], []}]},
             {node, [{[Node, There, '_'], [], []}, {[Node, undefined, '_'], [], []}]},
             {guard, [{[Node, '$1', '_'], [{'orelse', {'=:=', '$1', undefined}, {'=/=', {node, '$1'}, {node}}}], []}]},
             {'of', [{['$1', '_', '_'], [{'=:=', '$1', Node}], []}]},
             {own, [{[node(), '$1', '_'], [{'=:=', {node, '$1'}, {node}}], []}]},
             {long, [{['_', '_', '$1'], [{is_tuple, '$1'}, {'=:=', {element, 1, '$1'}, long}], []}]},
             {none, false}],
    Messages = [hello, {long, lists:seq(1, 5000)}, <<0:80000>>, {f, fun erlang:abs/1}],
    [begin
         erlang:trace_pattern('receive', Spec, []),
         [begin
              P ! {send, self(), To, M, Token},
              receive {P, sent} -> ok end,
              ends({P, To, M}),
              io:format("~p ~p to ~p ~P: ~p~n", [Name, Who, kind(To), M, 4, traces(R, M)])
          end || {Who, P} <- [{there, There}, {here, Here}], To <- [R, {receiver, node()}, Alias], M <- Messages, Token <- [false, true]]
     end || {Name, Spec} <- Specs],
    unlink(There),
    peer:stop(Peer),
    init:stop().

kind(To) when is_pid(To) -> pid;
kind(To) when is_tuple(To) -> name;
kind(_) -> alias.

%% Who receives it has had it before it answers this.
ends(_) ->
    receiver ! {self(), ask},
    receive answered -> ok after 10000 -> exit(no_answer) end,
    D = erlang:trace_delivered(whereis(receiver)),
    receive {trace_delivered, _, D} -> ok end.

%% What of the message was told; of others it does not matter.
traces(R, M) -> length([x || T <- all([]), T =:= {trace, R, 'receive', M}]).
all(Acc) -> receive T when element(1, T) =:= trace -> all([T | Acc]) after 0 -> Acc end.

receives() ->
    receive
        {From, ask} -> From ! answered;
        _ -> ok
    end,
    receives().

sends() ->
    receive
        {send, From, To, M, Token} ->
            Token andalso seq_trace:set_token(label, 5),
            To ! M,
            seq_trace:set_token([]),
            From ! {self(), sent}
    end,
    sends().
