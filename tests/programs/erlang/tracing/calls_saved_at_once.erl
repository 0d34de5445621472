%% Calls are saved from the call that turns this on until the one that turns it off, wherever the
%% code was compiled.
-module(calls_saved_at_once).
-export([main/0, run/2, a/1, b/1, c/1, serve/1, d/0]).
main() ->
    %% Often enough that all of this has machine code.
    [run(N, false) || N <- lists:seq(1, 3000)],
    io:format("~p~n", [[run(N, true) || N <- [1, 2]]]),
    %% By the pid of its own as well.
    Own = [begin
        Old = erlang:process_flag(self(), save_calls, 30 + N), ?MODULE:d(), ?MODULE:a(N),
        {last_calls, Saved} = process_info(self(), last_calls),
        {Old, [F || {?MODULE, F, _} <- Saved, F =/= d], catch element(1, erlang:process_flag(self(), save_calls, -N))}
    end || N <- [1, 2]],
    io:format("~p~n", [Own]),
    io:format("~p~n", [erlang:process_flag(self(), save_calls, 0)]),
    P = spawn(fun() -> serve(0) end),
    [begin P ! {self(), N}, receive {P, _} -> ok end end || N <- lists:seq(1, 3000)],
    io:format("~p~n", [erlang:process_flag(P, save_calls, 20)]),
    P ! {self(), 1}, receive {P, R} -> io:format("~p~n", [R]) end,
    P ! {self(), 2}, receive {P, R2} -> io:format("~p~n", [R2]) end,
    io:format("~p~n", [erlang:process_flag(P, save_calls, 0)]),
    P ! {self(), 3}, receive {P, R3} -> io:format("~p~n", [R3]) end.
run(N, Told) ->
    0 = erlang:process_flag(save_calls, case Told of true -> 30; false -> 0 end),
    %% Stock does not save the first one.
    ?MODULE:d(),
    X = ?MODULE:a(N),
    {last_calls, L} = process_info(self(), last_calls),
    erlang:process_flag(save_calls, 0),
    {X, is_list(L) andalso [C || {?MODULE, F, _} = C <- L, F =/= d]}.
d() -> ok.
a(N) -> ?MODULE:b(N) + ?MODULE:c(N).
b(N) -> ?MODULE:c(N) + 1.
c(N) -> N * 2.
serve(N) ->
    receive {From, M} ->
        X = ?MODULE:a(M),
        {last_calls, L} = process_info(self(), last_calls),
        From ! {self(), {X, is_list(L) andalso [C || {?MODULE, _, _} = C <- L]}},
        ?MODULE:serve(N + X)
    end.
