%% Literals of modules that are loaded again and purged: whoever holds a part of one keeps it whole, and the memory of
%% those that nobody holds goes. @stress
-module(e_old_literals).
-export([main/0]).

-define(VERSIONS, 8).

main() ->
    Bins = [compile_version(V) || V <- lists:seq(1, ?VERSIONS)],
    T = ets:new(t, [public]),
    Holders = [hold(V, Bin, T) || {V, Bin} <- lists:zip(lists:seq(1, ?VERSIONS), Bins)],
    %% The memory that the first versions had would be used by these.
    churn(Bins, 25),
    io:format("~p~n", [[check(V, H, T) || {V, H} <- lists:zip(lists:seq(1, ?VERSIONS), Holders)]]),
    churn(Bins, 10),
    settle(),
    Before = memory(),
    churn(Bins, 200),
    io:format("~p~n", [shrinks(Before, 50)]),
    io:format("~p~n", [lists:sum([persistent(V) || V <- lists:seq(1, ?VERSIONS)])]).

value(V) -> {[{V, I, integer_to_list(V * I), I + 0.5} || I <- lists:seq(1, 150)], #{version => V, 1 bsl 70 => [V]}, binary:copy(<<V>>, 50), binary:copy(<<V>>, 200)}.

compile_version(V) ->
    A = erl_anno:new(1),
    F = fun(N, E) -> {function, A, N, 0, [{clause, A, [], [], [E]}]} end,
    Forms = [{attribute, A, module, old_literals}, {attribute, A, export, [{all, 0}, {big, 0}]},
             F(all, erl_parse:abstract(value(V))), F(big, {integer, A, (1 bsl 62) + V})],
    {ok, old_literals, Bin} = compile:forms(Forms, []),
    Bin.

load(Bin) ->
    {module, old_literals} = code:load_binary(old_literals, "old_literals.beam", Bin).

unload() ->
    true = code:delete(old_literals),
    false = code:purge(old_literals).

churn(Bins, N) ->
    [begin load(lists:nth(1 + I rem ?VERSIONS, Bins)), check_value(1 + I rem ?VERSIONS, old_literals:all()), unload() end || I <- lists:seq(1, N)].

%% Everything that may hold a part.
hold(V, Bin, T) ->
    load(Bin),
    Self = self(),
    All = {List, Map, Small, _} = old_literals:all(),
    Loop = spawn_link(fun() -> put(dict, element(1, old_literals:all())), R = element(2, old_literals:all()), Self ! {self(), ready}, receive {get, From} -> From ! {self(), {get(dict), R}} end end),
    Queue = spawn_link(fun() -> receive {get, From} -> receive {part, X} -> From ! {self(), X} end end end),
    Queue ! {part, {lists:nthtail(20, List), Small}},
    Hibernated = spawn_link(fun() -> Self ! {self(), ready}, Own = old_literals:all(), sleeper(Own) end),
    Matched = spawn_link(fun() -> <<_:8, Rest/binary>> = element(4, old_literals:all()), <<_:8, R2/binary>> = element(3, old_literals:all()), Self ! {self(), ready}, receive {get, From} -> From ! {self(), {Rest, R2}} end end),
    Large1 = [[old_literals:all(), X] || X <- lists:seq(1, 3000)],
    Region = spawn_link(fun() -> receive {hold, L} -> Self ! {self(), ready}, receive {get, From} -> From ! {self(), [X || [X, 2999] <- L]} end end end),
    Region ! {hold, Large1},
    [receive {P, ready} -> ok end || P <- [Loop, Hibernated, Matched, Region]],
    Closure = fun(Y) -> {Y, Map} end,
    ets:insert(T, [{{V, whole}, All}, {{V, part}, hd(List), Map}]),
    persistent_term:put({?MODULE, V}, {List, Map}),
    Timer = erlang:start_timer(100000000, self(), {timer, lists:last(List), Map}),
    {Ender, M} = spawn_monitor(fun() -> exit({reason, old_literals:all(), old_literals:big()}) end),
    receive after 0 -> ok end,
    self() ! {queued, V, List},
    put({own, V}, {Map, tl(List)}),
    unload(),
    {Loop, Queue, Hibernated, Matched, Region, Closure, Timer, Ender, M}.

sleeper(Own) ->
    receive {get, From} -> From ! {self(), Own} after 0 -> receive {get, From} -> From ! {self(), Own} end end.

ask(P) -> P ! {get, self()}, receive {P, X} -> X end.

check_value(V, X) -> X =:= value(V) orelse exit({wrong, V, X}).

check(V, {Loop, Queue, Hibernated, Matched, Region, Closure, Timer, Ender, M}, T) ->
    {List, Map, Small, Large} = value(V),
    <<_, LargeRest/binary>> = Large,
    <<_, SmallRest/binary>> = Small,
    [erlang:garbage_collect(P) || P <- [Loop, Region, self()]],
    Tail = lists:nthtail(20, List),
    [ask(Loop) =:= {List, Map}, ask(Queue) =:= {Tail, Small}, ask(Hibernated) =:= value(V),
     ask(Matched) =:= {LargeRest, SmallRest}, ask(Region) =:= [value(V)], Closure(1) =:= {1, Map},
     ets:lookup(T, {V, whole}) =:= [{{V, whole}, value(V)}], ets:lookup(T, {V, part}) =:= [{{V, part}, hd(List), Map}],
     is_integer(erlang:cancel_timer(Timer)),
     receive {'DOWN', M, process, Ender, R} -> R =:= {reason, value(V), (1 bsl 62) + V} end,
     receive {queued, V, L} -> L =:= List end, erase({own, V}) =:= {Map, tl(List)},
     persistent_term:get({?MODULE, V}) =:= {List, Map}].

persistent(V) -> {[{V, 1, _, _} | _], #{version := V}} = persistent_term:get({?MODULE, V}), V.

settle() -> receive after 300 -> erlang:garbage_collect() end.
memory() -> erlang:memory(total).
%% The memory of two hundred versions would be four megabytes.
shrinks(Before, 0) -> {grown, memory() - Before};
shrinks(Before, N) ->
    settle(),
    case memory() - Before of
        D when D < 1000000 -> returned;
        _ -> shrinks(Before, N - 1)
    end.
