%% A process that waits to accept calls accept again. Since OTP 27 that cancels the first wait, and
%% the process is notified.
-module(socket_accepts_again).
-export([main/0]).

main() ->
    {ok, L} = socket:open(inet, stream),
    ok = socket:bind(L, #{family => inet, addr => {127, 0, 0, 1}, port => 0}),
    ok = socket:listen(L),
    {ok, #{port := Port}} = socket:sockname(L),
    One = waits(socket:accept(L, nowait)),
    Two = waits(socket:accept(L, nowait)),
    told(One, Two),
    io:format("cancelled ~p ~p~n", [is_ok(socket:cancel(L, Two)), is_ok(socket:cancel(L, One))]),
    told(One, Two),
    Three = waits(socket:accept(L, nowait)),
    Four = waits(socket:accept(L, nowait)),
    {ok, C} = socket:open(inet, stream),
    ok = socket:connect(C, #{family => inet, addr => {127, 0, 0, 1}, port => Port}),
    told(Three, Four),
    {ok, A} = socket:accept(L, nowait),
    told(Three, Four),
    %% By a handle of the caller's own, twice the same.
    H = make_ref(),
    io:format("~p~n", [[element(1, socket:accept(L, H)) || _ <- [1, 2]]]),
    told({select_info, accept, H}, {select_info, accept, none}),
    %% Who waits to receive may do so again, and hears nothing of that.
    Five = waits(socket:recv(A, 0, nowait)),
    Six = waits(socket:recv(A, 0, nowait)),
    told(Five, Six),
    io:format("closed ~p~n", [socket:close(A)]),
    told(Five, Six),
    io:format("closed ~p~n", [socket:close(L)]),
    told({select_info, accept, H}, {select_info, accept, none}).

waits({select, {select_info, _, _} = I}) -> I.

is_ok(ok) -> ok;
is_ok({error, {invalid, _}}) -> invalid.

%% The messages of the next moment.
told({_, _, A}, {_, _, B}) ->
    Name = fun(R) when R =:= A -> first; (R) when R =:= B -> second; (_) -> other end,
    receive
        {'$socket', _, select, R} -> io:format("select ~p~n", [Name(R)]), told({i, i, A}, {i, i, B});
        {'$socket', _, abort, {R, Why}} -> io:format("abort ~p ~p~n", [Name(R), Why]), told({i, i, A}, {i, i, B})
    after 100 -> io:format("--~n")
    end.
