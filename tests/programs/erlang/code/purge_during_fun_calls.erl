%% Processes call a fun at the end of each time slice while purges of its module begin and are
%% aborted. In between, the fun leads to no code.
-module(purge_during_fun_calls).
-export([main/0]).

main() ->
    code:load_binary(pr_m, "pr_m.erl", comp("f() -> K = erlang:get(k), fun() -> K end.\nwait() -> receive stop -> x end, y.\n")),
    Fun = pr_m:f(),
    L = spawn_link(fun() -> pr_m:wait(), ok end),
    code:load_binary(pr_m, "pr_m.erl", comp("g() -> 1.\n")),
    Me = self(),
    Ps = [spawn_link(fun() -> process_flag(save_calls, 10), caller(Fun, Me, 500000) end) || _ <- [1, 2]],
    T = spawn_link(fun() -> toggler(0) end),
    [receive {done, P} -> ok end || P <- Ps],
    unlink(T),
    exit(T, kill),
    L ! stop,
    io:format("ok~n").

caller(_, Me, 0) -> Me ! {done, self()};
caller(F, Me, N) -> undefined = F(), caller(F, Me, N - 1).

toggler(N) ->
    false = code:soft_purge(pr_m),
    toggler(N + 1).

comp(S) ->
    {ok, Ts, _} = erl_scan:string("-module(pr_m).\n-compile(export_all).\n" ++ S),
    Fs = [element(2, erl_parse:parse_form(F)) || F <- split(Ts, [], [])],
    {ok, _, B} = compile:forms([F || F <- Fs] , [binary, export_all]),
    B.

split([], _, Acc) -> lists:reverse(Acc);
split([{dot, _} = D | R], Cur, Acc) -> split(R, [], [lists:reverse([D | Cur]) | Acc]);
split([T | R], Cur, Acc) -> split(R, [T | Cur], Acc).
