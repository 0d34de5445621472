%% A process that drops much and hibernates frees the memory at once, whatever it did before.
%% @stress
-module(hibernation_frees_memory).
-export([main/0, wakes/1]).

main() ->
    [io:format("~w ~w~n", [How, try_it(How)]) || How <- [map, list, dictionary, held_still]].

try_it(How) ->
    P = spawn(fun() -> begins(How) end),
    ok = ask(P, hibernate),
    ok = ask(P, hibernate),
    Before = memory(P) > 1000000,
    ok = ask(P, drop),
    After = small(P, How, 10),
    ok = ask(P, hibernate),
    exit(P, kill),
    {Before, After}.

%% Upkeep comes after half a second; a machine with other work may take as long.
small(P, held_still, _) -> memory(P) > 1000000;
small(P, _, 0) -> memory(P);
small(P, How, N) ->
    case memory(P) < 100000 of
        true -> in_time;
        false -> receive after 10 -> small(P, How, N - 1) end
    end.

memory(P) -> element(2, process_info(P, memory)).

ask(P, What) ->
    P ! {self(), What},
    receive {P, Answer} -> Answer end,
    hibernated(P),
    Answer.

hibernated(P) ->
    case process_info(P, [current_function, status]) of
        [{current_function, {erlang, hibernate, _}}, {status, waiting}] -> ok;
        _ -> receive after 1 -> hibernated(P) end
    end.

begins(map) -> waits({map, maps:from_list([{I, {I}} || I <- lists:seq(1, 50000)])});
begins(list) -> waits({list, [{I, I} || I <- lists:seq(1, 100000)]});
begins(dictionary) -> put(much, [{I, I} || I <- lists:seq(1, 100000)]), waits(dictionary);
begins(held_still) -> put(much, [{I, I} || I <- lists:seq(1, 100000)]), waits({map, #{}}).

waits(State) ->
    receive
        {From, hibernate} -> From ! {self(), ok}, erlang:hibernate(?MODULE, wakes, [State]);
        {From, drop} -> State =/= dictionary orelse erase(much), From ! {self(), ok}, erlang:hibernate(?MODULE, wakes, [nothing])
    end.

wakes(State) -> waits(State).
