-module(journal).
-export([main/0]).

%% Five entries are to be in the journal before the program says so.
main() ->
    {ok, File} = file:open("journal.log", [write, raw]),
    [add(File, N) || N <- lists:seq(1, 5)],
    ok = file:close(File),
    halt(0).

add(File, N) ->
    ok = file:write(File, [integer_to_list(N), $\n]),
    ok = file:sync(File).
