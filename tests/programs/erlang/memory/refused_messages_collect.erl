%% A guard rejects messages of small tuples after making two large binaries, so that the heap is
%% collected twice and may return to its first block. Live data stays as it is. @stress @shared
-module(refused_messages_collect).
-export([main/0, id/1]).

main() ->
    Ps = [spawn_monitor(fun() -> exit(rounds(24, I)) end) || I <- lists:seq(1, 2)],
    io:format("~p~n", [lists:usort([receive {'DOWN', R, process, _, Why} -> Why end || {_, R} <- Ps])]).

rounds(0, _) -> ok;
rounds(N, Seed) ->
    Keep = keep(N),
    self() ! list_to_tuple([small, N | lists:duplicate(N rem 12, a)]),
    erlang:garbage_collect(),
    refused(?MODULE:id(<<0:32, Seed>>)),
    receive T when element(1, T) =:= small -> ok end,
    garbage(N),
    Keep =:= keep(N) orelse exit({N, wrong}),
    rounds(N - 1, Seed).

refused(N) ->
    receive
        {small, X} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _, _, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _, _, _, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _, _, _, _, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _, _, _, _, _, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _, _, _, _, _, _, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _, _, _, _, _, _, _, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never;
        {small, X, _, _, _, _, _, _, _, _, _} when <<0:4000000, X:32>> =/= N, <<1:40000000, X:32>> =:= N -> never
    after 0 -> ok
    end.

keep(N) -> [{X, [X], <<X:32>>} || X <- lists:seq(N, N + 30)].
garbage(N) -> length(?MODULE:id([{I, <<I:32>>, [I]} || I <- lists:seq(1, 10 + N)])).
id(X) -> X.
