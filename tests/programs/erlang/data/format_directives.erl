%% Checks the directives of `io:format`, line breaking by `~p`, depth limits, and errors in the
%% format string. @stress
-module(format_directives).
-export([main/0]).
-record(r, {a, b = []}).

main() ->
    io:format("~w ~p ~b ~.2b ~.16b ~.16B ~.16# ~10.3f ~e ~g ~g~n", [x, y, 10, 10, 255, 255, 255, 3.14159, 1.5, 0.1, 1.0e20]),
    io:format("~5w|~-5w|~5.5.0w|~*w~n", [a, b, 7, 6, c]),
    io:format("~~ ~c ~ts ~i~w~n", [$A, "x", ignored, seen]),
    io:format("~P~n~W~n", [lists:seq(1, 100), 10, {a, {b, {c, {d, e}}}}, 4]),
    io:format("~p~n", [[{key, N, "some text to make it long", [N, N + 1, {deep, {deeper, N}}]} || N <- lists:seq(1, 6)]]),
    io:format("~p~n", [#{long_key_number_one => "a value that is long", long_key_number_two => [lists:seq(1, 40)], k => #{nested => <<"binary">>}}]),
    io:format("~30p|~n", [lists:seq(1, 20)]),
    io:format("~p~n", [lists:seq(1, 60)]),
    io:format("~p~n", [#r{a = 1}]),
    io:format("~p~n", [list_to_tuple(lists:seq(1, 50))]),
    io:format("~p~n", [<<0:800>>]),
    io:format("~p~n", ["a long string that has to be broken over several lines because it does not fit into eighty columns at all, really not"]),
    io:format("~p~n", [{self(), make_ref(), fun lists:map/2, fun(X) -> X end} =/= x]),
    io:format("~p ~w~n", [fun lists:map/2, fun erlang:'+'/2]),
    io:format("~s~n", [io_lib:format("~p", [[$a | improper]])]),
    io:format("~p~n", [[1, 2 | 3]]),
    io:format("~p ~p~n", [1 bsl 100, -(1 bsl 70)]),
    %% Halfway between two texts of the same length.
    io:format("~w ~w~n", [-24606994464509.3125, 24606994464509.4375]),
    rand:seed(exsss, 1),
    Floats = [rand:uniform(1 bsl 62) / (1 bsl rand:uniform(70)) || _ <- lists:seq(1, 20000)],
    io:format("~w~n", [erlang:phash2([float_to_list(F, [short]) || F <- Floats])]),
    io:format("~ts~n", [io_lib:print({a, "b", [c, d]}, 5, 20, -1)]),
    io:format("~p~n", [lists:flatten(io_lib:write_string("quote \" \\ \n"))]),
    io:format("~p~n", [io_lib:fread("~d ~s ~f", "12 word 1.5 rest")]),
    io:format("~p~n", [try io:format("~p ~p~n", [one]) catch error:R -> R end]),
    io:format("~p~n", [try io:format("~z", [x]) catch error:R2 -> R2 end]),
    io:format("~p~n", [try io:format("~s", [{a}]) catch error:R3 -> R3 end]),
    io:format(standard_error, "to standard error: ~p~n", [x]),
    io:put_chars("put_chars\n"), io:nl(), io:write({a, [b]}), io:nl(),
    io:fwrite("~999999p~n", [[{key, N, "some text to make it long"} || N <- lists:seq(1, 6)]]),
    io:format("~p~n", [io_lib:format("~0p", [lists:seq(1, 60)])  =/= ""]),
    io:format("~0p~n", [lists:seq(1, 60)]).
