%% What it costs to write pages that are made of pieces of one size, by the limit below which pieces
%% are merged: nanoseconds of processor time, of this process, for each kilobyte sent over a
%% loopback TCP connection to a program that throws it away. Run on Purlin, whose limit can be set
%% while it runs:
%%
%%     purlin run benches/gather.erl
-module(gather).
-export([main/1]).

-define(PAGE, 400000).
-define(PAGES, 1500).

main(_) ->
    Limits = [0, 64, 128, 192, 256, 512],
    io:format("piece bytes~s~n", [[io_lib:format("~7b", [L]) || L <- Limits]]),
    [row(Size, Limits) || Size <- [16, 48, 110, 150, 205, 300, 410]].

row(Size, Limits) ->
    Piece = binary:copy(<<"x">>, Size),
    Page = lists:duplicate(?PAGE div Size, Piece),
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    Client = open_port({spawn_executable, "/bin/bash"},
                       [{args, ["-c", "cat < /dev/tcp/127.0.0.1/" ++ integer_to_list(Port) ++ " > /dev/null"]}]),
    {ok, S} = gen_tcp:accept(L),
    %% The least of three, in turn with the other limits.
    Costs = [[cost(S, Page, Limit) || Limit <- Limits] || _ <- [1, 2, 3]],
    Least = [lists:min(C) || C <- transpose(Costs)],
    io:format("~11b~s~n", [Size, [io_lib:format("~7b", [round(C)]) || C <- Least]]),
    gen_tcp:close(S),
    gen_tcp:close(L),
    catch port_close(Client).

cost(S, Page, Limit) ->
    Old = purlin:set_limit(merge, Limit),
    {T0, _} = statistics(runtime),
    [ok = gen_tcp:send(S, Page) || _ <- lists:seq(1, ?PAGES)],
    {T1, _} = statistics(runtime),
    purlin:set_limit(merge, Old),
    (T1 - T0) * 1.0e6 / (?PAGE / 1000 * ?PAGES).

transpose([[] | _]) -> [];
transpose(Rows) -> [[hd(R) || R <- Rows] | transpose([tl(R) || R <- Rows])].
