%% A process holds much, of which each request changes little. Its old generation is swept in steps
%% while values of all kinds are made, dropped, sent, and compared with the expected ones.
%% @stress @shared @fence @seconds 200
-module(swept_old_generation).
-export([main/0]).

main() ->
    Small = os:getenv("PURLIN_GC_STRESS") =/= false,
    {Keys, Rounds} = case Small of true -> {60, 400}; false -> {60000, 70000} end,
    Self = self(),
    Peer = spawn_link(fun peer/0),
    Holder = spawn_link(fun() -> hold(Self, Peer, Keys) end),
    Faults = ask(Holder, Rounds, Keys, 0),
    Holder ! {all, self()},
    receive {all, Wrong} -> io:format("~p wrong answers, ~p wrong at the end~n", [Faults, Wrong]) end.

ask(_, 0, _, Faults) -> Faults;
ask(H, N, Keys, Faults) ->
    H ! {self(), N * 7919 rem Keys, N rem 9},
    receive {ok, _} -> ask(H, N - 1, Keys, Faults); {wrong, _} -> ask(H, N - 1, Keys, Faults + 1) end.

%% Answers with a large list, of which one element is kept.
peer() ->
    receive
        {part, From, K, V} -> From ! {part, [value(K, V, I rem 9) || I <- lists:seq(1, 120)]}, peer();
        {back, From, T} -> From ! {back, T}, peer()
    end.

hold(Main, Peer, Keys) ->
    put(peer, Peer),
    put(first, value(0, 0, 0)),
    %% An erased term has stock look through all heaps.
    put(every, case Keys of 60 -> 13; _ -> 2003 end),
    serve(Main, counters:new(Keys + 1, []), maps:from_list([{K, {0, value(K, 0, 0)}} || K <- lists:seq(0, Keys - 1)])).

serve(Main, C, State) ->
    receive
        {all, From} ->
            From ! {all, length([K || {K, {Kind, X}} <- maps:to_list(State), X =/= value(K, counters:get(C, K + 1), Kind)])};
        {From, K, Kind} ->
            {Was, X} = maps:get(K, State),
            V = counters:get(C, K + 1),
            From ! {case X =:= value(K, V, Was) andalso get(first) =:= value(0, 0, 0) of true -> ok; false -> wrong end, K},
            counters:add(C, K + 1, 1),
            New = case K rem get(every) of 0 -> found(K, V + 1, Kind); _ -> new(K, V + 1, Kind, X) end,
            serve(Main, C, State#{K := {Kind, New}})
    end.

%% Found while an older value holds the same region, of which nothing is left afterwards but what is
%% kept here.
found(K, V, Kind) ->
    persistent_term:put(?MODULE, {value(K, V, Kind), lists:seq(1, 400)}),
    put(garbage, persistent_term:get(?MODULE)),
    {X, _} = persistent_term:get(?MODULE),
    V rem 3 =:= 0 andalso persistent_term:erase(?MODULE),
    X.

%% One in a while comes from elsewhere: a part of a large message, or what was sent and came back.
new(K, V, Kind, _) when K rem 7 =:= 0 ->
    get(peer) ! {part, self(), K, V},
    receive {part, L} -> lists:nth(9 + Kind, L) end;
new(K, V, Kind, _) when K rem 11 =:= 0 ->
    X = {value(K, V, Kind), lists:duplicate(400, K)},
    get(peer) ! {back, self(), X},
    receive {back, {Y, _}} -> Y end;
new(K, V, Kind, Old) ->
    put(garbage, {Old, lists:seq(1, 40)}),
    value(K, V, Kind).

value(K, V, 0) -> {K, V, {K, [V]}};
value(K, V, 1) -> binary:copy(<<K:32, V:32>>, 12);
value(K, V, 2) -> <<_:3/binary, B:70/binary, _/binary>> = binary:copy(<<V:32, K:32>>, 12), B;
value(K, V, 3) -> [K, V | lists:seq(1, 1 + V rem 20)];
value(K, V, 4) -> #{k => K, v => V, {K} => [V]};
value(K, V, 5) -> (K bsl 80) bor V;
value(K, V, 6) -> fun_of(K, V);
value(K, V, 7) -> maps:from_list([{I, {K, V}} || I <- lists:seq(1, 40)]);
value(K, V, 8) -> [<<K:32>>, float(V), {<<V:16>>, K / 3}].

fun_of(K, V) -> fun(X) -> {X, K, V} end.
