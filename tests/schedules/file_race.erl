%% What is added, twice, stands in a file; the sum is written to another: one of the two updates may
%% be lost.
-module(file_race).
-export([main/0]).

main() ->
    {ok, Names} = file:list_dir("steps"),
    {ok, B} = file:read_file("steps/one.txt"),
    Step = binary_to_integer(string:trim(B)),
    {ok, F} = file:open("steps/one.txt", [read, raw, binary]),
    {ok, Again} = file:pread(F, 0, 1),
    {ok, _} = file:read(F, 100),
    eof = file:read(F, 100),
    ok = file:close(F),
    {error, enoent} = file:read_file("steps/none.txt"),
    io:format("~p ~p ~p~n", [Step, Again, lists:sort(Names)]),
    Status = lost(Step),
    {ok, Io} = file:open("sum.txt", [write]),
    ok = io:format(Io, "status ~p~n", [Status]),
    ok = file:close(Io),
    halt(Status).

%% 0 if both have been added; 1: one update was lost.
lost(Step) ->
    T = ets:new(t, [public]),
    ets:insert(T, {n, 0}),
    Main = self(),
    Add = fun() ->
        [{n, N}] = ets:lookup(T, n),
        ets:insert(T, {n, N + Step}),
        Main ! done
    end,
    [spawn(Add) || _ <- [1, 2]],
    [receive done -> ok end || _ <- [1, 2]],
    [{n, Sum}] = ets:lookup(T, n),
    io:format("~p of ~p~n", [Sum, 2 * Step]),
    case Sum =:= 2 * Step of
        true -> 0;
        false -> 1
    end.
