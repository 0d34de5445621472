%% A sender sends numbers, each until it is confirmed. The receiver adds them up.
%% WRONG: the receiver adds a number again that arrives again.
%% Run: purlin schedules --nodes 2 --faults udp -- run added_twice.erl
-module(added_twice).
-export([main/1]).
-mode(compile).

main(_) ->
    [First | _] = string:lexemes(os:getenv("PURLIN_NODES"), " "),
    case os:getenv("PURLIN_NODE") of
        First ->
            {ok, S} = gen_udp:open(7001, [binary, {active, true}]),
            sums(S, [], 0);
        _ ->
            {ok, S} = gen_udp:open(0, [binary, {active, true}]),
            timer:sleep(100),
            [sure(S, N, 300) || N <- lists:seq(1, 20)]
    end.

sure(_, _, 0) -> halt(1);
sure(S, N, Left) ->
    ok = gen_udp:send(S, {127, 0, 0, 1}, 7001, <<N>>),
    receive {udp, _, _, _, <<N>>} -> timer:sleep(20) after 100 -> sure(S, N, Left - 1) end.

sums(S, Seen, Sum) ->
    receive
        {udp, _, Host, Port, <<N>>} ->
            ok = gen_udp:send(S, Host, Port, <<N>>),
            sums(S, [N | Seen], added(N, Seen, Sum))
    after 20000 ->
        case Sum of
            210 -> io:put_chars("the sum is right\n");
            _ -> io:format("FAIL: ~w in place of 210~n", [Sum]), halt(1)
        end
    end.

added(N, _, Sum) -> Sum + N.
