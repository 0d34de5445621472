%% A pattern that uses all the steps it is allowed delays no other process, and a process that waits
%% for it can be killed.
-module(regex_that_backtracks_long).
-export([main/0]).

main() ->
    S = lists:duplicate(28, $a) ++ "!",
    {ok, P} = re:compile("^(a+)+$"),
    io:format("~p~n", [[catch re:run(S, "^(a+)+$"), catch re:run(S, P), re:run(S, "^(a+)+$", [report_errors])]]),
    io:format("~p~n", [re:run(S, "^(a+)+$", [report_errors, {match_limit, 100}])]),
    io:format("~p~n", [re:run(S, "^(a+)+$", [report_errors, {match_limit, 100000}])]),
    io:format("~p~n", [re:run(S ++ "ab", "(a+)+b", [report_errors])]),
    Long = binary:copy(<<"ab ">>, 30000),
    io:format("~p~n", [re:run(Long, "^(?:[a-z]+ )*$", [{capture, none}])]),
    io:format("~p~n", [re:run(Long, "(?:[a-z]+ )*$", [{capture, first, index}])]),
    io:format("~p~n", [length(re:split(Long, "(?:b| )+(?=a)"))]),
    erlang:system_flag(schedulers_online, 1),
    io:format("longest wait below 300 ms: ~p~n", [longest(S) < 300]),
    {Pid, M} = spawn_monitor(fun() -> forever(S) end),
    timer:sleep(20),
    exit(Pid, kill),
    receive {'DOWN', M, process, Pid, Why} -> io:format("~p~n", [Why]) end.

forever(S) -> re:run(S, "^(a+)+$"), forever(S).

%% How long a process that does next to nothing had to wait for its turn, in milliseconds, beside
%% one that matches.
longest(S) ->
    Pid = spawn(fun() -> forever(S) end),
    Longest = tick(6, erlang:monotonic_time(), 0),
    exit(Pid, kill),
    Longest.

tick(0, _, Longest) -> erlang:convert_time_unit(Longest, native, millisecond);
tick(N, Last, Longest) ->
    receive after 1 -> ok end,
    Now = erlang:monotonic_time(),
    tick(N - 1, Now, max(Longest, Now - Last)).
