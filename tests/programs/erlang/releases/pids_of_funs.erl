%% Checks the pid that `fun_info` reports: the maker up to OTP 26, then always the first process,
%% also for funs decoded from external terms. @stress @shared @fence
-module(pids_of_funs).
-export([main/0, made/1]).

main() ->
    A = id(7),
    Mine = [fun() -> A end, fun(X) -> X + A end, fun lists:reverse/1, fun made/1, fun(_) -> nothing end],
    Me = self(),
    {P, R} = spawn_monitor(fun() -> Me ! {made, made({large, lists:seq(1, 3000)})} end),
    Others = receive {made, Fs} -> Fs end,
    receive {'DOWN', R, process, P, normal} -> ok end,
    [io:format("~w ~w~n", [who(F, P), (catch who(binary_to_term(term_to_binary(F)), P))]) || F <- Mine ++ Others],
    erlang:garbage_collect(),
    [io:format("~w ~w~n", [who(F, P), binary_to_term(term_to_binary(F)) =:= F]) || F <- Mine ++ Others],
    T = ets:new(t, []),
    ets:insert(T, [{N, F} || {N, F} <- lists:zip(lists:seq(1, length(Mine)), Mine)]),
    [io:format("~w~n", [who(ets:lookup_element(T, N, 2), P)]) || N <- lists:seq(1, length(Mine))],
    [io:format("~w~n", [{erlang:phash2(F), F =:= binary_to_term(term_to_binary(F, [compressed])), erts_debug:flat_size(F) > 0}]) || F <- Others],
    %% The maker stands in what goes out: a fun that another process has made is the same bytes
    %% where nobody knows its maker.
    G = made(here),
    H = ask(fun() -> made(here) end),
    io:format("~w ~w~n", [G =:= H, [term_to_binary(X) =:= term_to_binary(Y) || {X, Y} <- lists:zip(G, H)]]).

made(E) -> [fun() -> E end, fun(X) -> {X, E} end, fun(X, Y) -> [X, Y | element(1, {E})] end].

ask(F) ->
    {P, R} = spawn_monitor(fun() -> exit({done, F()}) end),
    receive {'DOWN', R, process, P, {done, V}} -> V end.

who(F, P) ->
    {pid, Pid} = erlang:fun_info(F, pid),
    case [N || {N, Q} <- [{me, self()}, {init, whereis(init)}, {it, P}], Q =:= Pid] of
        [N] -> {N, proplists:get_value(pid, erlang:fun_info(F)) =:= Pid};
        [] -> {other, Pid}
    end.

id(X) -> X.
