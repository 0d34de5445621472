%% A process of the second node asks the first one for a value, which is kept in a table. When the
%% value changes, the first node has the table's owner take it out.
%% WRONG: who asks enters the value itself, and may do so after the owner has taken it out.
%% Run: purlin schedules --nodes 2 --faults delay -- run late_entry.erl
-module(late_entry).
-export([main/1]).
-mode(compile).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    [First, Second] = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    case Me of
        First ->
            register(source, self()),
            {ok, _} = net_kernel:start([Me, shortnames]),
            gives(Second);
        _ ->
            {ok, _} = net_kernel:start([Me, shortnames]),
            meets(First),
            asks(First)
    end.

meets(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> timer:sleep(100), meets(Node)
    end.

gives(Second) ->
    receive
        {ask, From} ->
            From ! {value, 1},
            timer:sleep(20),
            {owner, Second} ! changed,
            gives(Second);
        done -> ok
    after 60000 -> ok
    end.

asks(First) ->
    Me = self(),
    Owner = spawn_link(fun() -> owns(Me, First) end),
    receive ready -> ok end,
    {source, First} ! {ask, Me},
    receive {value, V} -> ets:insert(known, {value, V}) end,
    unlink(Owner),
    timer:sleep(20000),
    case ets:tab2list(known) of
        [] -> io:put_chars("nothing old is known\n");
        Old ->
            io:format("FAIL: ~p is known and was changed~n", [Old]),
            halt(1)
    end,
    {source, First} ! done,
    timer:sleep(1000).

owns(Main, First) ->
    register(owner, self()),
    known = ets:new(known, [named_table, public]),
    Main ! ready,
    owns(First).

owns(First) ->
    receive
        ask -> {source, First} ! {ask, self()};
        {value, V} -> ets:insert(known, {value, V});
        changed -> ets:delete(known, value)
    end,
    owns(First).
