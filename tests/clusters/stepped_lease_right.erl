%% A node gives out leases, each with the time at which it ends, by its monotonic clock.
%% Run: purlin schedules --nodes 1 --faults clock -- run stepped_lease_right.erl
-module(stepped_lease_right).
-export([main/1]).
-mode(compile).

main(_) -> leases(40).

leases(0) -> io:put_chars("all ended in time\n");
leases(N) ->
    Ends = erlang:monotonic_time(millisecond) + 100,
    T0 = erlang:monotonic_time(millisecond),
    wait(Ends),
    case erlang:monotonic_time(millisecond) - T0 of
        T when T > 300 -> io:format("FAIL: a lease of 100 ms took ~w~n", [T]), halt(1);
        _ -> leases(N - 1)
    end.

wait(Ends) ->
    case erlang:monotonic_time(millisecond) >= Ends of
        true -> ok;
        false -> timer:sleep(10), wait(Ends)
    end.
