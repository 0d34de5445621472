%% Converts character data too long for one time slice, and data with an error at the very end.
%% @stress @fence
-module(long_character_conversions).
-export([main/0]).

main() ->
    L = binary_to_list(binary:copy(<<"abcd">>, 101000)),
    [show(F, E, L) || {F, E} <- [{characters_to_binary, utf8}, {characters_to_binary, latin1}, {characters_to_list, utf8}]].

show(F, E, L) ->
    io:format("~p ~p~n", [F, E]),
    [io:format("  ~p~n", [converted(F, E, D)])
     || D <- [L, L ++ [x], L ++ [1.0], L ++ [1 bsl 80], L ++ [1 bsl 80, x], L ++ x, L ++ [16#d800], [L, L | <<233/utf8>>],
              [L, <<128>>], L ++ <<195>>, [L, {}], L ++ [<<1:3>>], lists:duplicate(2, [L | <<>>])]].

converted(F, E, D) ->
    try unicode:F(D, E) of
        {What, Done, Rest} -> {What, sum(Done), Rest};
        Done -> sum(Done)
    catch
        C:R:Trace ->
            {M, N, A, Info} = hd(Trace),
            {C, R, M, N, is_list(A) andalso length(A), Info}
    end.

sum(B) when is_binary(B) -> {byte_size(B), erlang:crc32(B)};
sum(L) -> {length(L), erlang:phash2(L)}.
