%% Tables are given away to a process that ends at the same time. Those with a living heir go to it,
%% the others are deleted.
-module(ets_heirs).
-export([main/0]).

main() ->
    %% Known before the rest, so that the load of code takes no part in it.
    ets:delete(ets:new(t, [])),
    Before = length(ets:all()),
    io:format("lost ~p~n", [lists:sum([lost(R rem 8) || R <- lists:seq(1, 100)])]),
    io:format("left ~p~n", [length(ets:all()) - Before]).

%% How many of the tables that a process owned, and of those that eight givers gave it, did not come
%% to their heir, which is this process. It ends when it hears of so many gifts.
lost(R) ->
    Heir = self(),
    {Ends, M} = spawn_monitor(fun() ->
        Heir ! {made, self(), [table(Heir, 0) || _ <- lists:seq(1, 50)]},
        gifts(R)
    end),
    Givers = [spawn_monitor(fun() -> giver(Heir, Ends, I) end) || I <- lists:seq(1, 8)],
    Made = lists:append([receive {made, P, T} -> T end || P <- [Ends | [P || {P, _} <- Givers]]]),
    [P ! give || {P, _} <- Givers],
    [receive {'DOWN', Ref, process, P, normal} -> ok end || {P, Ref} <- Givers],
    exit(Ends, kill),
    receive {'DOWN', M, process, Ends, _} -> ok end,
    length([T || T <- Made, not inherited(T)]).

gifts(0) -> ok;
gifts(N) -> receive {'ETS-TRANSFER', _, _, _} -> gifts(N - 1) end.

%% The gifts are large, so that it takes a while to give them.
giver(Heir, Ends, I) ->
    T = table(Heir, I),
    Heir ! {made, self(), [T]},
    receive give -> ok end,
    catch ets:give_away(ets:new(t, []), Ends, lists:seq(1, 20000 + I)),
    catch ets:give_away(T, Ends, lists:seq(1, 20000 + I)).

table(Heir, I) ->
    T = ets:new(t, [public, {heir, Heir, {heir, I}}]),
    ets:insert(T, {key, I}),
    T.

%% Who hears of somebody's end has been told of the tables before.
inherited(T) ->
    receive
        {'ETS-TRANSFER', T, _, {heir, I}} ->
            Is = ets:info(T, owner) =:= self() andalso ets:lookup(T, key) =:= [{key, I}],
            ets:delete(T),
            Is
    after 20 -> false
    end.
