%% Other processes link to, monitor and inspect hibernating ones. When a message arrives, these
%% still call their function with the right arguments. @stress @shared @fence @seconds 120
-module(hibernated_processes_asked).
-export([main/0, sleep/3, ask/2]).

-define(ROUNDS, 300).

main() ->
    Me = self(),
    Sleepers = [spawn_link(?MODULE, sleep, [Me, N, {N, [N], <<N:800>>}]) || N <- lists:seq(1, 4)],
    Askers = [spawn_link(?MODULE, ask, [Me, Sleepers]) || _ <- lists:seq(1, 8)],
    [receive {done, A} -> ok end || A <- Askers],
    [S ! {stop, Me} || S <- Sleepers],
    io:format("~p~n", [[receive {S, Kept} -> Kept end || S <- Sleepers]]).

sleep(To, N, Kept) ->
    receive
        {call, From} -> From ! {self(), N}, again(To, N, Kept);
        {stop, From} -> From ! {self(), {N, erlang:phash2(Kept)}}
    after 0 ->
        again(To, N, Kept)
    end.

again(To, N, Kept) -> erlang:hibernate(?MODULE, sleep, [To, N, Kept]).

%% Many signals that are no messages, and a message now and then.
ask(To, Sleepers) ->
    [ask_each(S, R) || R <- lists:seq(1, ?ROUNDS), S <- Sleepers],
    unlink(To),
    To ! {done, self()}.

ask_each(S, R) ->
    link(S),
    M = monitor(process, S),
    demonitor(M, [flush]),
    _ = is_process_alive(S),
    unlink(S),
    R rem 10 =:= 0 andalso begin S ! {call, self()}, receive {S, _} -> ok end end.
