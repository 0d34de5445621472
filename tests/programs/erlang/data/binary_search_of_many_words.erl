%% Searches for several words at once, with words and subjects just below and above the limits for
%% the search without an automaton, and joins lists of pieces of all lengths. Prints sums over
%% pseudo-random choices, and single results near the limits.
-module(binary_search_of_many_words).
-export([main/1]).

main(_) ->
    rand:seed(exsss, {1, 2, 3}),
    io:format("~p~n", [erlang:phash2([search(N) || N <- lists:seq(1, 400)])]),
    S = binary:copy(<<"abcab">>, 10),
    io:format("~p~n", [[binary:match(S, W) || W <- [[<<"bc">>, <<"b">>], [<<"ca">>, <<"cab">>], [<<"x">>, <<"y">>], [<<"b">>, <<"b">>],
        [<<"cabx">>, <<"ab">>, <<"bca">>, <<"a">>, <<"c">>]]]]),
    io:format("~p~n", [[binary:split(<<"a,b;c,,d">>, [<<",">>, <<";">>, <<",,">>], O) || O <- [[], [global], [global, trim_all]]]]),
    Spaces = [<<C/utf8>> || C <- [9, 10, 11, 12, 13, 32, 133, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8200, 8201, 8202, 8232, 8233, 8287, 12288]],
    Text = unicode:characters_to_binary([" a", 8195, 8194, "se\x{f1}or \t", 12288, 8199, "b", 133, 13, 10]),
    io:format("~p~n", [[binary:split(Text, P, O) || P <- [Spaces, lists:reverse(Spaces), [<<13, 10>> | Spaces]], O <- [[global], [global, trim_all], []]]]),
    io:format("~p~n", [catch element(1, element(2, catch binary:matches(<<"ab">>, [<<"ab">>, <<"b">>, <<>>, <<"c">>])))]),
    ok.

search(N) ->
    Alphabet = lists:nth(1 + N rem 3, ["ab", "abcd", lists:seq(0, 255)]),
    Subject = text(Alphabet, lists:nth(1 + rand:uniform(7), [0, 1, 60, 300, 4090, 4200, 16380, 16390])),
    Words = [text(Alphabet, rand:uniform(lists:nth(1 + N rem 2, [4, 20]))) || _ <- lists:seq(1, rand:uniform(lists:nth(1 + N rem 5, [10, 10, 10, 30, 70])))],
    Scope = [{scope, {rand:uniform(byte_size(Subject) + 1) - 1, 0}}],
    {binary:match(Subject, Words), binary:matches(Subject, Words), binary:split(Subject, Words), binary:split(Subject, Words, [global]),
        binary:match(Subject, Words, Scope), binary:matches(Subject, binary:compile_pattern(Words)),
        iolist_to_binary(pieces(Subject)) =:= Subject, iolist_size(pieces(Subject))}.

%% The bytes of a binary as an I/O list of pieces of all kinds.
pieces(<<>>) -> [];
pieces(B) ->
    N = min(byte_size(B), rand:uniform(40) - 1),
    <<P:N/binary, R/binary>> = B,
    case rand:uniform(6) of
        1 -> [binary:copy(P) | pieces(R)];
        2 -> [P, [pieces(R)]];
        3 -> [binary_to_list(P) | pieces(R)];
        4 -> [[[], binary:copy(P)], [] | pieces(R)];
        5 -> <<_:3, U:N/binary, _/bits>> = <<0:3, P/binary, 0:5>>, [U | pieces(R)];
        6 -> [pieces(P) | R]
    end.

text(Alphabet, N) ->
    << <<(lists:nth(rand:uniform(length(Alphabet)), Alphabet))>> || _ <- lists:seq(1, N) >>.
