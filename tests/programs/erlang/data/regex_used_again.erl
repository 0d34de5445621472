%% Reuses compiled patterns: with several subjects, two alternately, with other newlines, in several
%% processes, and with more memory or steps than a scheduler grants. @stress @shared @fence
-module(regex_used_again).
-export([main/0]).

letters(S, P, O) -> try re:run(S, P, O) catch C:R -> {C, R} end.

main() ->
    {ok, Word} = re:compile("(\\w+)-([0-9]{2,4})"),
    {ok, Line} = re:compile("^b.*$", [multiline]),
    {ok, Greek} = re:compile("([α-ω]+)(x)?", [unicode]),
    {ok, Many} = re:compile(lists:append(lists:duplicate(60, "(a)?")) ++ "b"),
    Text = <<"name-12 b-345 no-1 last-4567">>,
    %% More groups in one than in the next, and the other way round.
    [io:format("~p~n", [[run(Text, P, []) || P <- Ps]]) || Ps <- [[Word, Many, Word], [Many, Line, Many, Greek], [Greek, Word, Line]]],
    [io:format("~p~n", [run(S, Greek, [{capture, all, T}])]) || S <- ["abc αβγx", <<"αβγ"/utf8>>, <<"ω", 255>>, ""], T <- [index, binary, list]],
    %% Letters beyond ASCII, of tables and of Unicode; groups in groups.
    [io:format("~0p~n", [{S, P, O, letters(S, P, O)}]) ||
        {S, P, O} <- [{[229], "\\w", [unicode]}, {<<229>>, "\\w", []}, {[1024], "\\w", [unicode]}, {[1024], "\\w", [unicode, ucp]}, {[229], "[[:alpha:]]", [unicode]},
            {<<229>>, "[[:upper:][:lower:]]", []}, {[229], "\\W", [unicode]}, {<<229>>, "\\W", []}, {[160, 133], "\\s", [unicode]}, {<<"x", 229>>, "x\\b", []},
            {<<229>>, <<197>>, [caseless]}, {[229], [197], [unicode, caseless]}, {"a" ++ [229, 228], "\\w+", [unicode]}, {[32, 229], "\\W\\w", [unicode]},
            {[32, 229], "\\b.", [unicode]}, {[228], "(\\w)\\W*$", [unicode]}]],
    [io:format("~p ~0p~n", [N, element(1, re:compile([lists:duplicate(N, $(), lists:duplicate(N, $))]))]) || N <- [200, 251, 798, 2000]],
    %% The newline of a call is that call's.
    Lines = <<"a1\rb2\nb3\r\nb4">>,
    [io:format("~p~n", [run(Lines, Line, [global, {capture, all, binary} | O])]) || O <- [[], [{newline, cr}], [], [{newline, crlf}], [{newline, any}], []]],
    [io:format("~p~n", [run(Text, Word, O)]) || O <- [[{offset, 9}], [{match_limit, 3}], [{match_limit, 3}, report_errors], [], [{match_limit_recursion, 1}, report_errors], [global]]],
    %% What is no pattern.
    {re_pattern, G, U, C, Bin} = Word,
    [io:format("~p~n", [run(Text, P, [])]) || P <- [{re_pattern, x, U, C, Bin}, {re_pattern, G, U, C, <<>>}, {re_pattern, G, U, x, Bin}, {re_pattern, G, U, C, atom}, Word]],
    %% Much memory (each group of a pattern takes some at each step), many steps: more than the
    %% patterns before and behind.
    Deep = <<(binary:copy(<<"ab">>, 1500))/binary, "c">>,
    [io:format("~p~n", [run(Deep, P, [{capture, first, index}])]) || P <- ["^(?:a(?=b)|b)*c", "^(?:(a)|b)*c", Word, "^(?:(a)|b)*d", Line]],
    [io:format("~p~n", [run(lists:duplicate(N, $a) ++ "b", lists:append(lists:duplicate(300, "(a)?")) ++ "b", [{capture, [1, 150, 300], index}])])
     || N <- [0, 1, 150, 299, 300, 301]],
    [io:format("~p~n", [run(binary:copy(<<"a">>, N), "(a+)+b", [{match_limit, 100000}, report_errors])]) || N <- [5, 12, 30]],
    Pids = [spawn_monitor(fun() -> exit(lists:sum([turn(lists:nth(1 + (I + J) rem 4, [Word, Line, Greek, Many]), J) || J <- lists:seq(1, 200)])) end)
            || I <- lists:seq(1, 6)],
    io:format("~p~n", [[receive {'DOWN', R, process, P, Sum} -> Sum end || {P, R} <- Pids]]).

turn(P, J) ->
    S = iolist_to_binary(["b", integer_to_list(J), "-", integer_to_list(J * 7), "\nb aaab", <<"αx"/utf8>>]),
    erlang:phash2(run(S, P, [global, {capture, all, binary}])).

run(Subject, Pattern, Options) ->
    try re:run(Subject, Pattern, Options)
    catch C:R -> {C, R}
    end.
