%% Checks the output of the logger: crash reports of processes and generic servers, log levels, own
%% messages.
-module(logger_output).
-behaviour(gen_server).
-export([main/0, init/1, handle_call/3, handle_cast/2]).
-include_lib("kernel/include/logger.hrl").

init(X) -> {ok, X}.
handle_call(X, _, S) -> {reply, X, S}.
handle_cast(crash, S) -> error({crashed, S}).

main() ->
    ok = logger:add_primary_filter(tell, {fun tell/2, self()}),
    ?LOG_ERROR("an error ~p", [1]),
    ?LOG_WARNING(#{what => map, n => 2}),
    logger:notice("notice"),
    logger:info("info is not shown"),
    error_logger:error_msg("old style ~s~n", ["message"]),
    error_logger:error_report([{key, value}, {other, "text"}]),
    {P, R} = spawn_monitor(fun() -> error(oops) end),
    receive {'DOWN', R, process, P, _} -> logged(P) end,
    {P2, R2} = spawn_monitor(fun() -> lists:map(fun(X) -> 1 / X end, [1, 0]) end),
    receive {'DOWN', R2, process, P2, _} -> logged(P2) end,
    {P3, R3} = spawn_monitor(fun() -> exit(quiet) end),
    receive {'DOWN', R3, process, P3, _} -> ok end,
    {P4, R4} = spawn_monitor(fun() -> throw(ball) end),
    receive {'DOWN', R4, process, P4, _} -> logged(P4) end,
    {ok, G} = gen_server:start({local, crasher}, ?MODULE, state, []),
    R5 = monitor(process, G),
    gen_server:cast(G, crash),
    receive {'DOWN', R5, process, G, _} -> ok end,
    R6 = monitor(process, proc_lib:spawn(fun() -> exit(proc_lib_exit) end)),
    receive {'DOWN', R6, _, _, _} -> ok end,
    logger:set_primary_config(level, info),
    logger:info("info is shown now"),
    logger:set_module_level(?MODULE, error),
    ?LOG_INFO("not shown"),
    _ = logger_std_h:filesync(default),
    timer:sleep(100).

tell(#{meta := #{pid := Pid}}, Main) -> Main ! {event, Pid}, ignore;
tell(_, _) -> ignore.

%% What the emulator reports of a process that ended goes by way of another process, which has asked
%% the filter by then, and has handed it on when it answers.
logged(Pid) ->
    receive {event, Pid} -> ok end,
    _ = sys:get_state(logger_proxy),
    ok.
