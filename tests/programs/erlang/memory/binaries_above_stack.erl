%% Large binaries are made above a deep stack. Few of them do not justify collections that scan all
%% of it. @stress @fence
-module(binaries_above_stack).
-export([main/0]).

main() ->
    {P, M} = spawn_monitor(fun() ->
        Before = collections(),
        L = binaries(300000),
        exit({length(L), lists:sum([byte_size(B) || B <- L]), collections() - Before < 150})
    end),
    receive {'DOWN', M, process, P, Made} -> io:format("~p~n", [Made]) end,
    %% What nobody refers to goes, however deep the stack is.
    {Q, N} = spawn_monitor(fun() -> exit(deep(30000)) end),
    receive {'DOWN', N, process, Q, Deep} -> io:format("~p~n", [Deep]) end.

binaries(0) -> [];
binaries(N) -> [binary:copy(<<N:32>>, 25) | binaries(N - 1)].

deep(0) ->
    Before = erlang:memory(binary),
    Sizes = [byte_size(binary:copy(<<N:32>>, 25000)) || N <- lists:seq(1, 5000)],
    {lists:sum(Sizes), erlang:memory(binary) < Before + 100000000};
deep(N) -> setelement(1, deep(N - 1), N).

collections() ->
    {_, L} = process_info(self(), garbage_collection),
    {_, N} = lists:keyfind(minor_gcs, 1, L),
    N.
