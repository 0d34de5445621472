-module(lost).
-export([main/1, wait/1]).

%% The pool forgets two jobs that wait for it, and the watch forgets its references.
main(_) ->
    Pool = spawn(fun pool/0),
    register(shop_pool, Pool),
    register(shop_watch, spawn(fun() -> watch(Pool, 1200) end)),
    timer:sleep(200),
    io:format("ready~n"),
    receive stop -> ok end.

pool() ->
    [spawn(lost, wait, [N]) || N <- [1, 2]],
    receive stop -> ok end.

wait(N) ->
    receive {go, N} -> ok end.

watch(_, 0) ->
    receive stop -> ok end;
watch(Pool, N) ->
    erlang:monitor(process, Pool),
    watch(Pool, N - 1).
