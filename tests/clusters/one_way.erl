%% The first node leads while it hears from the second one. The second one takes over
%% when it has not heard from the first one for three seconds.
%% WRONG: who hears is not heard. If only what the first node sends is cut off, both lead.
%% Run: purlin schedules --nodes 2 --faults cut -- run one_way.erl
-module(one_way).
-export([main/1]).
-mode(compile).

-define(ENDS, 30000).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    Nodes = [First, _] = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    [Other] = Nodes -- [Me],
    {ok, _} = net_kernel:start([Me, shortnames]),
    register(leader, self()),
    meets(Other),
    erlang:send_after(?ENDS, self(), ends),
    self() ! tick,
    case Me of
        First -> compares(leads(Other, 0, 0));
        _ -> {leader, Other} ! {led, follows(Other, none, 0)}, timer:sleep(95000)
    end.

meets(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> timer:sleep(100), meets(Node)
    end.

now_ms() -> erlang:system_time(millisecond).

%% It leads for a second from `Since` on. Returns the last time at which it has led.
leads(Other, Since, Led) ->
    receive
        tick ->
            erlang:send_after(100, self(), tick),
            Now = now_ms(),
            {leader, Other} ! {beat, Now},
            case Now - Since =< 1000 of
                true -> leads(Other, Since, Now);
                false -> leads(Other, Since, Led)
            end;
        {beat, Sent, _} -> leads(Other, max(Since, Sent), Led);
        ends -> Led
    end.

%% Returns the time from which on this node has led. `Last` is what the first node has said last,
%% which was heard at the time `Heard`.
follows(Other, Heard, Last) ->
    receive
        tick ->
            erlang:send_after(100, self(), tick),
            {leader, Other} ! {beat, now_ms(), Last},
            case is_integer(Heard) andalso now_ms() - Heard > 3000 of
                true -> takes_over(now_ms());
                false -> follows(Other, Heard, Last)
            end;
        {beat, Sent} -> follows(Other, now_ms(), Sent);
        ends -> never
    end.

takes_over(From) ->
    receive
        ends -> From;
        _ -> takes_over(From)
    end.

compares(Led) ->
    receive
        {led, From} when is_integer(From), From < Led ->
            io:format("FAIL: both lead for ~p ms~n", [Led - From]),
            halt(1);
        {led, _} -> io:put_chars("one leader\n");
        _ -> compares(Led)
    after 90000 -> io:put_chars("the other is not heard\n")
    end.
