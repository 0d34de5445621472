%% A program that cannot begin while a file of its last run is there. It leaves that file if it
%% cannot delete it.
-module(leftover_fails).
-export([main/0]).

-define(PATH, "leftover_fails.lock").

main() ->
    {ok, F} = file:open(?PATH, [raw, write, exclusive]),
    _ = file:close(F),
    _ = file:delete(?PATH),
    ok.
