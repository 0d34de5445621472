%% Traces calls of `erlang:apply/2`, which are shown for processes that start with a fun, and for no
%% others.
-module(traced_apply_of_new_processes).
-export([main/0]).

main() ->
    Self = self(),
    io:format("~p~n", [erlang:trace_pattern({erlang, apply, 2}, true, [local])]),
    erlang:trace(Self, true, [call, set_on_spawn]),
    Wait = fun() -> receive stop -> ok end end,
    P = spawn(Wait),
    Q = spawn(erlang, apply, [Wait, []]),
    {R, M} = spawn_monitor(fun() -> exit(done) end),
    receive {'DOWN', M, process, R, Why} -> io:format("~p~n", [Why]) end,
    N = spawn_link(erlang, apply, [erlang, node, []]),
    L = proc_lib:spawn(Wait),
    apply(fun(X) -> X end, [1]),
    [erlang:trace_delivered(X) || X <- [Self, P, Q, R, N, L]],
    [receive {trace_delivered, X, _} -> ok end || X <- [Self, P, Q, R, N, L]],
    [receive {trace, X, call, {M1, F, [Fun, A]}} -> io:format("~p ~p:~p ~p ~p~n", [Name, M1, F, is_function(Fun), A])
     after 0 -> io:format("~p: no~n", [Name])
     end || {Name, X} <- [{spawn, P}, {mfa, Q}, {monitor, R}, {apply3, N}, {proc_lib, L}, {self, Self}]],
    erlang:trace_pattern({erlang, apply, 2}, false, [local]),
    1 = erlang:trace_pattern({erlang, apply, 2}, true, [call_time]),
    {S, O} = spawn_monitor(Wait),
    S ! stop,
    receive {'DOWN', O, process, S, normal} -> ok end,
    {call_time, T} = erlang:trace_info({erlang, apply, 2}, call_time),
    io:format("~p~n", [[C || {X, C, _, _} <- T, X =:= S]]),
    [X ! stop || X <- [P, Q, L]].
