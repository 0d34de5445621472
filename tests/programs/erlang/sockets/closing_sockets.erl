%% Closes a socket with much unsent output, and checks its results until everything is sent.
-module(closing_sockets).
-export([main/0]).

main() ->
    process_flag(trap_exit, true),
    [io:format("~p: ~0p~n", [How, closing(How)]) || How <- [close, port_close, message]],
    [io:format("~p: ~0p~n", [How, options(How, Active)]) || How <- [close, port_close], Active <- [true, false]].

%% Options are still set; what comes in meanwhile nobody gets, and all that was queued goes out.
options(How, Active) ->
    none(),
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect("localhost", Port, [binary, {active, Active}, {high_watermark, 50000000}]),
    {ok, S} = gen_tcp:accept(L),
    ok = gen_tcp:send(C, binary:copy(<<"x">>, 9000000)),
    close(How, C),
    Set = [{active, once}, {packet, 1}, {active, true}, {buffer, 100}, {active, 3}, {active, false}, {packet, 0}, {nodelay, true}, {foo, 1}, {active, true}],
    R = [inet:setopts(C, [O]) || O <- Set],
    ok = gen_tcp:send(S, <<1, $a, 1, $b, 1, $c>>),
    timer:sleep(50),
    Again = [inet:setopts(C, [O]) || O <- [{packet, 1}, {active, once}, {active, true}]],
    {ok, All} = gen_tcp:recv(S, 9000000),
    End = gen_tcp:recv(S, 0, 2000),
    ok = gen_tcp:close(S),
    ok = gen_tcp:close(L),
    receive {'EXIT', C, normal} -> ok after 0 -> ok end,
    {R, Again, byte_size(All), End, inet:setopts(C, [{active, true}]), receive M -> M after 0 -> none end}.

closing(How) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect("localhost", Port, [binary, {active, true}, {high_watermark, 50000000}]),
    {ok, S} = gen_tcp:accept(L),
    {ok, Name} = inet:sockname(C),
    ok = gen_tcp:send(C, binary:copy(<<"x">>, 9000000)),
    close(How, C),
    timer:sleep(50),
    R = [result(F) || F <- [
        fun() -> port_command(C, "x") end,
        fun() -> gen_tcp:send(C, "x") end,
        fun() -> gen_tcp:recv(C, 0, 100) end,
        fun() -> gen_tcp:shutdown(C, write) end,
        fun() -> gen_tcp:controlling_process(C, self()) end,
        fun() -> inet:getopts(C, [active, mode, packet, nodelay]) end,
        fun() -> inet:sockname(C) =:= {ok, Name} end,
        fun() -> element(1, inet:peername(C)) end,
        fun() -> inet:getstat(C, [send_oct, recv_oct]) end,
        fun() -> erlang:port_get_data(C) end,
        fun() -> erlang:port_set_data(C, x) end,
        fun() -> erlang:port_call(C, 1, x) end,
        fun() -> erlang:port_connect(C, self()) end,
        fun() -> register(?MODULE, C) end,
        fun() -> erlang:port_info(C, name) end,
        fun() -> lists:member(C, erlang:ports()) end,
        fun() -> gen_tcp:close(C) end]],
    ok = gen_tcp:close(S),
    ok = gen_tcp:close(L),
    R.

close(close, C) -> gen_tcp:close(C);
close(port_close, C) -> port_close(C);
close(message, C) -> C ! {self(), close}.

none() -> receive _ -> none() after 0 -> ok end.

result(F) -> try F() catch _:R -> {raised, R} end.
