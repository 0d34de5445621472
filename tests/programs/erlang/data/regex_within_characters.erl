%% Starts matches in the middle of a character, in short and long subjects, valid and invalid.
-module(regex_within_characters).
-export([main/0]).

main() ->
    [io:format("~w ~s ~w: ~w~n", [Name, RE, Options, [run(B, RE, [{offset, O} | Options]) || O <- [0, 1, 2, 3, 4, byte_size(B) - 1, byte_size(B)]]])
     || {Name, B} <- texts(),
        RE <- ["zzz", "a", ".", "(?<=a).", "^", "\\G.", "[^a]", "\\X"],
        Options <- [[], [unicode], [unicode, anchored], [unicode, {capture, none}], [unicode, report_errors], [unicode, firstline]]].

texts() ->
    Long = binary:copy(<<"a", 16#e9/utf8>>, 60000),
    [{short, binary:copy(<<"a", 16#e9/utf8>>, 5)}, {long, Long}, {damaged, <<Long/binary, 255>>}, {damaged_first, <<255, Long/binary>>}].

run(B, RE, Options) ->
    try re:run(B, RE, Options) catch _:R -> R end.
