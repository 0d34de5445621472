-module(held).
-export([main/1]).

%% A process that has gone on to wait holds what it was given before.
main(_) ->
    Pages = [binary:copy(<<N>>, 1 bsl 20) || N <- lists:seq(1, 100)],
    spawn(fun() -> register(holder, self()), receive {show, N} -> lists:nth(N, Pages) end end),
    timer:sleep(100).
