%% Processes build much, wait, answer, change a part, drop it and grow again: what was built is old
%% once they wait, and the old generation grows in place. Values of all kinds are compared with the
%% expected ones. @stress @shared @fence @seconds 200
-module(settled_heaps).
-export([main/0, server/1]).

main() ->
    Small = os:getenv("PURLIN_GC_STRESS") =/= false,
    N = case Small of true -> 40; false -> 60000 end,
    Kinds = [map, list, tuples, binaries, funs],
    Ps = [{K, spawn_link(?MODULE, server, [K])} || K <- Kinds],
    [io:format("~p: ~p~n", [K, drive(P, N)]) || {K, P} <- Ps],
    %% One whose heap is limited, generously, lives on.
    {L, R} = spawn_opt(?MODULE, server, [map], [monitor, {max_heap_size, #{size => 400 * N + 200000, kill => true, error_logger => false}}]),
    io:format("limited: ~p~n", [drive(L, N)]),
    exit(L, kill),
    receive {'DOWN', R, _, _, Why} -> io:format("~p~n", [Why]) end,
    [P ! stop || {_, P} <- Ps].

drive(P, N) ->
    Self = self(),
    Ask = fun(What) -> P ! {Self, What}, receive {P, A} -> A; {'DOWN', _, _, P, Why} -> exit(Why) end end,
    A1 = Ask({build, N}),
    A2 = [Ask({touch, I}) || I <- lists:seq(1, 20)],
    A3 = Ask({build, N div 2}),
    A4 = [Ask({grow, N div 8}) || _ <- lists:seq(1, 8)],
    A5 = Ask(sum),
    A6 = Ask(forget),
    A7 = Ask({build, N}),
    %% How many there are is told in tenths of what was asked for.
    Part = fun(X) -> X * 10 div N end,
    {Held, Wrong} = A5,
    {Last, []} = Ask(sum),
    {Part(A1), erlang:phash2(A2), Part(A3), Part(lists:last(A4)), Part(Held), Wrong, A6, Part(A7), Part(Last)}.

server(Kind) -> server(Kind, []).

server(Kind, S) ->
    receive
        {From, {build, N}} ->
            Garbage = lists:seq(1, N),
            New = [{{Kind, I}, value(Kind, I)} || I <- Garbage],
            From ! {self(), length(New)},
            server(Kind, New);
        {From, {touch, I}} ->
            [{_, V} | Rest] = S,
            From ! {self(), erlang:phash2(V)},
            server(Kind, [{{Kind, I}, value(Kind, I)} | Rest]);
        {From, {grow, N}} ->
            New = [{{Kind, I}, value(Kind, I)} || I <- lists:seq(1, N)] ++ S,
            From ! {self(), length(New)},
            server(Kind, New);
        {From, sum} ->
            Wrong = [K || {{K, I}, V} <- S, not same(V, value(K, I))],
            From ! {self(), {length(S), Wrong}},
            server(Kind, S);
        {From, forget} -> From ! {self(), forgotten}, server(Kind, []);
        stop -> ok
    end.

same(V, W) when is_function(V) -> V(3) =:= W(3);
same(V, W) -> V =:= W.

value(map, I) -> #{i => I, {I} => [I, I + 1]};
value(list, I) -> lists:seq(I, I + I rem 7);
value(tuples, I) -> {I, {I, name}, [I | none], I * 1.5};
value(binaries, I) -> <<_:2/binary, B/binary>> = binary:copy(<<I:32>>, 5 + I rem 40), B;
value(funs, I) -> X = {I, [I]}, fun(Y) -> {X, Y, I} end.
