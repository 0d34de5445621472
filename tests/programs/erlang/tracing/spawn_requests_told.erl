%% Checks the function in trace events of new processes: by `spawn_request` it is one of stock's
%% own, otherwise the initial call. The process itself reports the same.
-module(spawn_requests_told).
-export([main/0, f/0, f/1]).

f() -> ok.
f(_) -> ok.

main() ->
    Here = node(),
    [told(N, F) || {N, F} <- [
        {spawn1, fun() -> spawn(fun ?MODULE:f/0) end},
        {spawn3, fun() -> spawn(?MODULE, f, [1]) end},
        {spawn_node, fun() -> spawn(Here, ?MODULE, f, [1]) end},
        {spawn_opt, fun() -> spawn_opt(?MODULE, f, [1], [link, monitor]) end},
        {request1, fun() -> spawn_request(fun ?MODULE:f/0) end},
        {request3, fun() -> spawn_request(?MODULE, f, [1]) end},
        {request_none, fun() -> spawn_request(?MODULE, f, [], [monitor]) end},
        {request_options, fun() -> spawn_request(?MODULE, f, [1], [monitor, link, {reply_tag, x}]) end},
        {request_silent, fun() -> spawn_request(?MODULE, f, [1], [{reply, no}]) end},
        {request_node, fun() -> spawn_request(Here, ?MODULE, f, [1], [link]) end},
        {request_abandoned, fun() -> spawn_request_abandon(spawn_request(?MODULE, f, [1], [])) end}
    ]],
    W = spawn_request(fun() -> receive stop -> ok end end),
    receive
        {spawn_reply, W, ok, P} ->
            io:format("~p~n", [[process_info(P, I) || I <- [initial_call, dictionary]]]),
            P ! stop
    end.

told(Name, F) ->
    P = spawn(fun() -> process_flag(trap_exit, true), receive go -> F() end, receive never -> ok end end),
    erlang:trace(P, true, [procs, set_on_spawn]),
    P ! go,
    {Child, Function} = receive {trace, P, spawn, C, MFA} -> {C, MFA} end,
    Begun = receive {trace, Child, spawned, P, Same} -> Same end,
    receive {trace, Child, exit, Why} -> ok end,
    io:format("~p: ~p ~p~n", [Name, Function, {Begun =:= Function, Why}]),
    exit(P, kill).
