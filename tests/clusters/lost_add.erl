%% The first node has the second one add one to a number twice, by two processes, five times.
%% WRONG: they read the number and write it, and another process may come between.
%% Run: purlin schedules --nodes 2 -- run lost_add.erl
-module(lost_add).
-export([main/1]).
-mode(compile).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    [First, Second] = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    {ok, _} = net_kernel:start([Me, shortnames]),
    case Me of
        First ->
            meets(Second),
            [10] = [total(Second, N) || N <- [5]],
            io:put_chars("ten\n");
        Second ->
            ets:new(numbers, [named_table, public]),
            ets:insert(numbers, {number, 0}),
            register(adder, self()),
            serves()
    end.

meets(Node) ->
    case net_kernel:connect_node(Node) of
        true -> timer:sleep(500);
        _ -> timer:sleep(100), meets(Node)
    end.

total(Node, 0) ->
    {adder, Node} ! {total, self()},
    receive
        {total, 10} -> 10;
        {total, N} -> io:format("FAIL: ~p of 10~n", [N]), halt(1)
    end;
total(Node, N) ->
    {adder, Node} ! {add, self()},
    receive added -> total(Node, N - 1) end.

serves() ->
    receive
        {add, From} ->
            Both = [spawn_monitor(fun add/0) || _ <- [1, 2]],
            [receive {'DOWN', M, process, P, normal} -> ok end || {P, M} <- Both],
            From ! added,
            serves();
        {total, From} ->
            From ! {total, ets:lookup_element(numbers, number, 2)},
            timer:sleep(10000)
    end.

add() ->
    N = ets:lookup_element(numbers, number, 2),
    ets:insert(numbers, {number, N + 1}).
