%% Opens, closes and lists files on schedulers and dirty threads. The results are the same for large
%% and unusual directories, and for files that were removed, replaced or never existed, while a slow
%% open blocks elsewhere.
-module(files_opened_and_directories_read_at_once).
-export([main/0]).

main() ->
    D = "opened_at_once." ++ os:getpid(),
    ok = file:make_dir(D),
    ok = file:set_cwd(D),
    %% Whatever is learned about the file system at first, the second round is like the first.
    [io:format("~p ~p~n", [N, F()]) || _ <- [1, 2], {N, F} <- tests()],
    ok = file:set_cwd(".."),
    io:format("~p~n", [file:del_dir_r(D)]).

tests() ->
    [{listed, fun listed/0}, {large, fun large/0}, {odd, fun odd/0}, {opened, fun opened/0}, {removed, fun removed/0},
     {replaced, fun replaced/0}, {twice, fun twice/0}, {others, fun others/0}, {pipe, fun pipe/0}, {crowd, fun crowd/0}].

sorted({ok, L}) -> {ok, lists:sort(L)};
sorted(E) -> E.

listed() ->
    ok = file:make_dir("d"),
    Empty = file:list_dir("d"),
    [ok = file:write_file("d/" ++ [C], <<>>) || C <- "cab"],
    ok = file:make_symlink("d", "to_d"),
    Found = [sorted(file:list_dir(N)) || N <- ["d", "to_d", "d/", "d/.", "d/a", "none", "d/a/b"]],
    ok = file:del_dir_r("d"),
    Dangling = file:list_dir("to_d"),
    ok = file:delete("to_d"),
    {Empty, Found, Dangling}.

%% More names than fit in one read of the system's.
large() ->
    ok = file:make_dir("large"),
    Names = [lists:flatten(io_lib:format("~250..0b", [N])) || N <- lists:seq(1, 140)],
    {Some, More} = lists:split(20, Names),
    Fill = fun(L) -> [ok = file:write_file("large/" ++ N, <<>>) || N <- L] end,
    Fill(Some),
    A = [sorted(file:list_dir("large")) =:= {ok, Some} || _ <- lists:seq(1, 50)],
    Fill(More),
    B = [sorted(file:list_dir("large")) =:= {ok, Names} || _ <- lists:seq(1, 50)],
    ok = file:del_dir_r("large"),
    {lists:usort(A), lists:usort(B)}.

odd() ->
    ok = file:make_dir("odd"),
    Names = [<<"...">>, <<"..a">>, <<".h">>, <<" ">>, <<"a\nb">>, <<195, 182>>, binary:copy(<<"x">>, 255)],
    [ok = file:write_file(<<"odd/", N/binary>>, <<>>) || N <- Names],
    {ok, L} = file:list_dir_all("odd"),
    ok = file:write_file(<<"odd/", 255, 254>>, <<>>),
    {ok, All} = file:list_dir_all("odd"),
    Raw = [N || N <- All, is_binary(N)],
    R = {lists:sort(L), Raw, length(All)},
    ok = file:del_dir_r("odd"),
    R.

opened() ->
    ok = file:write_file("f", "0123456789"),
    ok = file:make_symlink("f", "to_f"),
    R = [
        case file:open(N, M) of
            {ok, F} -> {N, M, file:read(F, 4), file:write(F, "x"), file:position(F, cur), file:close(F), file:close(F)};
            E -> {N, M, E}
        end
     || N <- ["f", "to_f", "none", "f/x", ".", "/dev/null"], M <- [[read, raw], [read, raw, binary], [raw, read, directory]]
    ],
    [ok = file:delete(N) || N <- ["f", "to_f"]],
    R.

%% The last descriptor of a file without a name frees it.
removed() ->
    ok = file:write_file("gone", binary:copy(<<"g">>, 100000)),
    {ok, F} = file:open("gone", [read, raw, binary]),
    ok = file:delete("gone"),
    {ok, <<"ggg">>} = file:read(F, 3),
    {file:close(F), file:read(F, 3), file:open("gone", [read, raw])}.

%% A name that leads to something else each time.
replaced() ->
    [begin
        ok = file:write_file("new", integer_to_list(N)),
        ok = file:rename("new", "same"),
        {ok, F} = file:open("same", [read, raw]),
        {ok, T} = file:read(F, 10),
        ok = file:close(F),
        true = T =:= integer_to_list(N)
     end || N <- lists:seq(1, 100)],
    ok = file:delete("same"),
    ok = file:make_dir("same"),
    R = {file:open("same", [read, raw]), file:list_dir("same")},
    ok = file:del_dir("same"),
    R.

%% Closed by several processes; only the owner may, and one call succeeds.
twice() ->
    ok = file:write_file("f", "x"),
    Owned = [begin {ok, F} = file:open("f", [read, raw]), {file:close(F), file:close(F)} end || _ <- lists:seq(1, 100)],
    Me = self(),
    {P, M} = spawn_monitor(fun() -> {ok, F} = file:open("f", [read, raw]), Me ! F end),
    Left = receive {file_descriptor, _, _} = F -> F end,
    receive {'DOWN', M, process, P, _} -> ok end,
    ok = file:delete("f"),
    {lists:usort(Owned), try file:close(Left) catch _:Why -> Why end}.

%% Regular files that aren't local, and what is no regular file.
others() ->
    {ok, F} = file:open("/proc/self/cmdline", [read, raw]),
    {ok, [_ | _]} = file:read(F, 10),
    ok = file:close(F),
    {ok, [_ | _]} = file:list_dir("/proc/self/fd"),
    {ok, N} = file:open("/dev/zero", [read, raw]),
    R = {file:read(N, 3), file:close(N)},
    {ok, [_ | _]} = file:list_dir("/dev"),
    R.

%% Opening a pipe waits for the other end, and nothing else waits for that.
pipe() ->
    [] = os:cmd("mkfifo pipe"),
    Me = self(),
    spawn_link(fun() -> {ok, F} = file:open("pipe", [read, raw]), Me ! {read, file:read(F, 2), file:close(F)} end),
    ok = file:write_file("beside", "b"),
    {ok, B} = file:open("beside", [read, raw]),
    ok = file:close(B),
    receive {read, _, _} = Early -> exit(Early) after 20 -> ok end,
    {ok, W} = file:open("pipe", [write, raw]),
    ok = file:write(W, "hi"),
    R = receive {read, _, _} = Read -> Read end,
    ok = file:close(W),
    [ok = file:delete(N) || N <- ["pipe", "beside"]],
    R.

%% Many processes at once; nothing stays open.
crowd() ->
    ok = file:make_dir("crowd"),
    [ok = file:write_file("crowd/" ++ integer_to_list(N), integer_to_list(N)) || N <- lists:seq(1, 20)],
    {ok, Before} = file:list_dir("/proc/self/fd"),
    Work = fun(N) ->
        Name = "crowd/" ++ integer_to_list(N),
        Text = integer_to_list(N),
        [begin
            {ok, F} = file:open(Name, [read, raw]),
            {ok, Text} = file:read(F, 10),
            ok = file:close(F),
            {ok, L} = file:list_dir("crowd"),
            20 = length(L)
         end || _ <- lists:seq(1, 50)]
    end,
    Ps = [spawn_monitor(fun() -> Work(N) end) || N <- lists:seq(1, 20)],
    R = lists:usort([receive {'DOWN', M, process, P, Why} -> Why end || {P, M} <- Ps]),
    {ok, After} = file:list_dir("/proc/self/fd"),
    ok = file:del_dir_r("crowd"),
    {R, length(After) =< length(Before) + 1}.
