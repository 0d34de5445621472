%% Processes request a collection, or hibernate, after each small change. Live data survives, dead
%% memory is freed, and promoted data reuses the space. @stress @shared @fence
-module(repeated_collections).
-export([main/0, loop/1]).

main() ->
    [io:format("~p ~p ~p~n", [How, Seed, run(How, Seed)]) || How <- [collect, hibernate, collect_other, minor_between], Seed <- [1, 2]],
    io:format("~p~n", [given_up()]).

value(K, N) -> {K, N, binary:copy(<<K:32, N:32>>, 10), fun(X) -> {X, K, N} end, [K, N | float(K + N)], #{K => N}, 1 bsl 80 + N}.

right(K, N, {K, N, B, F, L, M, I}) ->
    B =:= binary:copy(<<K:32, N:32>>, 10) andalso F(a) =:= {a, K, N} andalso L =:= [K, N | float(K + N)] andalso M =:= #{K => N}
        andalso I =:= 1 bsl 80 + N.

run(How, Seed) ->
    Keys = 120,
    Me = self(),
    P = spawn_link(fun() -> loop({How, Me, maps:from_list([{K, value(K, 0)} || K <- lists:seq(1, Keys)])}) end),
    Known = maps:from_list([{K, 0} || K <- lists:seq(1, Keys)]),
    Last = rounds(P, How, 60, Seed, Known),
    P ! {all, self()},
    All = receive {all, M} -> M end,
    unlink(P),
    exit(P, kill),
    {maps:size(All), maps:keys(All) =:= maps:keys(Last),
     lists:all(fun({K, N}) -> right(K, N, map_get(K, All)) end, maps:to_list(Last))}.

rounds(_, _, 0, _, Known) -> Known;
rounds(P, How, N, Seed, Known) ->
    Key = (N * 7 + Seed * 13) rem 120 + 1,
    Now = case (N + Seed) rem 9 of
              0 -> maps:remove(Key, Known);
              _ -> Known#{Key => N}
          end,
    P ! {change, self(), Key, maps:get(Key, Now, none)},
    receive {changed, Right} -> Right = true end,
    How =:= collect_other andalso erlang:garbage_collect(P),
    rounds(P, How, N - 1, Seed, Now).

loop({How, Me, State} = All) ->
    receive
        {change, From, Key, none} ->
            From ! {changed, true},
            next(How, {How, Me, maps:remove(Key, State)});
        {change, From, Key, N} ->
            Old = maps:get(Key, State, none),
            New = State#{Key => value(Key, N)},
            From ! {changed, Old =:= none orelse right(Key, element(2, Old), Old)},
            next(How, {How, Me, New});
        {all, From} ->
            From ! {all, State},
            next(How, All)
    end.

next(collect, S) -> garbage_collect(), loop(S);
next(minor_between, S) ->
    garbage_collect(),
    L = [value(X, 1) || X <- lists:seq(1, 30)],
    garbage_collect(self(), [{type, minor}]),
    garbage_collect(self(), [{type, minor}]),
    true = lists:all(fun(X) -> right(element(1, X), 1, X) end, L),
    loop(S);
next(collect_other, S) -> loop(S);
next(hibernate, S) -> erlang:hibernate(?MODULE, loop, [S]).

%% Binaries and memory of what died, at once, however little that is beside what lives.
given_up() ->
    {P, M} = spawn_monitor(fun() ->
        Keep = [{X, X} || X <- lists:seq(1, 20000)],
        put(bin, binary:copy(<<"x">>, 100000)),
        garbage_collect(),
        garbage_collect(),
        One = length(element(2, process_info(self(), binary))),
        erase(bin),
        garbage_collect(),
        None = length(element(2, process_info(self(), binary))),
        exit({One, None, length(Keep)})
    end),
    receive {'DOWN', M, process, P, R} -> R end.
