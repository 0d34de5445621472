%% Two nodes add to a number that a third one keeps. Who adds holds a lease of a second, and looks
%% at its clock before it writes.
%% Leases have numbers, and who comes with a lower one than the last is refused.
%% Run: purlin schedules --nodes 3 -- run late_write_right.erl
-module(late_write_right).
-export([main/1]).
-mode(compile).

-define(LEASE, 1000).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    [First | _] = All = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    {ok, _} = net_kernel:start([Me, shortnames]),
    case Me of
        First ->
            register(keeper, self()),
            keeps(#{value => 0, lease => 0, ends => none}, length(All) - 1, 0);
        _ ->
            meets(First),
            adds({keeper, First}, 5, 0)
    end.

now_ms() -> erlang:monotonic_time(millisecond).

meets(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> timer:sleep(100), meets(Node)
    end.

keeps(#{value := Value}, 0, Value) ->
    io:format("~p additions~n", [Value]);
keeps(#{value := Value}, 0, Added) ->
    io:format("FAIL: ~p additions, and ~p is kept~n", [Added, Value]),
    halt(1);
keeps(S, Adding, Added) ->
    receive
        {done, N} ->
            keeps(S, Adding - 1, Added + N);
        {From, Ref, Question} ->
            {Answer, New} = answer(Question, S),
            From ! {Ref, Answer},
            keeps(New, Adding, Added)
    end.

answer(lease, #{lease := N, ends := Ends} = S) ->
    case now_ms() of
        Now when Ends =:= none; Now >= Ends ->
            {{ok, N + 1}, S#{lease := N + 1, ends := Now + ?LEASE}};
        _ ->
            {busy, S}
    end;
answer({release, N}, #{lease := N} = S) ->
    {ok, S#{ends := none}};
answer({release, _}, S) ->
    {ok, S};
answer({read, N}, #{lease := Last} = S) when N < Last ->
    {refused, S};
answer({write, N, _}, #{lease := Last} = S) when N < Last ->
    {refused, S};
answer({read, _}, #{value := Value} = S) ->
    {{ok, Value}, S};
answer({write, _, Value}, S) ->
    {ok, S#{value := Value}}.

ask(Keeper, Question) ->
    Ref = make_ref(),
    Keeper ! {self(), Ref, Question},
    receive {Ref, Answer} -> Answer end.

adds(Keeper, 0, Added) ->
    Keeper ! {done, Added},
    timer:sleep(10000);
adds(Keeper, Left, Added) ->
    case add(Keeper, now_ms()) of
        ok -> adds(Keeper, Left - 1, Added + 1);
        again -> timer:sleep(20), adds(Keeper, Left, Added)
    end.

add(Keeper, Begun) ->
    case ask(Keeper, lease) of
        {ok, N} ->
            Read = ask(Keeper, {read, N}),
            Result = writes(Keeper, N, Read, now_ms() < Begun + ?LEASE),
            ask(Keeper, {release, N}),
            Result;
        busy ->
            again
    end.

writes(Keeper, N, {ok, Value}, true) ->
    case ask(Keeper, {write, N, Value + 1}) of
        ok -> ok;
        refused -> again
    end;
writes(_, _, _, _) ->
    again.
