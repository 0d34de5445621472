%% Requests large process information about oneself and others: messages, dictionary, links and
%% monitors, with binaries and shared terms. The results outlive the process. @stress @shared @fence
-module(process_info_of_many).
-export([main/0]).

main() ->
    Me = self(),
    [self() ! message(I) || I <- lists:seq(1, 300)],
    show(self, messages, fun(P) -> process_info(P, messages) end),
    [receive _ -> ok end || _ <- lists:seq(1, 300)],
    [put({k, I}, message(I)) || I <- lists:seq(1, 300)],
    show(self, dictionary, fun(P) -> {D, L} = process_info(P, dictionary), {D, [E || {{k, _}, _} = E <- lists:sort(L)]} end),
    Other = spawn(fun() ->
        [put({k, I}, message(I)) || I <- lists:seq(1, 300)],
        Me ! ready,
        receive stop -> ok end
    end),
    receive ready -> ok end,
    [Other ! message(I) || I <- lists:seq(1, 300)],
    {messages, Kept} = process_info(Other, messages),
    [{messages, Same}, {message_queue_len, 300}] = process_info(Other, [messages, message_queue_len]),
    {dictionary, Dict} = process_info(Other, dictionary),
    M = monitor(process, Other),
    exit(Other, kill),
    receive {'DOWN', M, _, _, _} -> ok end,
    erlang:garbage_collect(),
    io:format("~w~n", [{Kept =:= Same, erlang:phash2(Kept), length(Dict),
                        [E || {{k, I}, T} = E <- Dict, T =/= message(I)]}]),
    Ps = [spawn_link(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 200)],
    Ms = [{process, P} || P <- Ps, is_reference(monitor(process, P))],
    {links, Links} = process_info(self(), links),
    {monitors, Monitors} = process_info(self(), monitors),
    io:format("~w~n", [{Ps -- Links, Ms -- Monitors, length(Monitors)}]),
    %% Answers that are dropped at once, between collections that the process asks for.
    [begin process_info(self(), [links, monitors, dictionary]), erlang:garbage_collect() end || _ <- lists:seq(1, 5)],
    io:format("~w~n", [lists:sort([K || {{k, K}, T} <- get(), T =:= message(K)]) =:= lists:seq(1, 300)]).

message(I) -> {hello, I, [I, <<I:32>>], binary:copy(<<I>>, 100), #{I => {I, 1.5}}}.

%% The answer twice, the first one kept through collections.
show(Who, Item, Ask) ->
    {Item, First} = Ask(self()),
    erlang:garbage_collect(),
    {Item, Second} = Ask(self()),
    io:format("~w~n", [{Who, Item, length(First), erlang:phash2(First), First =:= Second}]).
