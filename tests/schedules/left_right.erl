%% Leaves files behind, and must not find any: with --fresh-dir it does not.
-module(left_right).
-export([main/0]).

main() ->
    Files = ["left.txt", filename:join(os:getenv("TMPDIR"), "left.txt")],
    false = lists:any(fun filelib:is_file/1, Files),
    Main = self(),
    [spawn(fun() -> Main ! file:write_file(F, "left") end) || F <- Files],
    [ok, ok] = [receive R -> R end || _ <- Files],
    halt(0).
