%% Checks regular expressions through module re. @stress
-module(regular_expressions).
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
    conditions(),
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

%% Conditions, those that are not well formed above all.
conditions() ->
    [io:format("~s ~p~n", [P ++ Q, case re:compile(P ++ Q) of {ok, _} -> ok; E -> E end])
     || P <- ["", "x"], Q <- [
            "(?(?C)a)", "(?(?C1)a)", "(?(?C256)a)", "(?(?C1)(?=a)b)", "(?(?C)(?=a)b)", "(?(?C", "(?(?C1", "(?(?C1)", "(?(?Cx)a)",
            "(?(?C1x)a)", "(?(?C1)x)a)", "(?(?C1)?=x)a)", "(?(?C1)(?<=x)a)", "(?(?C1)(?<n>x)a)", "(?(?C1)(?:x)a)", "(?(?C)(?C)(?=a)a)",
            "(?(?C255)(?!a)a)", "(?(?C1)(*F)a)", "(?(?C1)(x)a)", "(?(?C1)(?", "(?(?C1)(", "(?(?C1)(?=", "(?(?=a)b|c|d)",
            "(?(?C1)(?=a)b|c|d)", "(?(?C9999999999)(?=a)b)", "(?(? C1)(?=a)b)", "(?(?:a)b)", "(?(?#a)b)", "(?(?i)b)", "(?(?R)b)",
            "(?(?&n)b)", "(?(?P=n)b)", "(?(?P<n>a)b)", "(?(?|a)b)", "(?(?>a)b)", "(?(?1)b)", "(?(?-1)b)", "(?(?+1)b)", "(?(?<a)b)",
            "(?(?<)b)", "(?(?'a')b)", "(?(?)b)", "(?(?", "(?(?<", "(?(?=", "(?(1)a|b|c)()", "()(?(1)a|b|c)", "()(?(1)a|b|c",
            "()(?(1)a|b|c|d)e", "(?(?=a)b|c|d", "(?(?=a)b|(c|d)|e)", "(?(?=a)b|(c|d)|e", "(?(DEFINE)a|b)", "(?(DEFINE)a|b",
            "(?(DEFINE)(a|b))", "(?(DEFINE)(a|b)", "(?(?=a|b|c)d|e)", "(?(?=a|b|c)d|e|f)", "(?(?=a|b|c)d|e|f(", "(?(?=a|b|c)d|e|f(|g|h|i",
            "(?(R)a|b|c)", "(?(R&n)a|b|c)(?<n>x)", "(?(R1)a|b|c)(x)", "(?(<n>)a|b|c)(?<n>x)", "(?(n)a|b|c)(?<n>x)", "(?<n>x)(?(n)a|b|c)",
            "(?<n>x)(?(z)a|b|c)", "(?(?C1)(?=a)b|c|d)", "(?(?C256)(?=a)b|c)", "(?(?=", "(?(?!", "(?(?<=", "(?(?<!", "(?(?=a", "(?(?=)",
            "(?(?=)a", "(?(?=)a|b|c", "(?(?C)(?=", "(?(?C)(?<=", "(?(?C)(?<!", "(?(?C", "(?(?C)", "(?(?C1", "(?(?C(?=a)a)",
            "(?(?C1x)(?=a)a)", "(?(?CC)(?=a)a)", "(?(?C1)(?C2)", "(?(?C)(?a)b)", "(?(?C)[a]b)", "(?(1)a|b|c)", "(?(1)a|b|c",
            "(?(2)a|b|c)", "(?(9)a|b)(", "(?(DEFINE)a|b|c)", "(?(DEFINE)a|b|c", "(?(DEFINE)|)", "(?(DEFINEx)a|b)",
            "(?<DEFINE>a)(?(DEFINE)a|b)", "(?i:(?(?=a)b|c|d))", "(?(?=a)b|c|d)\\", "[(?(?=a)b|c|d)", "(?(?=a)b|c|d)(?<",
            "(?(?=a)b|c|d)*{2}+?*", "\\Q(?(?=a)b|c|d)", "(?(?=a)b|\\Qc|d)\\E)", "(?x)(?(?=a)b| c # |d |\n)"]].
