%% Processes hibernate repeatedly and keep their arguments, whatever wakes them.
%% @stress @shared @fence
-module(repeated_hibernation).
-export([main/0, init/1, wake/2]).

main() ->
    Given = #{list => lists:seq(1, 30), text => "text", binary => <<"bytes">>, large => lists:duplicate(300, {a, "b"})},
    Ps = [spawn(?MODULE, init, [{N, Given}]) || N <- lists:seq(1, 5)],
    [ask(P, {message, lists:seq(1, N), [N]}) || N <- lists:seq(1, 60), P <- Ps],
    %% Woken by what is no message, it goes on waiting; what asks for its state sees it so.
    [begin
         true = garbage_collect(P),
         {current_function, {erlang, hibernate, 3}} = process_info(P, current_function),
         link(P), unlink(P),
         demonitor(monitor(process, P)),
         erlang:suspend_process(P), erlang:resume_process(P),
         ask(P, again)
     end || _ <- lists:seq(1, 5), P <- Ps],
    %% Messages that are there already.
    [[P ! {self(), N} || N <- lists:seq(1, 20)] || P <- Ps],
    io:format("~p~n", [[[receive {P, _, N, S} -> S end || N <- lists:seq(1, 20)] || P <- Ps]]),
    io:format("~p~n", [ask(hd(Ps), stop)]).

ask(P, What) ->
    P ! {self(), What},
    receive {P, _, What, S} -> S after 5000 -> exit({no_answer, What}) end.

init(State) -> erlang:hibernate(?MODULE, wake, [0, State]).

wake(Times, {N, Given} = State) ->
    #{list := L, text := "text", binary := <<"bytes">>, large := Large} = Given,
    {465, 300} = {lists:sum(L), length(Large)},
    receive
        {From, What} -> From ! {self(), Times, What, N}
    end,
    erlang:hibernate(?MODULE, wake, [Times + 1, State]).
