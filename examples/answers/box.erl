-module(box).
-export([main/1]).

%% A printer takes longer for an order than its senders do.
main(_) ->
    register(shop_printer, spawn(fun printer/0)),
    shop_printer ! first,
    [shop_printer ! {order, N, <<"two of the blue ones">>} || N <- lists:seq(1, 20000)],
    io:format("ready~n"),
    receive stop -> ok end.

printer() ->
    receive Order -> print(Order), printer() end.

print(_) ->
    receive printed -> ok after 60000 -> ok end.
