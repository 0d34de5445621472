%% The second node asks the first one for a list, and is told what leaves it.
%% WRONG: another process tells it. Erlang does not order what two processes send.
%% Run: purlin schedules --nodes 2 --delivery any -- run overtaken_list.erl
-module(overtaken_list).
-export([main/1]).
-mode(compile).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    [First, _] = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    case Me of
        First ->
            register(keeper, self()),
            Teller = spawn_link(fun tells/0),
            {ok, _} = net_kernel:start([Me, shortnames]),
            keeps(Teller);
        _ ->
            {ok, _} = net_kernel:start([Me, shortnames]),
            meets(First),
            {keeper, First} ! {ask, self()},
            erlang:send_after(20000, self(), ends),
            compares(knows([])),
            {keeper, First} ! done,
            timer:sleep(1000)
    end.

meets(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> timer:sleep(100), meets(Node)
    end.

keeps(Teller) ->
    receive
        {ask, From} ->
            From ! {all, [one, two]},
            timer:sleep(20),
            Teller ! {From, {leaves, two}},
            keeps(Teller);
        done -> ok
    after 60000 -> ok
    end.

tells() ->
    receive {To, What} -> To ! What end,
    tells().

knows(Known) ->
    receive
        {all, All} -> knows(All);
        {leaves, One} -> knows(lists:delete(One, Known));
        ends -> Known
    end.

compares([one]) -> io:put_chars("equal\n");
compares(Other) ->
    io:format("FAIL: ~p is not [one]~n", [Other]),
    halt(1).
