%% Checks vectored writes of module `socket` (OTP 27): a write that waits ends by its time-out or by
%% `cancel`. Earlier releases do not have them. @stress @shared @fence
-module(socket_vectors).
-export([main/0]).

main() ->
    {module, socket} = code:ensure_loaded(socket),
    case erlang:function_exported(socket, sendv, 3) of
        true -> [io:format("~w: ~0p~n", [F, try t(F) catch C:R:S -> {C, R, [element(2, E) || E <- lists:sublist(S, 1)]} end])
                 || F <- [whole, timeout, nowait, closed]];
        false -> io:format("none~n")
    end.

pair() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:setopt(L, {socket, rcvbuf}, 16384),
    ok = socket:listen(L),
    {ok, Address} = socket:sockname(L),
    {ok, A} = socket:open(inet, stream, tcp),
    ok = socket:setopt(A, {socket, sndbuf}, 16384),
    ok = socket:connect(A, Address),
    {ok, B} = socket:accept(L),
    socket:close(L),
    {A, B}.
data() -> [<<"head">>, binary:copy(<<"0123456789abcdef">>, 1 bsl 16), <<"tail">>].
received(B) -> received(B, 0, <<>>).
received(B, N, Last) ->
    case socket:recv(B, 0, 5000) of
        {ok, D} -> received(B, N + byte_size(D), binary:last(D));
        {error, R} -> {R, N, Last}
    end.

t(whole) ->
    {A, B} = pair(),
    Me = self(),
    spawn(fun() -> Me ! {got, received(B)} end),
    R = socket:sendv(A, data()),
    socket:close(A),
    {R, receive {got, G} -> G end};
%% What was not written comes back: with it the rest can be sent.
t(timeout) ->
    {A, B} = pair(),
    {error, {timeout, Rest}} = socket:sendv(A, data(), 200),
    Left = iolist_size(Rest),
    Me = self(),
    spawn(fun() -> Me ! {got, received(B)} end),
    R = socket:sendv(A, Rest),
    socket:close(A),
    {Left > 0, Left < iolist_size(data()), R, receive {got, G} -> G end};
t(nowait) ->
    {A, B} = pair(),
    {select, {{select_info, Op, _} = Info, Rest}} = case socket:sendv(A, data(), nowait) of
        {select, {select_info, _, _} = I} -> {select, {I, []}};
        Other -> Other
    end,
    R = [socket:cancel(A, Info), is_list(Rest) andalso Rest =/= []],
    C = socket:close(B),
    {Op, R, C, socket:close(A)};
t(closed) ->
    {A, B} = pair(),
    socket:close(B),
    socket:close(A),
    socket:sendv(A, [<<"x">>]).
