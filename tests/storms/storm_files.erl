%% Files: what was written is there, whichever way it was written and read, by whomever.
-module(storm_files).
-export([round/0]).

round() ->
    Dir = filename:join(os:getenv("STORM_DIR", "/tmp"), "storm_files_" ++ os:getpid() ++ "_" ++ integer_to_list(storm:random(1000000000))),
    ok = file:make_dir(Dir),
    try
        storm:run([{Name, N, fun() -> F(filename:join(Dir, atom_to_list(Name) ++ integer_to_list(erlang:unique_integer([positive])))) end}
                   || {Name, N, F} <- [{model, 3, fun model/1}, {appended, 1, fun appended/1}, {regions, 1, fun regions/1}, {delayed, 1, fun delayed/1},
                                       {ahead, 1, fun ahead/1}, {shared, 1, fun shared/1}, {ends, 1, fun ends/1}, {entries, 1, fun entries/1}, {whole, 1, fun whole/1}]])
    after
        {ok, Left} = file:list_dir(Dir),
        storm:check(Left =:= [], "files are left: ~0p", [Left]),
        file:del_dir_r(Dir)
    end.

bytes(N) -> rand:bytes(N).

raw() -> [raw || storm:chance(2)].

%% One process does one thing after another, and a binary says what the file must hold.
model(Name) ->
    {ok, F} = file:open(Name, [read, write, binary] ++ raw()),
    Model = steps(F, <<>>, 0, 40 + storm:random(40)),
    ok = file:close(F),
    same(Name, Model, "model"),
    ok = file:delete(Name).

same(Name, Wanted, Who) ->
    {ok, B} = file:read_file(Name),
    storm:check(B =:= Wanted, "~s: ~p bytes, not ~p, the first that differs is ~p", [Who, byte_size(B), byte_size(Wanted), binary:longest_common_prefix([B, Wanted])]),
    {ok, Info} = file:read_file_info(Name),
    storm:check(element(2, Info) =:= byte_size(Wanted), "~s: the size", [Who]).

put_at(M, At, B) ->
    Size = byte_size(M),
    Before = case At =< Size of
                 true -> binary:part(M, 0, At);
                 false -> <<M/binary, 0:(8 * (At - Size))>>
             end,
    End = At + byte_size(B),
    After = case End < Size of true -> binary:part(M, End, Size - End); false -> <<>> end,
    <<Before/binary, B/binary, After/binary>>.

get_at(M, At, _) when At >= byte_size(M) -> eof;
get_at(M, At, N) -> {ok, binary:part(M, At, min(N, byte_size(M) - At))}.

steps(_, M, _, 0) -> M;
steps(F, M, At, N) ->
    storm:chance(10) andalso storm:wait(1),
    case storm:random(9) of
        0 ->
            B = bytes(storm:random(3000)),
            ok = file:write(F, parts(B)),
            steps(F, case B of <<>> -> M; _ -> put_at(M, At, B) end, At + byte_size(B), N - 1);
        1 ->
            B = bytes(1 + storm:random(3000)),
            P = storm:random(20000),
            ok = file:pwrite(F, P, parts(B)),
            back(F, put_at(M, P, B), At, N);
        2 ->
            L = 1 + storm:random(4000),
            Wanted = get_at(M, At, L),
            Got = file:read(F, L),
            storm:check(Got =:= Wanted, "read gives something else", []),
            steps(F, M, case Wanted of {ok, B} -> At + byte_size(B); eof -> At end, N - 1);
        3 ->
            P = storm:random(20000), L = 1 + storm:random(4000),
            storm:check(file:pread(F, P, L) =:= get_at(M, P, L), "pread gives something else", []),
            back(F, M, At, N);
        4 ->
            P = storm:random(byte_size(M) + 100),
            {ok, P} = file:position(F, P),
            steps(F, M, P, N - 1);
        5 ->
            P = storm:random(byte_size(M) + 1),
            {ok, P} = file:position(F, P),
            ok = file:truncate(F),
            steps(F, binary:part(M, 0, P), P, N - 1);
        6 ->
            Ps = [{storm:random(15000), bytes(1 + storm:random(500))} || _ <- lists:seq(1, 1 + storm:random(5))],
            ok = file:pwrite(F, Ps),
            back(F, lists:foldl(fun({P, B}, A) -> put_at(A, P, B) end, M, Ps), At, N);
        7 ->
            Ps = [{storm:random(15000), 1 + storm:random(500)} || _ <- lists:seq(1, 1 + storm:random(5))],
            storm:check(file:pread(F, Ps) =:= {ok, [case get_at(M, P, L) of {ok, B} -> B; eof -> eof end || {P, L} <- Ps]}, "pread of several gives something else", []),
            back(F, M, At, N);
        8 ->
            ok = file:datasync(F),
            Size = byte_size(M),
            {ok, Size} = file:position(F, eof),
            steps(F, M, Size, N - 1)
    end.

%% Where it is after pread and pwrite isn't said.
back(F, M, _, N) ->
    P = storm:random(byte_size(M) + 1),
    {ok, P} = file:position(F, P),
    steps(F, M, P, N - 1).

parts(B) ->
    case storm:random(3) of
        0 -> B;
        1 -> [B];
        2 ->
            K = storm:random(byte_size(B) + 1),
            <<X:K/binary, Y/binary>> = B,
            [X, [binary_to_list(Y)]]
    end.

%% Several append: no record is lost, none is torn.
appended(Name) ->
    Made = storm:all(
        fun(W) ->
            {ok, F} = file:open(Name, [append, binary] ++ raw()),
            L = [begin
                     storm:chance(10) andalso storm:wait(1),
                     R = <<W, I:32, (binary:copy(<<W>>, 100))/binary>>,
                     ok = file:write(F, R),
                     {W, I}
                 end || I <- lists:seq(1, 50)],
            ok = file:close(F),
            L
        end, [1, 2, 3, 4]),
    {ok, B} = file:read_file(Name),
    Got = [{W, I, Rest =:= binary:copy(<<W>>, 100)} || <<W, I:32, Rest:100/binary>> <= B],
    storm:check(byte_size(B) =:= 200 * 105, "appended: the size", []),
    storm:check(lists:sort(Got) =:= [{W, I, true} || {W, I} <- lists:sort(lists:append(Made))], "appended records are lost or torn", []),
    [storm:check([I || {X, I, _} <- Got, X =:= W] =:= lists:seq(1, 50), "appended records changed their order", []) || W <- [1, 2, 3, 4]],
    ok = file:delete(Name).

%% Several write and read parts of their own, through files of their own and one that they share.
regions(Name) ->
    {ok, Shared} = file:open(Name, [read, write, binary]),
    Size = 5000,
    Parts = storm:all(
        fun(W) ->
            {ok, Own} = file:open(Name, [read, write, binary] ++ raw()),
            Base = W * Size,
            M = lists:foldl(
                fun(_, M) ->
                    P = storm:random(Size - 1000),
                    F = storm:choice([Shared, Own]),
                    case storm:chance(2) of
                        true ->
                            B = bytes(1 + storm:random(1000)),
                            ok = file:pwrite(F, Base + P, B),
                            put_at(M, P, B);
                        false ->
                            {ok, X} = get_at(M, P, 500),
                            storm:check(file:pread(F, Base + P, 500) =:= {ok, X}, "another's part of a file is in this one's", []),
                            M
                    end
                end, begin Z = <<0:(8 * Size)>>, ok = file:pwrite(Own, Base, Z), Z end, lists:seq(1, 40)),
            ok = file:close(Own),
            M
        end, [0, 1, 2, 3]),
    ok = file:close(Shared),
    same(Name, iolist_to_binary(Parts), "parts of a file"),
    ok = file:delete(Name).

%% What is written later is written, in order, at the latest when the file is closed, or by sync.
delayed(Name) ->
    {ok, F} = file:open(Name, [write, raw, binary, storm:choice([delayed_write, {delayed_write, 1 + storm:random(5000), storm:random(20)}])]),
    Bs = [begin
              B = bytes(storm:random(800)),
              ok = file:write(F, B),
              case storm:random(12) of
                  0 -> ok = file:datasync(F);
                  1 -> storm:wait(5);
                  _ -> ok
              end,
              B
          end || _ <- lists:seq(1, 60)],
    ok = file:close(F),
    same(Name, iolist_to_binary(Bs), "delayed_write"),
    ok = file:delete(Name).

%% Read ahead: the same bytes, in order.
ahead(Name) ->
    B = << <<(list_to_binary(integer_to_list(I)))/binary, "\n">> || I <- lists:seq(1, 1000 + storm:random(3000)) >>,
    ok = file:write_file(Name, B),
    {ok, F} = file:open(Name, [read, binary, storm:choice([read_ahead, {read_ahead, 1 + storm:random(3000)}])] ++ raw()),
    {ok, G} = file:open(Name, [read, binary, {read_ahead, 1 + storm:random(100)}] ++ raw()),
    storm:check(iolist_to_binary(chunks(F)) =:= B, "read_ahead gives other bytes", []),
    storm:check(iolist_to_binary(lines(G)) =:= B, "read_line gives other bytes", []),
    ok = file:close(F),
    ok = file:close(G),
    ok = file:delete(Name).

chunks(F) ->
    case file:read(F, 1 + storm:random(2000)) of
        {ok, X} -> [X | chunks(F)];
        eof -> []
    end.
lines(F) ->
    case file:read_line(F) of
        {ok, X} -> [X | lines(F)];
        eof -> []
    end.

%% One file, which is a process, for several.
shared(Name) ->
    {ok, F} = file:open(Name, [write, storm:choice([raw_is_not, delayed_write])] -- [raw_is_not]),
    storm:all(
        fun(W) ->
            [begin
                 storm:chance(10) andalso storm:wait(1),
                 case storm:chance(2) of
                     true -> ok = file:write(F, io_lib:format("~b ~b~n", [W, I]));
                     false -> ok = io:format(F, "~b ~b~n", [W, I])
                 end
             end || I <- lists:seq(1, 40)]
        end, [1, 2, 3, 4]),
    ok = file:close(F),
    {ok, B} = file:read_file(Name),
    Got = [[binary_to_integer(X) || X <- binary:split(L, <<" ">>)] || L <- binary:split(B, <<"\n">>, [global]), L =/= <<>>],
    storm:check(lists:sort(Got) =:= [[W, I] || W <- [1, 2, 3, 4], I <- lists:seq(1, 40)], "lines of several processes are lost or torn", []),
    [storm:check([I || [X, I] <- Got, X =:= W] =:= lists:seq(1, 40), "lines changed their order", []) || W <- [1, 2, 3, 4]],
    ok = file:delete(Name).

%% Owners that end: their descriptors are closed, and what they had written is there.
ends(Name) ->
    Me = self(),
    [begin
         {P, M} = spawn_monitor(fun() ->
             {ok, F} = file:open(Name, [append, binary] ++ raw()),
             ok = file:write(F, <<I:32>>),
             Me ! {written, self()},
             write_on(F, I)
         end),
         receive {written, P} -> ok end,
         storm:wait(2),
         exit(P, kill),
         receive {'DOWN', M, process, P, _} -> ok after 30000 -> storm:fault("one that writes is not killed", []) end
     end || I <- lists:seq(1, 15)],
    {ok, B} = file:read_file(Name),
    storm:check(byte_size(B) rem 4 =:= 0, "a record of one that was killed is torn", []),
    Is = [I || <<I:32>> <= B],
    storm:check(lists:usort(Is) =:= lists:seq(1, 15), "records of those who were killed are lost", []),
    ok = file:delete(Name).

write_on(F, I) -> ok = file:write(F, <<I:32>>), write_on(F, I).

%% Names in a directory.
entries(Dir) ->
    ok = file:make_dir(Dir),
    storm:all(
        fun(W) ->
            [begin
                 A = filename:join(Dir, io_lib:format("~b_~b", [W, I])),
                 B = A ++ "_b",
                 ok = file:write_file(A, <<W, I>>),
                 ok = file:rename(A, B),
                 {error, enoent} = file:read_file(A),
                 {ok, <<W, I>>} = file:read_file(B),
                 {ok, L} = file:list_dir(Dir),
                 storm:check(lists:member(filename:basename(B), L), "list_dir misses a file", []),
                 I rem 2 =:= 0 andalso (ok = file:delete(B))
             end || I <- lists:seq(1, 12)]
        end, [1, 2, 3]),
    {ok, L} = file:list_dir(Dir),
    storm:check(lists:sort(L) =:= lists:sort([lists:flatten(io_lib:format("~b_~b_b", [W, I])) || W <- [1, 2, 3], I <- [1, 3, 5, 7, 9, 11]]), "other files are left: ~0p", [L]),
    ok = file:del_dir_r(Dir).

%% Whole files that several replace by a rename: whoever reads sees one or the other, never a part.
whole(Name) ->
    Content = fun(I) -> binary:copy(<<I>>, 100 + I * 300) end,
    ok = file:write_file(Name, Content(1)),
    storm:all(
        fun({write, W}) ->
                [begin
                     New = Name ++ "_" ++ integer_to_list(W),
                     ok = file:write_file(New, Content(1 + storm:random(50))),
                     ok = file:rename(New, Name)
                 end || _ <- lists:seq(1, 15)];
           (read) ->
                [begin
                     {ok, <<I, _/binary>> = B} = file:read_file(Name),
                     storm:check(B =:= Content(I), "half of a file", [])
                 end || _ <- lists:seq(1, 40)]
        end, [{write, 1}, {write, 2}, read, read]),
    ok = file:delete(Name).
