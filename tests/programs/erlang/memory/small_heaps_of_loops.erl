%% A process waits now and then, and computes in between without keeping anything: the heap that a
%% wait has left small grows again, or the loop would collect every few rounds.
-module(small_heaps_of_loops).
-export([main/0]).

main() ->
    [begin
         Me = self(),
         P = spawn_link(fun() -> work(Warm), Me ! {self(), done} end),
         receive {P, done} -> ok end,
         io:format("~b~n", [Warm])
     end || Warm <- lists:seq(1, 6)].

work(Warm) ->
    [catches(15000, 0) || _ <- lists:seq(1, Warm)],
    erlang:garbage_collect(),
    loop(8).

loop(0) -> ok;
loop(N) ->
    {Before, _, _} = statistics(garbage_collection),
    catches(30000, 0),
    {After, _, _} = statistics(garbage_collection),
    %% Another process answers. What is printed is garbage afterwards.
    Info = [process_info(self(), [total_heap_size, stack_size, heap_size]),
            element(2, process_info(self(), garbage_collection_info))],
    io:format("~s~n", [[$. || _ <- io_lib:format("~w", [Info])]]),
    After - Before < 1500 orelse io:format("~b collections~n", [After - Before]),
    loop(N - 1).

catches(0, S) -> S;
catches(N, S) ->
    X = try thrown(N) catch throw:{v, V} -> V end,
    catches(N - 1, (S + X) band 16#ffff).

thrown(N) -> throw({v, N}).
