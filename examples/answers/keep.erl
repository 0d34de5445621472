-module(keep).
-export([main/1]).

%% A cache keeps the head of each report. Each head is a part of a report of two MiB.
main(_) ->
    Cache = spawn(fun() -> cache(#{}) end),
    register(cache, Cache),
    Cache ! {report, binary:copy(<<"all sales ">>, 209715)},
    erlang:garbage_collect(),
    io:format("ready~n"),
    receive stop -> ok end.

cache(Kept) ->
    receive {Key, Report} ->
        <<Head:100/binary, _/binary>> = Report,
        cache(Kept#{Key => {Head, byte_size(Report)}})
    end.
