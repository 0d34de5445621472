%% A process suspends many others, some several times, and many suspend one. Each suspension counts,
%% and ends with the process that made it. @stress
-module(suspensions_of_many_are_counted).
-export([main/0]).

main() ->
    [by_one(N) || N <- [1, 3, 16, 17, 200]],
    [of_one(N) || N <- [1, 2, 17, 50]].

by_one(N) ->
    Me = self(),
    Ps = [spawn(fun() -> loop() end) || _ <- lists:seq(1, N)],
    [[true = erlang:suspend_process(P) || _ <- lists:seq(1, 1 + I rem 3)] || {I, P} <- lists:enumerate(Ps)],
    [false = erlang:suspend_process(P, [unless_suspending]) || P <- Ps],
    {suspending, L} = process_info(Me, suspending),
    Counts = [1 + I rem 3 || I <- lists:seq(1, N)],
    io:format("~w suspended, counted right: ~w~n", [length(L), lists:sort([C || {_, C, 0} <- L]) =:= lists:sort(Counts)]),
    true = lists:sort([P || {P, _, _} <- L]) =:= lists:sort(Ps),
    [P ! {Me, I} || {I, P} <- lists:enumerate(Ps)],
    [erlang:resume_process(P) || P <- lists:reverse(Ps)],
    %% Those that were suspended once go on.
    Once = [I || I <- lists:seq(1, N), I rem 3 =:= 0],
    Answers = lists:sort([receive {answer, I} -> I end || _ <- Once]),
    timer:sleep(20),
    io:format("gone on: ~w, no others: ~w~n", [Answers =:= Once, receive {answer, _} -> false after 0 -> true end]),
    %% Those that have ended are suspended no more.
    Dead = [P || {I, P} <- lists:enumerate(Ps), I rem 5 =:= 0],
    [begin R = monitor(process, P), exit(P, kill), receive {'DOWN', R, _, _, _} -> ok end end || P <- Dead],
    io:format("of the dead: ~w~n", [lists:usort([catch element(1, element(2, (catch erlang:resume_process(P)))) || P <- Dead])]),
    {suspending, Left} = process_info(Me, suspending),
    io:format("left: ~w~n", [length(Left)]),
    [[erlang:resume_process(P) || _ <- lists:seq(1, C)] || {P, C, 0} <- Left],
    io:format("none: ~w, badarg: ~w~n", [process_info(Me, suspending), (catch element(1, element(2, (catch erlang:resume_process(hd(Ps))))))]),
    Rest = [I || {I, P} <- lists:enumerate(Ps), not lists:member(P, Dead), I rem 3 =/= 0],
    io:format("all the others: ~w~n", [lists:sort([receive {answer, I} -> I end || _ <- Rest]) =:= Rest]),
    [exit(P, kill) || P <- Ps].

of_one(N) ->
    Me = self(),
    P = spawn(fun() -> loop() end),
    Ks = [spawn(fun() -> [erlang:suspend_process(P) || _ <- lists:seq(1, 1 + I rem 2)], Me ! {self(), did}, keep(P) end) || I <- lists:seq(1, N)],
    [receive {K, did} -> ok end || K <- Ks],
    P ! {Me, N},
    {End, Undo} = lists:split(N div 2, Ks),
    Rs = [{monitor(process, K), exit(K, kill)} || K <- lists:reverse(End)],
    [receive {'DOWN', R, _, _, _} -> ok end || {R, _} <- Rs],
    Early = receive {answer, _} -> yes after 30 -> no end,
    [K ! {resume, 1 + I rem 2} || {I, K} <- lists:enumerate(Ks), lists:member(K, Undo)],
    io:format("suspended by ~w: too early ~w, then ~w~n", [N, Early, receive {answer, A} -> A end]),
    [exit(K, kill) || K <- Undo], exit(P, kill).

keep(P) -> receive {resume, C} -> [erlang:resume_process(P) || _ <- lists:seq(1, C)], keep(P) end.
loop() -> receive {From, What} -> From ! {answer, What}, loop() end.
