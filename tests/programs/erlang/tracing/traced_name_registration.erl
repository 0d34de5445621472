%% Traces of registering and unregistering a process, also by another process. Also checks which
%% process is suspended, and whether it has been notified.
-module(traced_name_registration).
-export([main/0]).

main() ->
    P = spawn(fun() -> receive stop -> ok end end),
    1 = erlang:trace(P, true, [procs]),
    true = register(somebody, P),
    next(),
    true = unregister(somebody),
    next(),
    erlang:suspend_process(P),
    suspending(),
    erlang:suspend_process(P, [asynchronous]),
    suspending(),
    false = erlang:suspend_process(P, [unless_suspending]),
    erlang:resume_process(P),
    suspending(),
    erlang:resume_process(P),
    suspending(),
    Tag = make_ref(),
    erlang:suspend_process(P, [{asynchronous, Tag}]),
    receive {Tag, How} -> io:format("~p~n", [How]) end,
    suspending(),
    erlang:resume_process(P),
    true = register(somebody, P),
    next(),
    P ! stop,
    next(),
    next().

next() -> receive T -> io:format("~p~n", [T]) after 5000 -> io:format("nothing~n") end.

suspending() -> io:format("~p~n", [process_info(self(), suspending)]).
