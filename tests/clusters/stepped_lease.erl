%% A node gives out leases, each with the time at which it ends, by its wall clock.
%% WRONG: a wall clock that steps back makes a lease last longer than it was given for.
%% Run: purlin schedules --nodes 1 --faults clock -- run stepped_lease.erl
-module(stepped_lease).
-export([main/1]).
-mode(compile).

main(_) -> leases(40).

leases(0) -> io:put_chars("all ended in time\n");
leases(N) ->
    Ends = os:system_time(millisecond) + 100,
    T0 = erlang:monotonic_time(millisecond),
    wait(Ends),
    case erlang:monotonic_time(millisecond) - T0 of
        T when T > 300 -> io:format("FAIL: a lease of 100 ms took ~w~n", [T]), halt(1);
        _ -> leases(N - 1)
    end.

wait(Ends) ->
    case os:system_time(millisecond) >= Ends of
        true -> ok;
        false -> timer:sleep(10), wait(Ends)
    end.
