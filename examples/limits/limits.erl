%% Programs that grow without end, in four ways, while a server answers. Where the memory of the
%% node is limited the one that grows is to end, and the server is to go on.
%%
%% `erl -noshell -run limits main WAY`: `heap`, one growing process; `many`, a thousand of them;
%% `binaries`, one that holds large binaries; `ets`, one that fills a table of its own.
%% `scripts/containers.sh` runs all in a group of 256 MiB.
-module(limits).
-export([main/1, heap/1]).

main([Way]) ->
    Server = spawn_link(fun() -> serve(lists:seq(1, 100000)) end),
    logger:update_primary_config(#{level => error}),
    io:format("limit ~p~n", [limit()]),
    Refs = [element(2, spawn_monitor(fun() -> grow(Way) end)) || _ <- lists:seq(1, count(Way))],
    Why = receive {'DOWN', _, process, _, Reason} -> Reason after most() -> nobody end,
    io:format("ended ~p~n", [Why]),
    %% The others of many go on growing meanwhile.
    [ask(Server) || _ <- lists:seq(1, 500)],
    Left = Why =/= nobody andalso length(Refs) > 1 andalso length(Refs) - 1 > ended(0),
    io:format("others live: ~p~nserves~n", [Left]),
    halt(0).

ended(N) -> receive {'DOWN', _, process, _, _} -> ended(N + 1) after 0 -> N end.

%% Milliseconds until one ends, at most. An answer takes half of it at most.
most() -> 1000 * list_to_integer(os:getenv("SECONDS_MOST", "60")).

limit() -> try erlang:system_info(memory_limit) catch error:badarg -> unknown end.

count("many") -> 1000;
count(_) -> 1.

serve(State) ->
    receive {ask, From, N} -> From ! {answer, lists:nth(N, State)}, serve(State) end.

ask(Server) ->
    Server ! {ask, self(), N = rand:uniform(100000)},
    receive {answer, N} -> timer:sleep(5) after most() div 2 -> exit(no_answer) end.

grow("heap") -> heap([]);
grow("many") -> many([]);
grow("binaries") -> binaries([], 0);
grow("ets") -> table(ets:new(table, [public]), 0).

heap(L) -> heap([{self(), length([a, b, c])} | L]).

many(L) -> timer:sleep(10), many([lists:seq(1, 50) | L]).

binaries(L, N) -> binaries([binary:copy(<<N:64>>, 65536) | L], N + 1).

table(T, N) -> ets:insert(T, {N, {value, N, lists:duplicate(10, N)}}), table(T, N + 1).
