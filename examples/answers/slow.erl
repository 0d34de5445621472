-module(slow).
-export([main/1]).

%% Makes a hundred pages a second, as the version that the argument names does it.
main([Version]) ->
    io:format("ready~n"),
    pages(Version, lists:seq(1, 200)).

pages(Version, Rows) ->
    page(Version, Rows),
    timer:sleep(10),
    pages(Version, Rows).

page("1.4", Rows) ->
    lists:reverse(lists:foldl(fun(Row, Page) -> [{row, Row} | Page] end, [], Rows));
page("1.5", Rows) ->
    lists:foldl(fun(Row, Page) -> Page ++ [{row, Row}] end, [], Rows).
