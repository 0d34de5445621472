%% Reads many megabytes while the process is inspected and killed. The data is that of the file,
%% also at a position and at its end.
-module(long_file_reads).
-export([main/0]).

main() ->
    Path = "long_file_reads.data",
    Data = << <<N:32>> || N <- lists:seq(1, 3 bsl 20) >>,
    ok = file:write_file(Path, Data),
    {ok, F} = file:open(Path, [raw, binary, read]),
    {ok, All} = file:read(F, 100 bsl 20),
    io:format("~p ~p~n", [All =:= Data, file:read(F, 100 bsl 20)]),
    {ok, Behind} = file:pread(F, 1 bsl 20, 100 bsl 20),
    io:format("~p~n", [Behind =:= binary:part(Data, 1 bsl 20, byte_size(Data) - (1 bsl 20))]),
    io:format("~p ~p~n", [file:pread(F, 1 bsl 30, 9 bsl 20), file:pread(F, -1, 9 bsl 20)]),
    io:format("~p~n", [[begin {ok, B} = file:pread(F, At, 9 bsl 20), B =:= binary:part(Data, At, min(9 bsl 20, byte_size(Data) - At)) end || At <- [0, 1, 5 bsl 20]]]),
    ok = file:close(F),
    io:format("~p ~p~n", [file:read(F, 9 bsl 20), file:pread(F, 0, 9 bsl 20)]),
    {ok, W} = file:open(Path, [raw, binary, write]),
    io:format("~p~n", [file:read(W, 9 bsl 20)]),
    ok = file:close(W),
    {ok, D} = file:open(".", [raw, directory]),
    io:format("~p~n", [file:read(D, 9 bsl 20)]),
    ok = file:delete(Path),
    io:format("~p~n", [looked_at()]).

%% While it reads a gigabyte.
looked_at() ->
    {P, R} = spawn_monitor(fun() ->
        {ok, F} = file:open("/dev/zero", [raw, binary, read]),
        receive go -> ok end,
        exit({read, file:read(F, 1 bsl 30)})
    end),
    P ! go,
    timer:sleep(20),
    Seen = [is_list(process_info(P, [message_queue_len, current_function, reductions])) || _ <- lists:seq(1, 5)],
    exit(P, kill),
    receive {'DOWN', R, process, P, Why} -> {Seen, Why} end.
