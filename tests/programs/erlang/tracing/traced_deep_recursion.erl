%% Functions recurse deeply while their calls are timed and traced: trace frames in a limited heap,
%% and exceptions that leave such calls.
-module(traced_deep_recursion).
-export([main/0, seq/3, fall/1, tell/1]).

seq(Stop, Stop, F) when is_function(F) -> [Stop];
seq(Start, Stop, F) when is_function(F) -> [Start | seq(F(Start), Stop, F)].

fall(0) -> error(bottom);
fall(N) -> 1 + tell(N - 1).

tell(N) -> 1 + fall(N).

main() ->
    1 = erlang:trace_pattern({?MODULE, seq, 3}, true, [call_time]),
    1 = erlang:trace_pattern({?MODULE, fall, 1}, true, [call_time]),
    {P, R} = spawn_opt(fun() -> run() end, [monitor, {max_heap_size, 10000}]),
    1 = erlang:trace(P, true, [call]),
    P ! go,
    receive {'DOWN', R, process, P, Why} -> io:format("~p~n", [Why]) end,
    [begin
         {call_time, [{P, N, _, _}]} = erlang:trace_info({?MODULE, F, A}, call_time),
         io:format("~p ~p~n", [F, N])
     end || {F, A} <- [{seq, 3}, {fall, 1}]],
    %% Measured and told at once, with an exception through both kinds of frames.
    1 = erlang:trace_pattern({?MODULE, tell, 1}, [{'_', [], [{exception_trace}]}], [local]),
    Q = spawn(fun() -> receive go -> catch fall(3) end, receive stop -> ok end end),
    1 = erlang:trace(Q, true, [call]),
    Q ! go,
    [receive
         {trace, Q, call, {M, F, A}} -> io:format("call ~p~n", [{M, F, A}]);
         {trace, Q, exception_from, {M, F, A}, What} -> io:format("ended ~p ~p~n", [{M, F, A}, What])
     end || _ <- lists:seq(1, 6)],
    {call_time, L} = erlang:trace_info({?MODULE, fall, 1}, call_time),
    io:format("~p~n", [[N || {X, N, _, _} <- L, X =:= Q]]).

run() ->
    receive go -> ok end,
    io:format("~p~n", [length(seq(1, 1000, fun(X) -> X + 1 end))]),
    {'EXIT', {bottom, St}} = catch fall(50),
    io:format("~p~n", [[{F, A} || {_, F, A, _} <- St]]).
