%% Checks strings and Unicode: modules string, unicode and io_lib, case, grapheme clusters, normal
%% forms. @stress
-module(unicode_strings).
-export([main/0]).

main() ->
    S = "Ünïcödé ß ﬁ 日本語 👨‍👩‍👧 e\x{301}",
    io:format("~ts~n", [S]),
    io:format("~p ~p~n", [length(S), string:length(S)]),
    [io:format("~ts~n", [F(S)]) || F <- [fun string:uppercase/1, fun string:lowercase/1, fun string:titlecase/1, fun string:casefold/1, fun string:reverse/1]],
    io:format("~w~n", [string:to_graphemes("e\x{301}a👨‍👩‍👧")]),
    io:format("~w~n", [unicode:characters_to_nfd_list("éå")]),
    io:format("~w~n", [unicode:characters_to_nfc_list("e\x{301}")]),
    io:format("~w~n", [unicode:characters_to_binary(S)]),
    io:format("~w~n", [unicode:characters_to_binary(S, utf8, {utf16, little})]),
    io:format("~p~n", [unicode:characters_to_list(<<"ok", 255, "rest">>)]),
    io:format("~p~n", [unicode:characters_to_list(<<"cut", 16#E6>>)]),
    io:format("~p~n", [string:split("a,b,c", ",", all)]),
    io:format("~p~n", [string:lexemes("  foo  bar ", " ")]),
    io:format("~p~n", [[string:trim("  x  "), string:trim("xxhixx", both, "x"), string:pad("x", 5), string:pad("x", 5, leading, $0), string:slice("hello", 1, 3)]]),
    io:format("~p~n", [[string:find("abcabc", "bc"), string:find("abcabc", "bc", trailing), string:prefix("prefix", "pre"), string:equal("É", "é", true)]]),
    io:format("~p~n", [[string:to_integer("42rest"), string:to_float("1.5e3x"), string:to_integer("x")]]),
    io:format("~p~n", [string:replace("aXbXc", "X", "--", all)]),
    io:format("~ts~n", [string:replace("aXbXc", "X", "--", all)]),
    io:format("~p~n", [string:join(["a", "b"], ", ")]),
    io:format("~p~n", [[list_to_integer("-12"), list_to_float("1.25"), integer_to_list(255, 2), float_to_list(1.0e-5), float_to_list(3.0, [{decimals, 2}, compact])]]),
    io:format("~p~n", [[1.0, 0.1, 1.0e22, 1.0e23, 123456789.125, 1.0e-7, -0.0, 5.0e-324, 1.7976931348623157e308]]),
    io:format("~tp ~p~n", ["日本", "日本"]),
    io:format("~tp ~p~n", [<<"日本"/utf8>>, <<"日本"/utf8>>]),
    io:format("~tw ~w~n", ['日本', 'with space']),
    io:format("~p~n", [['Upper', 'with space', '', 'a@b', '1a', 'åtom', 'if', nil, '\n']]),
    io:format("~p~n", [["", "abc", [1, 2], [$a, 1], "tab\t", "nl\n\e"]]),
    io:format("~s|~10s|~-10s|~.3s|~c|~5c~n", ["str", "right", "left", "truncated", $x, $y]).
