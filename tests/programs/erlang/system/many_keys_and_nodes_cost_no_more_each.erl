%% Match specifications with many bound keys, and `nodes(known)` with many nodes, take time in
%% proportion to their number. @seconds 120
-module(many_keys_and_nodes_cost_no_more_each).
-export([main/0]).

-define(FEW, 2000).
-define(MANY, 32000).
%% The cost of an item among many may be so many times its cost among few. A search among all
%% others would make it sixteen times as large.
-define(MOST, 8).
%% Milliseconds that a measured step is taken to cost at least.
-define(LEAST, 4).
-define(TRIES, 5).

main() ->
    [io:format("keys of a ~w: ~ts~n", [Type, grows(fun(N) -> keys(Type, N) end)])
     || Type <- [set, ordered_set, duplicate_bag]],
    io:format("nodes: ~ts~n", [grows(fun nodes_known/1)]).

grows(Step) -> grows(Step, ?TRIES, infinity, infinity).

grows(_, 0, Few, Many) -> io_lib:format("~w ms, ~w ms for ~w times as many", [Few, Many, ?MANY div ?FEW]);
grows(Step, Tries, Few0, Many0) ->
    Few = min(Few0, Step(?FEW)),
    Many = min(Many0, Step(?MANY)),
    case Many =< ?MOST * (?MANY div ?FEW) * max(Few, ?LEAST) div 4 of
        true -> "in proportion";
        false -> grows(Step, Tries - 1, Few, Many)
    end.

keys(Type, N) ->
    %% Without objects only the look-ups are left: an object is tried with each of the patterns.
    T = ets:new(t, [Type]),
    Spec = [{{K, '$1'}, [], ['$1']} || K <- lists:seq(1, N)],
    Cost = cost(fun() -> [] = ets:select(T, Spec) end),
    ets:delete(T),
    Cost.

nodes_known(N) ->
    Pids = [pid(I) || I <- lists:seq(1, N)],
    Cost = cost(fun() -> true = length(nodes(known)) >= N end),
    N = length(Pids),
    Cost.

%% A pid of a node that is not connected.
pid(I) ->
    Name = iolist_to_binary(io_lib:format("n~b@h", [I])),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, 1:32, 0:32, 1:32>>).

cost(F) ->
    erlang:garbage_collect(),
    {T0, _} = statistics(runtime),
    F(),
    {T1, _} = statistics(runtime),
    T1 - T0.
