%% Gives options of regular expressions several times. With PCRE, newlines are bits of one number;
%% with PCRE2, since OTP 28, the last one counts.
-module(repeated_options_of_patterns).
-export([main/0]).

main() ->
    Newlines = [cr, lf, crlf, any, anycrlf],
    [io:format("~w ~w ~w~n", [A, B, [found(S, "b$", [multiline, {newline, A}, {newline, B}]) || S <- ends()]])
     || A <- Newlines, B <- Newlines],
    [io:format("~w ~w~n", [L, compiled([{newline, N} || N <- L])])
     || L <- [[any, lf, cr], [anycrlf, crlf, cr], [cr, cr, cr], [crlf, anycrlf, lf], [lf, nothing], [nothing, lf]]],
    Breaks = [bsr_anycrlf, bsr_unicode],
    [io:format("~w ~w ~w~n", [A, B, [found(S, "a\\Rb", [A, B]) || S <- ["a\r\nb", [$a, 11, $b]]]])
     || A <- Breaks, B <- Breaks],
    [io:format("~w ~w~n", [O, found("aab", "a", O)])
     || O <- [[{offset, 0}, {offset, 1}], [{offset, 1}, {offset, 0}], [{capture, none}, {capture, all}],
              [{capture, all, list}, {capture, all, binary}], [{match_limit, 1}, {match_limit, 1000}],
              [report_errors, report_errors], [global, {capture, none}, global]]].

ends() -> [<<"b\r">>, <<"b\n">>, <<"b\r\n">>, <<"b", 0>>, <<"b", 11>>].

found(Subject, Pattern, Options) ->
    try re:run(Subject, Pattern, Options) catch error:Why -> Why end.

compiled(Options) ->
    try re:compile("b", Options) of
        {ok, _} -> ok;
        {error, Why} -> Why
    catch
        error:Why -> Why
    end.
