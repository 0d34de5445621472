-module(bill).
-export([main/1]).

%% Three processes of a budget never stop.
main(_) ->
    {ok, Budget} = purlin:budget(#{name => tenant, memory => 16 bsl 20, cpu => 10,
                                   processes => 100, messages => 1000, atoms => 500}),
    [spawn_opt(fun busy/0, [{budget, Budget}]) || _ <- [1, 2, 3]],
    timer:sleep(500),
    io:format("ready~n"),
    receive stop -> ok end.

busy() -> busy().
