%% Receives make terms from a message before they take it from the queue, and keep them:
%% sub-binaries, tuples and cells that a guard compares, maps and funs, with collections in between
%% and afterwards. @stress @shared
-module(terms_made_in_receive).
-export([main/0, id/1]).

main() ->
    [io:format("~p ~p~n", [F, run(F, 8, 400)]) || F <- [head, tail, tuple, cells, map, deep, big, refused]].

run(F, Processes, Rounds) ->
    Ps = [spawn_monitor(fun() -> exit({done, rounds(F, Rounds, [])}) end) || _ <- lists:seq(1, Processes)],
    lists:usort([receive {'DOWN', R, process, P, Why} -> Why end || {P, R} <- Ps]).

rounds(_, 0, Kept) -> check(Kept), ok;
rounds(F, N, Kept) ->
    self() ! other,
    Ns = lists:seq(1, 3),
    [self() ! message(F, N * 10 + I) || I <- Ns],
    New = [{receives(F, N * 10 + I), N * 10 + I, F} || I <- Ns],
    receive other -> ok end,
    garbage(N),
    check(New),
    case N rem 16 of
        0 -> check(Kept), rounds(F, N - 1, New);
        _ -> rounds(F, N - 1, New ++ Kept)
    end.

check(Kept) ->
    [case what(F, X) =:= K of
         true -> ok;
         false -> exit({wrong, F, X})
     end || {K, X, F} <- Kept].

garbage(N) ->
    L = [{I, <<I:32>>, [I]} || I <- lists:seq(1, 10 * (1 + N rem 20))],
    length(?MODULE:id(L)).

bytes(N) -> binary:copy(<<N:32>>, 75).

message(F, N) when F =:= head; F =:= tail; F =:= big -> bytes(N);
message(tuple, N) -> {tuple, N, bytes(N), lists:duplicate(80, N)};
message(cells, N) -> {cells, N, [N, {N}, lists:duplicate(80, N)]};
message(map, N) -> #{map => N, a => lists:duplicate(80, N), b => bytes(N)};
message(deep, N) -> {deep, N, {a, {b, {c, lists:duplicate(80, N), bytes(N)}}}};
message(refused, N) -> {refused, N, {N, [N, a, {N}]}}.

what(head, N) -> [binary:part(bytes(N), 0, 200) | binary:part(bytes(N), 200, 100)];
what(tail, N) -> binary:part(bytes(N), 37, 263);
what(big, N) -> <<X:160, _/binary>> = bytes(N), {X, binary:part(bytes(N), 20, 280)};
what(F, N) -> message(F, N).

receives(head, _) ->
    receive <<A:200/binary, B/binary>> -> [A | B] end;
receives(tail, _) ->
    receive <<_:37/binary, B/binary>> when byte_size(B) > 100 -> ?MODULE:id(B) end;
receives(big, _) ->
    receive <<X:160, B/binary>> when X + 1 > X -> {X, B} end;
receives(tuple, X) ->
    receive {tuple, _, _, _} = M when {element(1, M), X} =:= {tuple, X}, {element(2, M), element(4, M), element(3, M)} > {X - 1, [], <<>>} -> M end;
receives(cells, X) ->
    receive {cells, N, L} = M when [N | L] > [X - 1 | L], tl(L) >= [] -> ?MODULE:id(M) end;
receives(map, X) ->
    receive #{map := N} = M when {N, map_get(a, M), #{N => map_get(b, M)}} > {X - 1, [], #{}} -> M end;
receives(deep, X) ->
    receive {deep, N, T} = M when {N, element(2, T), [T]} > {X - 1, {}, []} -> ?MODULE:id(M) end;
receives(refused, X) ->
    receive
        {refused, N, _} when {<<0:80000, N:32>>, <<1:80000, N:32>>} =:= {X, X} -> never;
        {refused, X, T} = M when {<<0:80000>>, T} > {<<>>, {}} -> M
    end.

id(X) -> X.
