%% Merges small maps in one pass. The result equals inserting the keys one by one, in any release's
%% order of keys, with signed zeros among them. @stress @shared @fence
-module(merged_maps).
-export([main/0]).
main() ->
    Z = list_to_float("0.0"), N = list_to_float("-0.0"),
    Ks = [Z, N, 0, 1, 1.0, a, "x", {Z}, {N}, [Z|N], <<"k">>, 1 bsl 70, self(), make_ref()],
    rand:seed(exsss, {1,2,3}),
    L = [begin
       A = maps:from_list([{K, {a, I}} || {K, I} <- lists:zip(Ks, lists:seq(1, length(Ks))), rand:uniform(2) =:= 1]),
       B = maps:from_list([{K, {b, I}} || {K, I} <- lists:zip(Ks, lists:seq(1, length(Ks))), rand:uniform(2) =:= 1]),
       M = maps:merge(A, B),
       F = maps:fold(fun maps:put/3, A, B),
       {M =:= F, map_size(M), [V || {_, V} <- maps:to_list(M)], [is_float(K) andalso <<K/float>> || {K, _} <- maps:to_list(M)]}
     end || _ <- lists:seq(1, 1000)],
    io:format("~p ~p~n", [erlang:phash2(L), lists:usort([X || {X, _, _, _} <- L])]),
    io:format("~p~n", [[maps:merge(maps:from_keys(lists:seq(1, I), x), maps:from_keys(lists:seq(J, 40), y)) =:= maps:fold(fun maps:put/3, maps:from_keys(lists:seq(1, I), x), maps:from_keys(lists:seq(J, 40), y)) || I <- [1, 16, 31, 32, 33], J <- [1, 9, 10, 20, 33, 40]]]).
