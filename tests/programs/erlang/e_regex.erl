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
    io:format("~p~n", [re:run("line1\r\nline2", "^line2$", [multiline, {newline, crlf}])]),
    %% What only PCRE takes, or tells like that.
    [io:format("~p ~p ~0p~n", [P1, Os, case re:compile(P1, Os) of {ok, {re_pattern, N, U, L, _}} -> {N, U, L}; E -> E end])
     || P1 <- ["(?(R1)a)", "(?(R1)a|b)(c)", "(c)(?(R1)a|b)", "(?(R9)a)", "(*LIMIT_MATCH=)", "(*LIMIT_MATCH=99999999999)a", "(*LIMIT_RECURSION=)", "a{65536}", "(?99999999999)", "\\g{99999999999}",
               "(?(99999999999)a)", "\\99999999999", "(?C256)", "?a*(*UTF8)", "(*UTF8)?", "^*", "(?i)*", ")", "a)(*UTF8)", "(a)|)", "(?:*)", "(?=*)", "()|?", "(?#x)*", "{1}", "(?<n>+)", "(?(1)*|a)(b)", "(?(?=a)*)", " *", "a| *",
               "\\Q\\E*", "\\E*", "(?|*)", "\\2147483639", "\\2147483640", "\\g2147483647", "\\g{99999999999", "\\g{-99999999999}", "\\g<99999999999>", "\\g99999999999", "(?(R99999999999)a)"],
        Os <- [[], [extended]]],
    [io:format("~p~n", [re:run(S, P2, [report_errors])])
     || S <- ["aab", "b", "abd"], P2 <- ["(*LIMIT_MATCH=)a+b", "(*LIMIT_MATCH=0)a+b", "(*LIMIT_RECURSION=)a+b", "(?(R1)a|b)", "(?(R2)a|b)(c)?(?(R)d)"]].
