%% Starts matches after bytes that are not valid UTF-8. Since OTP 28 only the searched part must be
%% valid.
-module(regex_behind_invalid_text).
-export([main/0]).

main() ->
    [io:format("~w ~w ~w: ~w~n", [Name, RE, Options, [run(B, RE, [{offset, O} | Options]) || O <- offsets(B)]])
     || {Name, B} <- texts(),
        RE <- [<<"b">>, <<16#e9/utf8>>, <<"(?<=a)b">>, <<"(?<=.a)b">>, <<"\\bb">>, <<"^">>, <<>>],
        Options <- [[unicode], [unicode, anchored], [unicode, {capture, none}] | [[unicode, global] || byte_size(B) < 10]]],
    {ok, Compiled} = re:compile(<<"b">>, [unicode]),
    [io:format("~w ~w~n", [Name, [run(B, Compiled, [{offset, O}]) || O <- offsets(B)]]) || {Name, B} <- texts()],
    [io:format("~w ~w~n", [Name, try hash(re:replace(B, <<"b">>, <<"c">>, [unicode, global])) catch _:R -> R end]) || {Name, B} <- texts(), byte_size(B) < 10].

texts() ->
    Long = binary:copy(<<"ab", 16#e9/utf8>>, 3000),
    [{first, <<255, "ab">>},
     {second, <<"a", 255, "ab">>},
     {half, <<195, "ab">>},
     {surrogate, <<237, 160, 128, "ab">>},
     {whole, <<16#e9/utf8, "ab">>},
     {behind, <<"ab", 255>>},
     {long_first, <<255, Long/binary>>},
     {long_behind, <<Long/binary, 255>>}].

offsets(B) when byte_size(B) < 10 -> lists:seq(0, byte_size(B));
offsets(B) -> [0, 1, 2, 3, 4, 5001, byte_size(B) - 1, byte_size(B)].

run(B, RE, Options) ->
    try re:run(B, RE, Options) of
        {match, M} when length(M) > 3 -> {match, length(M), erlang:phash2(M)};
        R -> R
    catch
        _:R -> R
    end.

hash(R) -> erlang:phash2(iolist_to_binary(R)).
