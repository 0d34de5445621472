%% What a client asks of a broker: a queue that confirms what it has got, a consumer, an exchange by
%% topics, a queue that is not there. `erl -run ask main PORT`, with RabbitMQ's libraries in
%% `ERL_LIBS`.
-module(ask).
-export([main/1]).
-include_lib("amqp_client/include/amqp_client.hrl").

main([Port]) ->
    {ok, C} = amqp_connection:start(#amqp_params_network{port = list_to_integer(Port)}),
    {ok, Ch} = amqp_connection:open_channel(C),
    io:format("2000 messages: ~p~n", [through_queue(Ch, 2000)]),
    io:format("topics: ~p~n", [topics(Ch)]),
    process_flag(trap_exit, true),
    Missing = try amqp_channel:call(Ch, #'queue.declare'{queue = <<"missing">>, passive = true}) catch exit:{Why, _} -> Why end,
    io:format("missing: ~p~n", [Missing]),
    amqp_connection:close(C),
    halt(0).

through_queue(Ch, N) ->
    #'queue.declare_ok'{} = amqp_channel:call(Ch, #'queue.declare'{queue = <<"q">>}),
    #'confirm.select_ok'{} = amqp_channel:call(Ch, #'confirm.select'{}),
    [publish(Ch, <<>>, <<"q">>, integer_to_binary(I)) || I <- lists:seq(1, N)],
    true = amqp_channel:wait_for_confirms(Ch, 120),
    #'basic.consume_ok'{consumer_tag = Tag} = amqp_channel:subscribe(Ch, #'basic.consume'{queue = <<"q">>}, self()),
    receive #'basic.consume_ok'{} -> ok end,
    Sum = lists:sum([consume(Ch) || _ <- lists:seq(1, N)]),
    #'basic.cancel_ok'{} = amqp_channel:call(Ch, #'basic.cancel'{consumer_tag = Tag}),
    #'queue.delete_ok'{message_count = Left} = amqp_channel:call(Ch, #'queue.delete'{queue = <<"q">>}),
    {sum, Sum, left, Left}.

consume(Ch) ->
    receive
        {#'basic.deliver'{delivery_tag = D}, #amqp_msg{payload = P}} ->
            amqp_channel:cast(Ch, #'basic.ack'{delivery_tag = D}),
            binary_to_integer(P)
    after 60000 -> exit(late)
    end.

topics(Ch) ->
    #'exchange.declare_ok'{} = amqp_channel:call(Ch, #'exchange.declare'{exchange = <<"t">>, type = <<"topic">>}),
    #'queue.declare_ok'{queue = Q} = amqp_channel:call(Ch, #'queue.declare'{exclusive = true}),
    #'queue.bind_ok'{} = amqp_channel:call(Ch, #'queue.bind'{queue = Q, exchange = <<"t">>, routing_key = <<"a.*">>}),
    [publish(Ch, <<"t">>, K, K) || K <- [<<"a.b">>, <<"b.a">>, <<"a.c">>]],
    true = amqp_channel:wait_for_confirms(Ch, 60),
    [got(amqp_channel:call(Ch, #'basic.get'{queue = Q, no_ack = true})) || _ <- [1, 2, 3]].

got({_, #amqp_msg{payload = P}}) -> P;
got(#'basic.get_empty'{}) -> empty.

publish(Ch, Exchange, Key, Payload) ->
    amqp_channel:cast(Ch, #'basic.publish'{exchange = Exchange, routing_key = Key}, #amqp_msg{payload = Payload}).
