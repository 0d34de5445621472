%% Calls from other modules are traced, and a process is stopped, mostly just before such a call,
%% while the called module is deleted and purged. When it continues, the function is undefined.
-module(traced_calls_during_purge).
-export([main/0, loop/0]).

main() ->
    logger:set_primary_config(level, none),
    io:format("~p~n", [lists:usort([purged() || _ <- lists:seq(1, 12)])]).

purged() ->
    load(),
    erlang:trace_pattern({c_trace_called, f, 0}, true, [global]),
    {P, R} = spawn_monitor(?MODULE, loop, []),
    timer:sleep(3),
    erlang:suspend_process(P),
    true = code:delete(c_trace_called),
    erlang:trace_pattern({c_trace_called, f, 0}, false, [global]),
    false = code:purge(c_trace_called),
    erlang:resume_process(P),
    receive
        {'DOWN', R, process, P, {undef, [{c_trace_called, f, [], _} | _]}} -> undef;
        {'DOWN', R, process, P, Why} -> Why
    after 10000 -> hangs
    end.

loop() -> called(), loop().

called() -> c_trace_called:f().

load() ->
    Forms = [{attribute, 1, module, c_trace_called}, {attribute, 1, export, [{f, 0}]},
             {function, 1, f, 0, [{clause, 1, [], [], [{atom, 1, x}]}]}],
    {ok, M, Code} = compile:forms(Forms, []),
    {module, M} = code:load_binary(M, "c_trace_called.beam", Code).
