%% Checks the external term format, hashes, sizes, and comparison across types. @stress
-module(external_format_and_hashes).
-export([main/0]).

terms() ->
    [1, -1, 255, 256, 1 bsl 31, 1 bsl 64, -(1 bsl 100), 1.5, -0.0, a, 'åß日', "", "abc", [1000, 2000], [a | b], {}, {1, 2}, list_to_tuple(lists:seq(1, 300)),
     <<>>, <<1, 2, 3>>, <<1:3>>, binary:copy(<<"x">>, 200), #{}, #{a => 1, "k" => [v]}, fun lists:map/2, lists:seq(1, 300), lists:duplicate(70000, $a), true, nil, []].

main() ->
    [begin
         B = term_to_binary(T),
         io:format("~p ~p ~p ~p ~p~n", [erlang:phash2(T), erlang:phash2(T, 1000), byte_size(B), erlang:md5(B), binary_to_term(B) =:= T])
     end || T <- terms()],
    io:format("~w~n", [term_to_binary({a, [1, 2.5, "str"], #{k => <<1:4>>}})]),
    io:format("~w~n", [term_to_binary(a, [{minor_version, 1}])]),
    Big = lists:duplicate(1000, {some, "repeated", data}),
    C = term_to_binary(Big, [compressed]),
    io:format("~p ~p~n", [byte_size(C) < 1000, binary_to_term(C) =:= Big]),
    io:format("~p~n", [binary_to_term(<<(term_to_binary(x))/binary, "tail">>, [used])]),
    io:format("~p~n", [[catch binary_to_term(X) || X <- [<<>>, <<131>>, <<131, 255>>, <<131, 108, 255, 255, 255, 255>>, <<131, 100, 0, 5, "ab">>]]]),
    io:format("~p~n", [catch binary_to_term(<<131, 119, 8, "no_atom9">>, [safe])]),
    io:format("~p~n", [lists:sort([[], {}, #{}, <<>>, a, 1, 1.5, "s", {a}, [a], fun lists:map/2 =:= x])]),
    io:format("~p~n", [[erts_debug:flat_size(T) || T <- terms(), not is_float(T)]]),
    X = lists:seq(1, 10), Y = {X, X, X},
    io:format("~p ~p~n", [erts_debug:size(Y), erts_debug:flat_size(Y)]),
    io:format("~p~n", [[erlang:external_size(T) || T <- terms()]]),
    io:format("~w~n", [erlang:term_to_iovec({a, b})]),
    io:format("~p~n", [[erlang:crc32(<<"abc">>), erlang:adler32(<<"abc">>), erlang:md5("abc")]]),
    Deep = lists:foldl(fun(_, A) -> [A] end, [], lists:seq(1, 200000)),
    D2 = lists:foldl(fun(_, A) -> [A] end, [], lists:seq(1, 200000)),
    io:format("~p ~p~n", [Deep =:= D2, binary_to_term(term_to_binary(Deep)) =:= Deep]),
    Self = self(),
    spawn(fun() -> Self ! Deep end),
    receive M -> io:format("~p ~p~n", [M =:= Deep, erlang:phash2(M)]) end,
    io:format("~p~n", [[a < b, 1 < a, a < {}, {1, 2} < {0, 0, 0}, [] < [1], "b" > "a", <<1>> < <<1, 2>>, 1.0 == 1, {1.0} == {1}, max(a, 1), min([], {})]]).
