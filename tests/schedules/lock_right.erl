%% Two processes make the same file, which one of them may: its folder is made anew in each run, and
%% deleted.
-module(lock_right).
-export([main/0]).

main() ->
    Dir = filename:join(tmp(), "purlin-lock-" ++ os:getpid()),
    ok = file:make_dir(Dir),
    File = filename:join(Dir, "lock"),
    Main = self(),
    Take = fun() -> Main ! {took, element(1, file:open(File, [write, exclusive]))} end,
    spawn(Take),
    spawn(Take),
    Took = [receive {took, T} -> T end || _ <- [1, 2]],
    ok = file:delete(File),
    ok = file:del_dir(Dir),
    halt(case lists:sort(Took) of [error, ok] -> 0; _ -> 1 end).

tmp() ->
    os:getenv("TMPDIR", "/tmp").
