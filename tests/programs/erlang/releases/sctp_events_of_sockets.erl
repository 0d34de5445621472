%% Events of SCTP in a socket option: releases differ in whether all must be named. The kernel need
%% not have SCTP, as the socket has another protocol.
-module(sctp_events_of_sockets).
-export([main/0]).

main() ->
    {ok, S} = socket:open(inet, stream, tcp),
    Told = [told(socket:setopt(S, {sctp, events}, V)) || V <- values()],
    io:format("~0p~n", [lists:zip(lists:seq(1, length(Told)), Told)]),
    init:stop().

told({error, {invalid, {socket_option, {sctp, events}, _}}}) -> invalid;
told(R) -> R.

values() ->
    Names = [data_io, association, address, send_failure, peer_error, shutdown, partial_delivery, adaptation_layer, authentication, sender_dry],
    All = fun(V) -> maps:from_list([{K, V} || K <- Names]) end,
    [#{}, #{nonesuch => 1}, #{data_io => true}, #{data_io => 5}, #{association => x, data_io => true}, #{sender_dry => 0, nonesuch => 1},
     All(true), All(false), All(1), maps:remove(shutdown, All(true)), maps:remove(data_io, All(false)), [], {data_io, true}, true].
