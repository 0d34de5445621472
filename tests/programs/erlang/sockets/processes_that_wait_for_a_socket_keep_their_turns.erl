%% Many processes wait to receive from one socket. Some time out, some end, and the others are
%% served in order of arrival. @stress
-module(processes_that_wait_for_a_socket_keep_their_turns).
-export([main/0]).

main() -> [run(N) || N <- [2, 3, 16, 17, 90]].

run(N) ->
    {ok, S} = socket:open(inet, dgram, udp),
    ok = socket:bind(S, #{family => inet, addr => {127, 0, 0, 1}, port => 0}),
    {ok, Address} = socket:sockname(S),
    {ok, From} = socket:open(inet, dgram, udp),
    Me = self(),
    Ks = [begin
              K = spawn(fun() -> waits(S, Me, I) end),
              receive {K, Answer} -> select = Answer end,
              K
          end || I <- lists:seq(1, N)],
    #{readers := R} = count(S),
    Numbered = lists:enumerate(Ks),
    %% Every third one gives up, every fifth ends; from behind and from the front.
    GiveUp = [X || X = {I, _} <- Numbered, I rem 3 =:= 0],
    End = [X || X = {I, _} <- Numbered, I rem 5 =:= 0, I rem 3 =/= 0],
    [begin K ! cancel, receive {K, Answer} -> ok = Answer end end || {_, K} <- lists:reverse(GiveUp)],
    [begin M = monitor(process, K), exit(K, kill), receive {'DOWN', M, _, _, _} -> ok end end || {_, K} <- End],
    %% A process that waits already may not wait again.
    {_, Last} = lists:last(Numbered -- (GiveUp ++ End)),
    Last ! again,
    Again = receive {Last, A} -> A end,
    Left = [I || {I, _} <- Numbered -- (GiveUp ++ End)],
    Served = [begin ok = socket:sendto(From, <<I:32>>, Address), receive {served, Who, <<No:32>>} -> {Who, No} end end || I <- Left],
    io:format("~w readers counted: ~w, again: ~w~nserved in order: ~w~n", [N, R, Again, [W || {W, _} <- Served] =:= Left]),
    true = [No || {_, No} <- Served] =:= Left,
    %% Nobody is left in the queue.
    ok = socket:sendto(From, <<"end">>, Address),
    io:format("~w~n", [socket:recv(S, 0, 1000)]),
    [exit(K, kill) || K <- Ks],
    socket:close(S), socket:close(From).

count(S) -> #{num_readers := R} = maps:merge(#{num_readers => none}, socket:info(S)), #{readers => R}.

waits(S, Me, I) ->
    {select, Info} = socket:recv(S, 0, nowait),
    Me ! {self(), select},
    wait(S, Me, I, Info).
wait(S, Me, I, Info = {select_info, _, Ref}) ->
    receive
        cancel -> Me ! {self(), socket:cancel(S, Info)};
        again ->
            Me ! {self(), case catch socket:recv(S, 0, nowait) of {select, _} -> select; {error, W} -> W; {'EXIT', _} -> exit end},
            wait(S, Me, I, Info);
        {'$socket', S, select, Ref} ->
            case socket:recv(S, 0, nowait) of
                {ok, Data} -> Me ! {served, I, Data};
                {select, New} -> wait(S, Me, I, New)
            end
    end.
