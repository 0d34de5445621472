%% Two nodes meet, send each other ten messages, and say what they have seen: the time that passed,
%% a random number, a reference. All of it follows from the seed.
%% Run: purlin schedules --nodes 2 -- run ping.erl
-module(ping).
-export([main/1]).
-mode(compile).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    Nodes = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    {ok, _} = net_kernel:start([Me, shortnames]),
    register(ping, self()),
    [Other] = Nodes -- [Me],
    meet(Other),
    case Nodes of
        [Me | _] ->
            Sent = erlang:monotonic_time(microsecond),
            [ask(Other, N) || N <- lists:seq(1, 10)],
            Took = erlang:monotonic_time(microsecond) - Sent,
            io:format("~p: ten answers in ~p us~n", [Me, Took]),
            {ping, Other} ! {stop, self()},
            receive stopped -> ok end;
        _ ->
            answers(0)
    end,
    {_, {H, M, S}} = calendar:system_time_to_universal_time(erlang:system_time(second), second),
    io:format("~p: ~p ~p at ~2..0b:~2..0b:~2..0b ~p~n",
              [Me, rand:uniform(1000000), make_ref(), H, M, S, crypto_number()]).

crypto_number() ->
    erlang:phash2({self(), erlang:unique_integer()}).

meet(Other) ->
    case net_kernel:connect_node(Other) of
        true -> ok;
        _ -> timer:sleep(50), meet(Other)
    end.

ask(Other, N) ->
    {ping, Other} ! {self(), N},
    receive {answer, N} -> ok end.

answers(Count) ->
    receive
        {From, N} when is_integer(N) ->
            From ! {answer, N},
            answers(Count + 1);
        {stop, From} ->
            io:format("~p: answered ~p times~n", [node(), Count]),
            From ! stopped
    end.
