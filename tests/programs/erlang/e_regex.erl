%% Regular expressions through module re. @stress
-module(e_regex).
-export([main/0]).

main() ->
    io:format("~p~n", [re:run("Hello World", "w(or)ld", [caseless])]),
    io:format("~p~n", [re:run("ab12cd345", "[0-9]+", [global, {capture, all, list}])]),
    io:format("~p~n", [re:run("key=value", "(?<k>\\w+)=(?<v>\\w+)", [{capture, [k, v], binary}])]),
    io:format("~p~n", [re:replace("Hello & Goodbye", "&", "&amp;")]),
    io:format("~s~n", [re:replace("abc", "(b)", "[\\1\\g1&]", [{return, list}])]),
    io:format("~p~n", [re:split("a1b22c333d", "[0-9]+", [{return, list}])]),
    io:format("~p~n", [re:split("a,b,,c,", ",", [trim])]),
    {ok, P} = re:compile("^(\\d{4})-(\\d\\d)$", [multiline]),
    io:format("~p~n", [re:run("2024-01\n1999-12\nx", P, [global, {capture, all_but_first, list}])]),
    io:format("~p~n", [re:compile("(unclosed")]),
    io:format("~p~n", [re:run("日本語テキスト", "本(.)", [unicode, {capture, all, list}])]),
    io:format("~p~n", [re:run("aaa", "a*?", [global])]),
    io:format("~p~n", [re:run("foobar", "foo(?=bar)", [{capture, first, list}])]),
    io:format("~p~n", [re:run("abcabc", "(abc)\\1")]),
    io:format("~p~n", [re:inspect(P, namelist)]),
    io:format("~p~n", [catch re:run("x", "(a", [])]),
    io:format("~p~n", [re:run(lists:duplicate(30, $a), "(a+)+$b", [{match_limit, 1000}, report_errors])]),
    io:format("~p~n", [re:replace("aaaa", "a", "b", [global, {offset, 2}, {return, binary}])]),
    io:format("~p~n", [re:run("line1\r\nline2", "^line2$", [multiline, {newline, crlf}])]).
