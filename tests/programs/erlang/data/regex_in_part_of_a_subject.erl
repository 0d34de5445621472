%% Matches patterns that look beyond their match: at ends, newlines and neighbouring characters. A
%% long subject is searched in part first, which must not change the result, wherever the part ends.
%% @stress
-module(regex_in_part_of_a_subject).
-export([main/0]).

main() ->
    rand:seed(exsss, {17, 4, 2026}),
    Results = [one(N) || N <- lists:seq(1, 3000)],
    [io:format("~p ~p~n", [N, erlang:phash2(lists:sublist(Results, N, 100))]) || N <- lists:seq(1, 3000, 100)],
    io:format("~p~n", [[far(N) || N <- [65535, 65536, 65537, 69632, 73728, 73729, 200000]]]).

one(_) ->
    Subject = subject(rand:uniform(60)),
    Pattern = lists:flatten(pattern(3)),
    Options = [O || O <- [multiline, dotall, caseless, unicode, firstline, ungreedy, {newline, crlf}, {newline, anycrlf}],
                    rand:uniform(6) =:= 1],
    case re:compile(Pattern, Options) of
        {ok, P} ->
            Offset = rand:uniform(4) - 1,
            Run = [O || O <- [anchored, notempty, notbol, noteol, notempty_atstart], rand:uniform(8) =:= 1],
            One = catch re:run(Subject, P, [{offset, min(Offset, byte_size(Subject))} | Run]),
            All = catch re:run(Subject, P, [global, {capture, all, binary}]),
            {Pattern, Options, why(One), why(All)};
        {error, _} -> none
    end.

why({'EXIT', {Why, _}}) -> Why;
why(Else) -> Else.

subject(N) -> << <<(lists:nth(rand:uniform(8), "aabbc \n\r"))>> || _ <- lists:seq(1, N) >>.

pattern(0) -> lists:nth(rand:uniform(14), ["a", "b", "c", "[ab]", "[^a]", ".", "\\n", "\\r", "\\s", "\\w", " ", "\\R", "\\N", "\\X"]);
pattern(Depth) ->
    D = Depth - 1,
    P = fun() -> pattern(D) end,
    case rand:uniform(24) of
        N when N =< 7 -> [P(), P()];
        8 -> [P(), "|", P()];
        9 -> ["(", P(), ")"];
        10 -> ["(?:", P(), ")*"];
        11 -> ["(?:", P(), ")+?"];
        12 -> ["(?:", P(), ")?"];
        13 -> ["(?>", P(), ")"];
        14 -> ["(?=", P(), ")"];
        15 -> ["(?!", P(), ")"];
        16 -> ["(?<=", pattern(0), ")"];
        17 -> ["(?<!", pattern(0), ")"];
        18 -> [P(), "$"];
        19 -> ["^", P()];
        20 -> ["\\b", P()];
        21 -> [P(), lists:nth(rand:uniform(4), ["\\z", "\\Z", "\\B", "$"])];
        22 -> [pattern(0), "++", P()];
        23 -> ["(", P(), ")\\1"];
        24 -> ["(?:", P(), "){2,3}"]
    end.

%% A match that ends, or begins, that far on.
far(N) ->
    A = binary:copy(<<"a">>, N),
    U = binary:copy(<<"ä"/utf8>>, N div 2),
    Lines = binary:copy(<<"abc def\n">>, N div 8),
    [re:run(<<A/binary, "b">>, "a*b"), re:run(<<A/binary, "b">>, "b$"), re:run(<<A/binary, "\nb">>, "^b", [multiline]),
     re:run(<<A/binary, "\n">>, "a$"), re:run(<<A/binary, "\n">>, "a$", [multiline, {capture, first}]), re:run(A, "a\\z"), re:run(A, "\\z"),
     re:run(<<A/binary, "b">>, "^a*+"), re:run(<<A/binary, "b">>, "^a*?b"), re:run(<<A/binary, "b">>, "a(?!a)"), re:run(<<A/binary, "b">>, "(?<=a)b"),
     re:run(<<A/binary, " ">>, "a\\b"), re:run(<<A/binary, "b">>, "(a+)b"), re:run(<<A/binary, "b">>, "a+(*COMMIT)c|b"),
     re:run(<<U/binary, "b">>, <<"ä*b"/utf8>>, [unicode]), re:run(<<U/binary, "b">>, "b", [unicode, {offset, 2 * (N div 2)}]),
     re:run(Lines, "^abc def$\\z", [multiline]), re:run(Lines, "f\n\\z"), re:run(Lines, "f$", [{capture, first}]),
     re:run(<<A/binary, "b">>, "a*+b", [{offset, 5}, {capture, all, list}]) =/= nomatch].
