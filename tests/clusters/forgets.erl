%% The first node has the second one count, and compares. A count is confirmed once it was made.
%% WRONG: the count is in memory only, so that it is lost where the second node ends.
%% Run: purlin schedules --nodes 2 --faults kill -- run forgets.erl
-module(forgets).
-export([main/1]).
-mode(compile).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    [First, Second] = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    {ok, _} = net_kernel:start([Me, shortnames]),
    register(counter, self()),
    case Me of
        First -> asks(Second, 20, 0, 100);
        Second -> counts(0)
    end.

counts(N) ->
    receive
        {add, From, Id} ->
            From ! {Id, N + 1},
            counts(N + 1);
        stop ->
            ok
    after 120000 ->
        ok
    end.

%% What was asked for without an answer may have been counted or not.
asks(Other, 0, _, _) ->
    io:put_chars("nothing was lost\n"),
    {counter, Other} ! stop;
asks(_, _, _, 0) ->
    io:put_chars("gave up\n");
asks(Other, Left, Sure, Tries) ->
    timer:sleep(100),
    net_kernel:connect_node(Other),
    Id = make_ref(),
    {counter, Other} ! {add, self(), Id},
    receive
        {Id, N} when N > Sure -> asks(Other, Left - 1, Sure + 1, Tries);
        {Id, N} -> io:format("FAIL: ~p were confirmed, and ~p is the next~n", [Sure, N]), halt(1)
    after 1000 ->
        asks(Other, Left, Sure, Tries - 1)
    end.
