-module(grow).
-export([main/1]).

%% A cache that only grows.
main(_) ->
    register(shop_cache, spawn(fun() -> cache([]) end)),
    shop_cache ! {self(), fill},
    receive filled -> io:format("ready~n") end,
    receive stop -> ok end.

cache(Entries) ->
    receive {From, fill} ->
        Filled = put_more(200000, Entries),
        From ! filled,
        cache(Filled)
    end.

put_more(0, Entries) -> Entries;
put_more(N, Entries) -> put_more(N - 1, [{N, price} | Entries]).
