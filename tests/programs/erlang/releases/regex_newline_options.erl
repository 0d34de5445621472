%% Passes a newline option with a compiled pattern. Since OTP 28 it must be the one that the pattern
%% was compiled with. @stress @shared @fence
-module(regex_newline_options).
-export([main/0]).

main() ->
    Text = <<"a1\rb2\nb3\r\nb4\x{c2}\x{85}b5">>,
    [begin
         {ok, P} = re:compile(Pattern, [multiline | C]),
         io:format("~s ~0p: ~0p~n", [Pattern, C, [{O, try re:run(Text, P, [global, {capture, all, binary} | O]) catch error:R -> R end} || O <- options()]])
     end || Pattern <- ["^b.*$", "\\R" | own()], C <- options(), not is_own(Pattern) orelse C =:= []],
    [io:format("~0p~n", [try re:F("a\nb", element(2, re:compile("^b", [multiline])), A) catch error:R -> R end])
     || {F, A} <- [{run, [{newline, cr}, notbol]}, {split, [{newline, cr}]}, {split, [{newline, lf}]}]].

options() -> [[], [{newline, lf}], [{newline, cr}], [{newline, crlf}], [{newline, any}], [{newline, anycrlf}], [bsr_unicode], [bsr_anycrlf], [{newline, cr}, bsr_anycrlf]].
is_own(P) -> hd(P) =:= $(.

%% What the pattern itself says is overruled by a call in earlier releases.
own() ->
    case list_to_integer(erlang:system_info(otp_release)) of
        N when N < 28 -> [];
        _ -> ["(*CR)^b.*$", "(*BSR_ANYCRLF)\\R"]
    end.
