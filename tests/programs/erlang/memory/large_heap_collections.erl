%% A large heap is collected after each small change. It returns the memory of dead terms if that is
%% much. @seconds 120
-module(large_heap_collections).
-export([main/0]).

main() ->
    {P, M} = spawn_monitor(fun() ->
        State = maps:from_list([{X, {X, [X]}} || X <- lists:seq(1, 200000)]),
        garbage_collect(),
        Last = lists:foldl(fun(N, S) ->
                               New = S#{N * 1000 => {N, binary:copy(<<N:8>>, 100)}},
                               garbage_collect(),
                               New
                           end, State, lists:seq(1, 30)),
        Sum = lists:sum([element(1, V) || V <- maps:values(Last)]),
        After = memory(),
        Binaries = length(element(2, process_info(self(), binary))),
        Half = maps:filter(fun(K, _) -> K rem 8 =:= 0 end, Last),
        garbage_collect(),
        garbage_collect(),
        Less = memory(),
        SumOfHalf = lists:sum([element(1, V) || V <- maps:values(Half)]),
        put(none, Half),
        erase(none),
        exit({Sum, SumOfHalf, Less < After / 2, Binaries})
    end),
    receive {'DOWN', M, process, P, R} -> io:format("~p~n", [R]) end.

memory() -> {memory, N} = process_info(self(), memory), N.
