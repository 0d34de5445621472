%% A process that sends a long list over TLS with `{packet, 4}` is killed, ends or is suspended
%% midway. No frame is torn, and others continue to send. @seconds 60
-module(ssl_frames).
-export([main/0]).

main() ->
    {ok, _} = application:ensure_all_started(ssl),
    logger:set_primary_config(level, none),
    Key = [{digest, sha256}, {key, {rsa, 2048, 65537}}],
    Chain = #{root => Key, intermediates => [], peer => Key},
    #{server_config := Server, client_config := Client} = public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    [io:format("~p ~p: ~p~n", [Version, How, lists:usort([run(Server, Client, Version, How, Delay) || Delay <- [0, 5, 30]])])
     || Version <- ['tlsv1.2', 'tlsv1.3'], How <- [kill, exit, suspend]].

run(ServerOpts, ClientOpts, Version, How, Delay) ->
    Options = [{versions, [Version]}, {packet, 4}, {active, false}, binary],
    {ok, L} = ssl:listen(0, Options ++ ServerOpts),
    {ok, {_, Port}} = ssl:sockname(L),
    Me = self(),
    spawn_link(fun() ->
        {ok, S0} = ssl:transport_accept(L),
        {ok, S} = ssl:handshake(S0),
        Me ! {got, frames(S, [])}
    end),
    {ok, C} = ssl:connect("localhost", Port, Options ++ [{verify, verify_none} | ClientOpts], 20000),
    Long = [[<<N:32>>, integer_to_list(N)] || N <- lists:seq(1, 100000)],
    {P, M} = spawn_monitor(fun() -> ok = ssl:send(C, Long) end),
    receive after Delay -> ok end,
    case How of
        kill -> exit(P, kill);
        exit -> exit(P, enough);
        suspend -> catch erlang:suspend_process(P)
    end,
    After = ssl:send(C, <<"after">>),
    How =:= suspend andalso (catch erlang:resume_process(P)),
    receive {'DOWN', M, process, P, _} -> ok end,
    Last = ssl:send(C, <<"last">>),
    receive
        {got, Frames} ->
            %% The long one may not have been sent.
            {After, Last, lists:usort([B || B <- Frames, B =/= iolist_to_binary(Long)])}
    end.

frames(S, Got) ->
    case ssl:recv(S, 0, 30000) of
        {ok, <<"last">> = B} -> [B | Got];
        {ok, B} -> frames(S, [B | Got]);
        Error -> [Error | Got]
    end.
