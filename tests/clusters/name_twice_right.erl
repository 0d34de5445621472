%% A service has one holder in the cluster, by a global name. Where the connection of the two nodes
%% breaks each starts its own; when it is back, `global' tells both of the conflict
%% (global:notify_all_name/3) and takes the name away.
%% RIGHT: the holder on the node with the greater name ends, the other one takes the name again.
%% Run: purlin schedules --nodes 2 --faults reset,cut -- run name_twice_right.erl
-module(name_twice_right).
-export([main/1]).
-mode(compile).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    [First | _] = Nodes = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    {ok, _} = net_kernel:start([Me, shortnames]),
    register(main, self()),
    [Other] = Nodes -- [Me],
    meet(Other),
    global:sync(),
    Keeper = spawn(fun() -> keeper(Other) end),
    timer:sleep(4000),
    case Me of
        First ->
            check(Other, 300),
            exit(Keeper, kill),
            rpc:call(Other, erlang, send, [main, stop]);
        _ ->
            receive stop -> ok after 300000 -> ok end
    end.

%% The conflict may take a while to be solved.
check(Other, Left) ->
    meet(Other),
    Here = whereis(holder),
    case rpc:call(Other, erlang, whereis, [holder]) of
        undefined when is_pid(Here) -> io:put_chars("one holder\n");
        There when is_pid(There), Here =:= undefined -> io:put_chars("one holder\n");
        _ when Left > 0 -> timer:sleep(100), check(Other, Left - 1);
        There -> io:format("FAIL: holders ~p and ~p~n", [Here, There]), halt(1)
    end.

meet(Other) ->
    case net_kernel:connect_node(Other) of
        true -> ok;
        _ -> timer:sleep(100), meet(Other)
    end.

%% There is to be a holder, wherever it is.
keeper(Other) ->
    net_kernel:connect_node(Other),
    case global:whereis_name(holder) of
        undefined when node() < Other -> start();
        undefined -> timer:sleep(300), start();
        _ -> ok
    end,
    timer:sleep(200),
    keeper(Other).

start() ->
    case {global:whereis_name(holder), whereis(holder)} of
        {undefined, undefined} -> spawn(fun holder/0);
        {undefined, Pid} -> global:register_name(holder, Pid, fun global:notify_all_name/3);
        _ -> ok
    end.

holder() ->
    register(holder, self()),
    case global:register_name(holder, self(), fun global:notify_all_name/3) of
        yes -> holds();
        no -> ok
    end.

holds() ->
    receive
        {global_name_conflict, holder, Other} when node() > node(Other) -> ok;
        {global_name_conflict, holder, _} ->
            case global:register_name(holder, self(), fun global:notify_all_name/3) of
                yes -> holds();
                no -> ok
            end
    end.
