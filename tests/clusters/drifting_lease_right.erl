%% The first node gives a lock to the others in turn, for a hundred seconds each. Who has it stops
%% using it when the time is over by a clock of its own.
%% RIGHT: it stops long before, by more than clocks may differ.
%% Run: purlin schedules --nodes 3 --faults clock -- run drifting_lease_right.erl
-module(drifting_lease_right).
-export([main/1]).
-mode(compile).

-define(LASTS, 100000).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    [First | Others] = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    {ok, _} = net_kernel:start([Me, shortnames]),
    case Me of
        First ->
            register(lock, self()),
            gives([receive {ready, From} -> From end || _ <- Others]),
            io:put_chars("one at a time\n");
        _ ->
            meets(First),
            {lock, First} ! {ready, self()},
            uses(First)
    end.

meets(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> timer:sleep(100), meets(Node)
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% Nobody else than its holder may use the lock.
gives([]) -> ok;
gives([Holder | Others]) ->
    Ends = now_ms() + ?LASTS,
    Holder ! given,
    waits(Holder, Ends),
    gives(Others).

waits(Holder, Ends) ->
    receive
        {uses, Holder} ->
            waits(Holder, Ends);
        {uses, Other} ->
            io:format("FAIL: ~p has the lock, and ~p uses it~n", [Holder, Other]),
            halt(1)
    after max(0, Ends - now_ms()) -> ok
    end.

uses(First) ->
    receive
        given ->
            Ends = now_ms() + ?LASTS - margin(),
            timer:sleep(?LASTS - margin() - 200),
            uses(First, Ends)
    after 250000 -> ok
    end.

uses(First, Ends) ->
    case now_ms() < Ends of
        true ->
            {lock, First} ! {uses, self()},
            timer:sleep(10),
            uses(First, Ends);
        false ->
            uses(First)
    end.

%% Clocks differ by up to 0.05 %, and by 1 % where they follow a wall clock that has stepped.
margin() -> 5000.
