%% Reads and writes alternate between a scheduler and a dirty thread, with the same results.
%% @stress @shared @fence
-module(io_on_scheduler_or_dirty_thread).
-export([main/0]).

-define(FILE_NAME, "here").

main() ->
    [io:format("~p ~p~n", [N, outcome(F)]) || {N, F} <- tests()],
    io:format("~p~n", [file:delete(?FILE_NAME)]).

outcome(F) -> try F() catch C:R -> {C, R} end.

tests() ->
    [{sizes, fun sizes/0}, {pieces, fun pieces/0}, {reads, fun reads/0}, {holes, fun holes/0}, {append, fun append/0},
     {through, fun through/0}, {modes, fun modes/0}, {bad, fun bad/0}, {closed, fun closed/0}, {devices, fun devices/0},
     {writers, fun writers/0}, {names, fun names/0}, {infos, fun infos/0}, {killed, fun killed/0}, {garbage, fun garbage/0}, {traced, fun traced/0}].

open(Modes) ->
    {ok, F} = file:open(?FILE_NAME, [raw, binary | Modes]),
    F.

whole() ->
    {ok, All} = file:read_file(?FILE_NAME),
    {byte_size(All), erlang:md5(All)}.

bytes(N) -> << <<(I rem 251)>> || I <- lists:seq(1, N) >>.

%% Below and above what is written at once.
sizes() ->
    B = bytes(1000),
    [begin
        F = open([write]),
        R = [file:write(F, lists:duplicate(N, B)) || _ <- [1, 2, 3]],
        ok = file:close(F),
        {N, lists:usort(R), whole()}
     end || N <- [0, 1, 60, 500, 520, 600, 2000]].

%% Small pieces, many parts, unaligned ones, and bytes alone.
pieces() ->
    <<_:3, Odd:2400/bitstring, _/bitstring>> = bytes(500),
    Lists = [lists:duplicate(1000, bytes(205)), lists:duplicate(1500, bytes(300)), lists:duplicate(700, Odd),
             lists:seq(0, 255), [[], [[]], <<>>], [Odd | bytes(70)], bytes(100000)],
    F = open([write, read]),
    R = [{file:write(F, L), file:pwrite(F, 5, L), file:position(F, cur)} || L <- Lists],
    ok = file:close(F),
    {R, whole()}.

reads() ->
    ok = file:write_file(?FILE_NAME, bytes(600000)),
    F = open([read]),
    Sum = fun({ok, D}) -> {byte_size(D), erlang:crc32(D)}; (Other) -> Other end,
    R = [Sum(file:read(F, N)) || N <- [0, 1, 10, 70000, 262144, 262145, 100, 1000000, 1, 0]],
    P = [Sum(file:pread(F, At, N)) || {At, N} <- [{0, 5}, {599990, 100}, {600000, 1}, {700000, 3}, {10, 0}, {5, 262144}, {-1, 2}, {0, -1}]],
    S = [file:position(F, W) || W <- [{bof, 10}, {cur, 5}, {eof, -7}, {cur, 100}, {bof, -1}, 17]],
    T = Sum(file:read(F, 20)),
    ok = file:close(F),
    {R, P, S, T}.

holes() ->
    F = open([write, read]),
    R = [file:pwrite(F, 100000, <<"end">>), file:pread(F, 50000, 10), file:position(F, {bof, 200000}), file:write(F, <<"x">>)],
    ok = file:close(F),
    {R, whole()}.

append() ->
    ok = file:write_file(?FILE_NAME, <<"first">>),
    F = open([append]),
    R = [file:write(F, <<"one">>), file:position(F, 0), file:write(F, <<"two">>)],
    ok = file:close(F),
    {R, file:read_file(?FILE_NAME)}.

through() ->
    F = open([write, sync]),
    R = [file:write(F, lists:duplicate(100, <<"through">>)) || _ <- lists:seq(1, 5)],
    ok = file:close(F),
    {lists:usort(R), whole()}.

modes() ->
    R = open([read]),
    A = [file:write(R, <<"x">>), file:pwrite(R, 1, <<"x">>)],
    ok = file:close(R),
    W = open([write]),
    B = [file:read(W, 1), file:pread(W, 1, 1)],
    ok = file:close(W),
    {A, B}.

bad() ->
    F = open([write, read]),
    Bad = [[a], [<<1:7>>], [1 | 2], [256], [-1], {}, a, 7, [<<"good">> | a], [lists:duplicate(3000, bytes(300)) | a]],
    R = [{outcome(fun() -> file:write(F, X) end), outcome(fun() -> file:pwrite(F, 0, X) end)} || X <- Bad],
    N = [outcome(fun() -> X() end) || X <- [fun() -> file:pwrite(F, -1, <<"x">>) end, fun() -> file:pwrite(F, a, <<"x">>) end,
        fun() -> file:read(F, a) end, fun() -> file:read(F, -1) end, fun() -> file:pread(F, a, 1) end, fun() -> file:position(F, a) end,
        fun() -> file:pread(F, 1 bsl 70, 1) end, fun() -> file:read(F, 1 bsl 70) end]],
    ok = file:close(F),
    {R, N, whole()}.

closed() ->
    F = open([write, read]),
    ok = file:close(F),
    [file:write(F, <<"x">>), file:write(F, []), file:pwrite(F, 0, <<"x">>), file:read(F, 1), file:pread(F, 0, 1), file:position(F, 0)].

devices() ->
    [begin
        {ok, F} = file:open(D, [raw, binary, read, write]),
        R = {D, file:write(F, lists:duplicate(1000, bytes(205))), file:write(F, lists:duplicate(3000, bytes(300))),
             case D of "/dev/null" -> file:read(F, 10); _ -> none end},
        ok = file:close(F),
        R
     end || D <- ["/dev/null", "/dev/zero", "/dev/full"]].

%% Several at once: more than there are schedulers.
writers() ->
    Names = [?FILE_NAME ++ integer_to_list(I) || I <- lists:seq(1, 8)],
    Self = self(),
    [spawn_link(fun() ->
        {ok, F} = file:open(N, [raw, binary, write, read]),
        [ok = file:write(F, [<<I:32>>, bytes(I rem 700)]) || I <- lists:seq(1, 300)],
        {ok, 0} = file:position(F, 0),
        L = (fun Read(Sum) -> case file:read(F, 997) of {ok, D} -> Read(erlang:crc32(Sum, D)); eof -> Sum end end)(0),
        ok = file:close(F),
        {ok, All} = file:read_file(N),
        Self ! {N, L =:= erlang:crc32(All), byte_size(All)}
     end) || N <- Names],
    R = [receive {N, Same, Size} -> {Same, Size} end || N <- Names],
    [ok = file:delete(N) || N <- Names],
    R.

%% Names that lead nowhere, at first and once the system knows it; what comes and goes under a name;
%% links, and what lies behind them.
names() ->
    ok = file:write_file(?FILE_NAME, <<"some">>),
    Link = ?FILE_NAME ++ ".link", Round = ?FILE_NAME ++ ".round", Dir = ?FILE_NAME ++ ".dir",
    ok = file:make_symlink(?FILE_NAME ++ ".none", Link),
    ok = file:make_symlink(Round, Round),
    ok = file:make_dir(Dir),
    Names = [?FILE_NAME, ?FILE_NAME ++ ".none", ?FILE_NAME ++ "/none", ?FILE_NAME ++ "/..", Link, Link ++ "/none", Round, Dir, Dir ++ "/none",
             Dir ++ "/../" ++ ?FILE_NAME, "", "none\0", lists:duplicate(300, $n), lists:duplicate(5000, $n), <<"none">>, <<255>>, <<>>, none,
             [none], 17, "/none/none"],
    Twice = [{N, looks(N), looks(N) =:= looks(N)} || N <- Names],
    Comes = [begin
        N = ?FILE_NAME ++ integer_to_list(I rem 5),
        {error, enoent} = file:read_file(N),
        ok = file:write_file(N, <<I>>),
        {ok, <<I>>} = file:read_file(N),
        ok = file:rename(N, Link ++ ".other"),
        {error, enoent} = file:read_file_info(N),
        ok = file:delete(Link ++ ".other")
     end || I <- lists:seq(1, 50)],
    ok = file:write_file(?FILE_NAME ++ ".none", <<"now">>),
    Now = looks(Link),
    {ok, Cwd} = file:get_cwd(),
    ok = file:set_cwd(Dir),
    Elsewhere = looks(?FILE_NAME),
    ok = file:set_cwd(Cwd),
    Ends = [file:delete(N) || N <- [Link, Round, ?FILE_NAME ++ ".none"]],
    {Twice, lists:usort(Comes), Now, Elsewhere, Ends, file:del_dir(Dir), looks(Link)}.

looks(N) ->
    Kind = fun({ok, I}) -> {element(3, I), element(4, I)}; (Error) -> Error end,
    [outcome(F) || F <- [fun() -> file:read_file(N) end, fun() -> Kind(file:read_file_info(N)) end, fun() -> Kind(file:read_link_info(N)) end,
                         fun() -> file:list_dir(N) end, fun() -> Kind(prim_file:read_file_info(N)) end, fun() -> prim_file:read_file(N) end,
                         fun() -> file:read_link(N) end]].

%% What is told of a file follows what was done to it, however often it was asked before, and is
%% what its descriptor tells.
infos() ->
    Link = ?FILE_NAME ++ ".link",
    ok = file:write_file(?FILE_NAME, <<"some">>),
    ok = file:make_symlink(?FILE_NAME, Link),
    Told = fun(N) ->
        [{ok, _} = file:read_file_info(N, [{time, posix}]) || _ <- [1, 2, 3]],
        {ok, I} = file:read_file_info(N, [{time, posix}]),
        {element(2, I), element(3, I), element(4, I), element(6, I), element(8, I), element(9, I)}
    end,
    Same = fun() ->
        F = open([read]),
        {ok, By} = file:read_file_info(F),
        {ok, I} = file:read_file_info(?FILE_NAME),
        ok = file:close(F),
        %% All but when it was read last, which this may change.
        setelement(5, By, at) =:= setelement(5, I, at)
    end,
    Mode = fun(M) -> fun() -> {file:change_mode(?FILE_NAME, M), file:change_time(?FILE_NAME, {{2002, 2, 2}, {M rem 7, 0, 0}})} end end,
    Does = [fun() -> file:change_time(?FILE_NAME, {{2001, 2, 3}, {4, 5, 6}}) end, Mode(8#400),
            Mode(8#755), fun() -> file:write_file(?FILE_NAME, bytes(5000)), file:change_time(?FILE_NAME, {{1969, 1, 1}, {1, 1, 1}}) end,
            fun() -> file:make_link(?FILE_NAME, Link ++ ".hard") end, fun() -> file:delete(Link ++ ".hard") end],
    R = [{D(), Told(?FILE_NAME), Told(Link), Same()} || D <- Does],
    Kinds = [begin {ok, I} = file:read_link_info(N), {ok, J} = file:read_link_info(N), {I =:= J, element(3, I), element(4, I)} end
             || N <- ["/dev/null", "/dev", "/proc/self/status", "/", Link, "."]],
    {R, Kinds, file:delete(Link)}.

%% Those that are killed while they write and read leave nothing open.
killed() ->
    [begin
        {P, M} = spawn_monitor(fun() -> F = open([write, read]), again(F) end),
        timer:sleep(I rem 7),
        exit(P, kill),
        receive {'DOWN', M, process, P, Why} -> Why end
     end || I <- lists:seq(1, 20)],
    Links = fun() -> {ok, L} = file:list_dir("/proc/self/fd"), [T || N <- L, {ok, T} <- [file:read_link("/proc/self/fd/" ++ N)], lists:suffix("/" ++ ?FILE_NAME, T)] end,
    (fun Wait() -> case Links() of [] -> gone; _ -> timer:sleep(10), Wait() end end)().

again(F) ->
    ok = file:write(F, lists:duplicate(100, bytes(205))),
    {ok, _} = file:pread(F, 0, 1000),
    again(F).

%% What is read goes to a heap that has no room, and what is written comes from one that is
%% collected.
garbage() ->
    F = open([write, read]),
    N = lists:sum([begin
        L = [integer_to_binary(I * K) || K <- lists:seq(1, 40)],
        ok = file:pwrite(F, 0, [L, bytes(100)]),
        {ok, D} = file:pread(F, 0, iolist_size(L)),
        {ok, Short} = file:pread(F, 0, 30),
        true = D =:= iolist_to_binary(L),
        byte_size(D) + byte_size(Short)
     end || I <- lists:seq(1, 300)]),
    ok = file:close(F),
    N.

%% A call that is handed to a dirty thread is told once.
traced() ->
    F = open([write]),
    Part = bytes(80000),
    T = spawn_link(fun() -> told(#{}) end),
    1 = erlang:trace(self(), true, [call, {tracer, T}]),
    1 = erlang:trace_pattern({prim_file, write_nif, 2}, [{'_', [], [{return_trace}]}], [local]),
    [ok = file:write(F, lists:duplicate(N, Part)) || N <- lists:seq(1, 12)],
    1 = erlang:trace(self(), false, [call]),
    1 = erlang:trace_pattern({prim_file, write_nif, 2}, false, [local]),
    Ref = erlang:trace_delivered(self()),
    receive {trace_delivered, _, Ref} -> ok end,
    T ! {counts, self()},
    Counts = receive {counts, C} -> C end,
    ok = file:close(F),
    Counts.

told(Counts) ->
    receive
        {counts, To} -> To ! {counts, lists:sort(maps:to_list(Counts))};
        T -> K = {element(3, T), element(2, element(4, T))}, told(Counts#{K => maps:get(K, Counts, 0) + 1})
    end.
