%% Many links and monitors of a port are removed in any order. When the port closes, the remaining
%% ones are notified, and no others. @stress @fence
-module(a_port_keeps_many_links_and_monitors).
-export([main/0]).

main() ->
    [one_watcher(N) || N <- [1, 2, 16, 17, 40, 700]],
    [many_processes(N) || N <- [1, 3, 16, 18, 300]],
    same_process_twice(),
    waiting().

%% One process that monitors the port N times and takes two of three monitors away.
one_watcher(N) ->
    P = port(),
    Ms = [erlang:monitor(port, P) || _ <- lists:seq(1, N)],
    {Gone, Left} = split(Ms),
    N = length(by(P)),
    [true = erlang:demonitor(M, [info]) || M <- shuffle(Gone)],
    %% Gone already.
    [false = erlang:demonitor(M, [info]) || M <- Gone],
    Watching = length(by(P)),
    port_close(P),
    Told = lists:sort([receive {'DOWN', M, port, P, normal} -> M end || M <- Left]),
    io:format("~w monitors, ~w left, all told: ~w, no others: ~w~n",
              [N, Watching, Told =:= lists:sort(Left), receive {'DOWN', _, _, _, _} -> false after 0 -> true end]).

%% N processes with a link and a monitor each; some take both away, some end.
many_processes(N) ->
    P = port(),
    Me = self(),
    Ks = [spawn(fun() -> process_flag(trap_exit, true), M = erlang:monitor(port, P), link(P), Me ! {self(), up}, one(P, M, Me) end)
          || _ <- lists:seq(1, N)],
    [receive {K, up} -> ok end || K <- Ks],
    {Gone, Left} = split(shuffle(Ks)),
    {End, Undo} = lists:split(length(Gone) div 2, Gone),
    %% A linked process that ends normally does not end the port.
    Rs = [{monitor(process, K), K ! stop} || K <- End],
    [receive {'DOWN', R, process, _, _} -> ok end || {R, _} <- Rs],
    [K ! undo || K <- Undo],
    [receive {K, undone} -> ok end || K <- Undo],
    wait(fun() -> length(by(P)) =:= length(Left) end),
    {links, Links} = erlang:port_info(P, links),
    io:format("~w processes: ~w linked, ~w watching~n", [N, length(Links) - 1, length(by(P))]),
    true = lists:sort(Links -- [Me]) =:= lists:sort(Left),
    true = lists:sort(by(P)) =:= lists:sort(Left),
    [K ! tell || K <- Left],
    unlink(P),
    exit(P, over),
    Heard = [receive {K, W} -> W end || K <- Left],
    [K ! tell || K <- Undo],
    Others = [receive {K, W} -> W end || K <- Undo],
    io:format("told: ~w, the others: ~w~n", [lists:usort(Heard), lists:usort(Others)]).

one(P, M, Me) ->
    receive
        stop -> ok;
        undo -> erlang:demonitor(M), unlink(P), Me ! {self(), undone}, undone(P, M, Me);
        tell -> Me ! {self(), [receive {'EXIT', P, Why} -> Why end, receive {'DOWN', M, port, P, Why} -> Why end]}
    end.
undone(P, M, Me) ->
    receive tell -> ok end,
    Me ! {self(), receive {'EXIT', P, Why} -> Why; {'DOWN', M, port, P, Why} -> Why after 30 -> nothing end}.

same_process_twice() ->
    P = port(),
    [link(P) || _ <- lists:seq(1, 30)],
    {links, L} = erlang:port_info(P, links),
    io:format("linked once: ~w~n", [L =:= [self()]]),
    unlink(P),
    {links, None} = erlang:port_info(P, links),
    io:format("and not at all: ~w~n", [None]),
    port_close(P).

%% Many processes wait for a socket that nobody reads; all go on when it is read, or fail when it is
%% closed.
waiting() ->
    [begin
         {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {recbuf, 4096}]),
         {ok, No} = inet:port(L),
         {ok, S} = gen_tcp:connect({127, 0, 0, 1}, No, [binary, {active, false}, {sndbuf, 4096}, {high_watermark, 8192}, {low_watermark, 4096}]),
         {ok, A} = gen_tcp:accept(L),
         fill(S),
         Me = self(),
         Ks = [spawn(fun() -> Me ! {self(), gen_tcp:send(S, <<"x">>)} end) || _ <- lists:seq(1, 60)],
         timer:sleep(100),
         {Some, _} = lists:split(20, shuffle(Ks)),
         [exit(K, kill) || K <- Some],
         Last = case How of
                    read -> spawn_link(fun() -> drain(A) end);
                    close -> gen_tcp:close(A), none
                end,
         Got = [receive {K, W} -> case W of ok -> ok; {error, _} -> error end end || K <- Ks -- Some],
         io:format("~w: ~w of ~w~n", [How, lists:usort(Got), length(Got)]),
         is_pid(Last) andalso begin unlink(Last), exit(Last, kill) end,
         gen_tcp:close(S), gen_tcp:close(A), gen_tcp:close(L)
     end || How <- [read, close]].
%% Sends until the port is busy.
fill(S) ->
    F = spawn(fun() -> (fun Loop() -> gen_tcp:send(S, <<0:80000>>), Loop() end)() end),
    wait(fun() -> timer:sleep(20), process_info(F, status) =:= {status, suspended} orelse waits(F) end),
    exit(F, kill).
waits(F) -> element(1, process_info(F, current_function)) =:= current_function andalso
    begin {_, A} = process_info(F, reductions), timer:sleep(50), {_, B} = process_info(F, reductions), A =:= B end.
drain(A) -> case gen_tcp:recv(A, 0) of {ok, _} -> drain(A); _ -> ok end.

port() -> open_port({spawn, "cat"}, []).
by(P) -> {monitored_by, L} = erlang:port_info(P, monitored_by), L.
split(L) -> {[X || {I, X} <- lists:enumerate(L), I rem 3 =/= 0], [X || {I, X} <- lists:enumerate(L), I rem 3 =:= 0]}.
%% The same order each time.
shuffle(L) -> [X || {_, X} <- lists:sort([{erlang:phash2({I, 7}), X} || {I, X} <- lists:enumerate(L)])].
wait(F) -> case F() of true -> ok; false -> timer:sleep(5), wait(F) end.
