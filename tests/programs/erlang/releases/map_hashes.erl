%% Checks the order of large maps and tables, which follows from a hash of 32 bits up to OTP 25 and
%% 64 bits since. Numbers, texts and terms made of them hash alike from run to run; for atoms that
%% is true of the first two. @stress @shared
-module(map_hashes).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    erts_debug:set_internal_state(available_internal_state, true),
    [io:format("~0p ~p~n", [T, erts_debug:get_internal_state({internal_hash, T})]) || T <- terms()],
    [show(maps:from_list([{K, N} || {K, N} <- lists:zip(Ks, lists:seq(1, length(Ks)))])) || Ks <- keys()],
    rand:seed(exsss, {1, 2, 3}),
    %% Many maps, told by a digest of each way to walk them.
    [io:format("~p ~w~n", [N, digest(random_map(33 + rand:uniform(40 + N)))]) || N <- lists:seq(1, 150)],
    grown(),
    merged(),
    table(set),
    table(bag).

terms() ->
    [0, 1, -1, 255, 256, 1 bsl 40, (1 bsl 59) - 1, -(1 bsl 59), 1 bsl 59, -(1 bsl 63), 1 bsl 64, 1 bsl 130, -(1 bsl 200) - 7, 1.0, -2.5, 1.0e300, [],
     {}, {1}, {1, 2, 3}, {{}, 1, {}}, {1, {}, 2, {}}, {{}, 1, {}, 2}] ++ atoms() ++
    [
     "", "a", "ab", "abc", "abcd", "abcde", "abcdefghi", [1 | 2], [1, 2 | 3], [256], [256, 1], [1, 256 | 2], [{}], [{} | {}], [{}, {} | 1],
     [[[]]], ["ab", "cd" | "ef"], [1.5, 2], [1.0, {}, -2 | 3], [[1] | [2]], [-1, 3 | 4], lists:seq(250, 260),
     <<>>, <<1>>, <<"abcdefg">>, <<"abcdefgh">>, <<"abcdefghi">>, <<"0123456789abcde">>, <<"0123456789abcdef">>, <<"0123456789abcdefg">>,
     <<1:1>>, <<5:3>>, <<"abc", 3:7>>, <<"0123456789abcdef", 1:2>>, part(<<"0123456789abcdef0123456789abcdefxyz">>),
     binary:copy(<<"long">>, 100), binary:part(binary:copy(<<"part">>, 100), 3, 201),
     #{}, #{1 => 2}, #{1 => {}, {} => 2}, #{1 => 2, "k" => "v", 2.5 => <<"b">>}, maps:from_list([{N, -N} || N <- lists:seq(1, 40)]),
     maps:from_list([{N, {N}} || N <- lists:seq(1, 700)]), {[{1, "x", <<"y">>}, #{1 => [#{}]}], 7}].

%% Up to OTP 25 their numbers are not those of stock.
atoms() ->
    case list_to_integer(erlang:system_info(otp_release)) of
        R when R < 26 -> [];
        _ -> [true, false, {true, 1}, [false | 3], [true, {}, false | true], #{true => false, false => 3}, {false, true}]
    end.

%% From a bit that starts no byte, of a length that ends at none.
part(B) ->
    <<_:3, P:261/bits, _/bits>> = B,
    P.

keys() ->
    [lists:seq(1, 40), lists:seq(-50, 50), [N * 1.5 || N <- lists:seq(1, 60)], [{N, N rem 7} || N <- lists:seq(1, 90)], [[N, N + 1] || N <- lists:seq(1, 300, 7)],
     [integer_to_list(N) || N <- lists:seq(1, 70)], [integer_to_binary(N) || N <- lists:seq(95, 190)], [N bsl 70 || N <- lists:seq(-20, 20)],
     [#{N => N} || N <- lists:seq(1, 45)], [maps:from_list([{I, N} || I <- lists:seq(1, 35)]) || N <- lists:seq(1, 40)], lists:seq(1, 2000)].

show(M) ->
    L = maps:to_list(M),
    N = walk(maps:next(maps:iterator(M))),
    io:format("~p ~0P~n~w~n", [map_size(M), M, 20, digest(M)]),
    io:format("~w ~w~n~w ~w~n", [lists:sublist(maps:keys(M), 40), lists:sublist(maps:values(M), 40), lists:sublist(L, 40), lists:sublist(N, 40)]),
    true = lists:sort(L) =:= lists:sort(N).

digest(M) ->
    {map_size(M), [erlang:phash2(X) || X <- [maps:keys(M), maps:values(M), maps:to_list(M), walk(maps:next(maps:iterator(M))), term_to_binary(M),
        io_lib:format("~w", [M]), maps:fold(fun(K, _, A) -> [K | A] end, [], M), maps:to_list(binary_to_term(term_to_binary(M)))]]}.

walk({K, V, I}) -> [{K, V} | walk(maps:next(I))];
walk(none) -> [].

random_map(N) -> maps:from_list([{random(3), random(1)} || _ <- lists:seq(1, N)]).

random(0) -> rand:uniform(1000);
random(D) ->
    case rand:uniform(11) of
        1 -> rand:uniform(1 bsl 20) - 1000;
        2 -> rand:uniform(1 bsl 80) - (1 bsl 79);
        3 -> rand:uniform() * 100;
        4 -> integer_to_binary(rand:uniform(1 bsl 60));
        5 -> [rand:uniform(300) || _ <- lists:seq(1, rand:uniform(12))];
        6 -> list_to_tuple([random(D - 1) || _ <- lists:seq(1, rand:uniform(5) - 1)]);
        7 -> [random(D - 1) | random(D - 1)];
        8 -> #{random(D - 1) => random(D - 1), random(D - 1) => 1};
        9 -> <<(rand:uniform(1 bsl 60)):(rand:uniform(70))>>;
        10 -> lists:nth(rand:uniform(3), [hd(atoms() ++ [5]), lists:last([6 | atoms()]), []]);
        11 -> rand:uniform(1 bsl 58)
    end.

%% The same tree whichever way it came to be, also in the midst of it.
grown() ->
    Ks = [random(2) || _ <- lists:seq(1, 3000)],
    Up = lists:foldl(fun(K, M) -> M#{K => 1} end, #{}, Ks),
    All = maps:from_keys(Ks, 1),
    Down = lists:foldl(fun maps:remove/2, Up, lists:sublist(Ks, 2800)),
    Left = maps:without(lists:sublist(Ks, 2800), All),
    io:format("~w ~w~n~w ~w~n", [Up =:= All, Down =:= Left, digest(Up), digest(Down)]),
    true = digest(Up) =:= digest(All),
    true = digest(Down) =:= digest(Left).

merged() ->
    A = maps:from_list([{{N}, N} || N <- lists:seq(1, 500)]),
    B = maps:from_list([{{N}, -N} || N <- lists:seq(300, 900)]),
    [io:format("~w~n", [digest(maps:merge(X, Y))]) || X <- [A, B], Y <- [A, B]],
    [io:format("~w~n", [erts_debug:same(M, maps:merge(M, M))]) || M <- [A, B, #{a => 1, b => [2]}]].

table(Kind) ->
    T = ets:new(t, [Kind]),
    [ets:insert(T, {K}) || K <- lists:seq(1, 1000)],
    [ets:insert(T, {{K, "x"}}) || K <- lists:seq(1, 500)],
    [ets:insert(T, {K, 1}) || K <- [true, ok, error, a_name, <<"text">>, "text", 1.5]],
    L = ets:tab2list(T),
    io:format("~p ~w ~w ~w~n", [length(L), lists:sublist(L, 50), erlang:phash2(L), erlang:phash2(ets:foldl(fun(O, A) -> [O | A] end, [], T))]).
