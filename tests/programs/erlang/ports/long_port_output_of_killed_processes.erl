%% Processes write lists too long to be queued at once to ports, and are killed, suspended, or may
%% not wait. @stress @fence @shared @seconds 120
-module(long_port_output_of_killed_processes).
-export([main/0]).

main() ->
    Piece = iolist_to_binary(lists:duplicate(25, "0123456789")),
    %% What is made here lies on the sender's heap; the deep part is left open where a part ends.
    Make = fun(N) -> [[[lists:duplicate(70000, Piece), N], lists:duplicate(70001, Piece)], <<"end">>] end,
    [io:format("~p ~p~n", [How, sent(How, Make)]) || How <- [killed, suspended, nosuspend, closed, dropped, in_turn]].

sent(How, Make) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect("localhost", Port, [{sndbuf, 100000}]),
    {ok, S} = gen_tcp:accept(L),
    Want = Make(7),
    Me = self(),
    P = spawn(fun() ->
        Mine = Make(7),
        Me ! made,
        Options = case How of nosuspend -> [nosuspend]; _ -> [] end,
        Me ! {self(), port_command(C, Mine, Options)},
        receive {inet_reply, C, R} -> Me ! R end
    end),
    receive made -> ok end,
    timer:sleep(300),
    case How of
        killed -> exit(P, kill);
        suspended -> catch erlang:suspend_process(P);
        closed -> port_close(C);
        dropped -> gen_tcp:close(S);
        _ -> ok
    end,
    How =:= in_turn orelse timer:sleep(200),
    N = iolist_size(Want),
    Got = case gen_tcp:recv(S, N, 10000) of
        {ok, D} -> {all, D =:= iolist_to_binary(Want)};
        Other -> Other
    end,
    Went = receive {P, Answer} -> Answer after 0 -> none end,
    Later = How =:= killed orelse How =:= suspended,
    Next = Later andalso {gen_tcp:send(C, "next"), gen_tcp:recv(S, 0, 5000)},
    exit(P, kill),
    catch gen_tcp:close(C),
    gen_tcp:close(S),
    gen_tcp:close(L),
    {Got, How =:= nosuspend andalso Went, Next}.
