%% A suspended process does not end, wherever it was suspended: in a receive after which it would
%% end, or in a native. @stress
-module(suspended_stays).
-export([main/0]).

main() -> [io:format("~p ~p~n", [W, run(W, 1000, [])]) || W <- [received, timeout, status, links, unlinked, hibernates, raises, returns]].

run(_, 0, Seen) -> lists:usort(Seen) -- [ended, true];
run(W, N, Seen) ->
    A = atomics:new(1, []),
    {P, M} = spawn_monitor(fun() -> atomics:put(A, 1, 1), spin(3000), body(W) end),
    running(A),
    P ! go,
    Now = try erlang:suspend_process(P) of
        true -> still(P, 20)
    catch error:Why when Why =:= badarg; Why =:= exited -> ended   % Stock says `exited` of one that ends while it is asked.
    end,
    receive {'DOWN', M, _, _, _} -> ok end,
    run(W, N - 1, [Now | Seen]).

%% It goes on where it was.
still(P, N) ->
    case {process_info(P, status), N} of
        {{status, suspended}, 0} -> try erlang:resume_process(P) catch error:badarg -> not_suspended end;
        {{status, suspended}, _} -> erlang:yield(), still(P, N - 1);
        {Other, _} -> Other
    end.

%% It runs, on another scheduler if there is one.
running(A) ->
    case atomics:get(A, 1) of
        1 -> ok;
        0 -> running(A)
    end.

spin(0) -> ok;
spin(N) -> spin(N - 1).

body(received) -> receive go -> exit(done) end;
body(timeout) -> receive never -> ok after 0 -> exit(done) end;
body(status) -> exit(process_info(self(), status));
body(links) -> exit(process_info(self(), links));
body(unlinked) -> exit(unlink(self()));
body(hibernates) -> erlang:hibernate(erlang, exit, [done]);
body(raises) -> try receive go -> error(done) end catch error:done -> exit(done) end;
body(returns) -> receive go -> done end.
