%% Allocates much, recurses deeply, and builds large terms to stress the collector.
-module(heavy_allocation).
-export([main/0]).

main() ->
    io:format("~p~n", [deep(200000)]),
    T = tree(14),
    io:format("~p~n", [sum(T)]),
    io:format("~p~n", [erlang:phash2(T)]),
    B = iolist_to_binary([integer_to_list(I) || I <- lists:seq(1, 5000)]),
    io:format("~p~n", [erlang:md5(B)]),
    Parts = [binary:part(B, I * 10, 10) || I <- lists:seq(0, 500)],
    io:format("~p~n", [erlang:phash2(Parts)]),
    M = lists:foldl(fun(I, A) -> A#{I rem 100 => [I | maps:get(I rem 100, A, [])]} end, #{}, lists:seq(1, 3000)),
    io:format("~p~n", [erlang:phash2(M)]),
    S = lists:foldl(fun(I, A) -> setelement((I rem 10) + 1, A, {I, A}) end, list_to_tuple(lists:seq(1, 10)), lists:seq(1, 12)),
    io:format("~p~n", [erlang:phash2(S)]),
    Self = self(),
    Ps = [spawn_link(fun() -> Self ! {self(), sum(tree(8)), lists:seq(1, I)} end) || I <- lists:seq(1, 50)],
    io:format("~p~n", [lists:sum([receive {P, V, L} -> V + length(L) end || P <- Ps])]),
    erlang:garbage_collect(),
    io:format("~p~n", [sum(T)]),
    io:format("~p~n", [ack(2, 9)]),
    F = lists:foldl(fun(I, A) -> A + math:sin(I) end, 0.0, lists:seq(1, 1000)),
    io:format("~.10f~n", [F]),
    io:format("~p~n", [lists:foldl(fun(I, A) -> (A * 31 + I) rem (1 bsl 90) end, 1, lists:seq(1, 2000))]).

deep(0) -> 0;
deep(N) -> 1 + deep(N - 1).
tree(0) -> leaf;
tree(N) -> {N, tree(N - 1), [tree(N - 1)]}.
sum(leaf) -> 1;
sum({N, L, [R]}) -> N + sum(L) + sum(R).
ack(0, N) -> N + 1;
ack(M, 0) -> ack(M - 1, 1);
ack(M, N) -> ack(M - 1, ack(M, N - 1)).
