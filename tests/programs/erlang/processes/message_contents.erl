%% Messages of all shapes and of sizes around the limit for flat copies are sent through aliases,
%% after receive markers, out of order, and by many senders at once, to receivers with full heaps.
%% @stress @shared @fence
-module(message_contents).
-export([main/0]).

main() ->
    shapes(),
    aliases(),
    out_of_order(),
    markers(),
    deep(200),
    flood(),
    unreceived(),
    halt(0).

shapes() ->
    P = spawn_link(fun echo/0),
    R = make_ref(),
    Big = binary:copy(<<"0123456789">>, 100),
    <<_:3, Odd:13/bits, _/bits>> = Big,
    Terms = [ok, [], {}, {{}}, 1, 1.5, 1 bsl 100, -(1 bsl 70), "text", <<>>, <<"small">>, Big, Odd, binary:part(Big, 3, 80), self(), R, [R], {R, R},
             fun lists:map/2, fun(X) -> X + Big end, #{}, #{a => 1}, #{a => #{b => [c, {d, 1.25}]}, "k" => R},
             [1 | 2], [[[[[[[[[[deep]]]]]]]]]], {1, {2, {3, {4, {5, {6, {7, "seven"}}}}}}}, {[a | b], [c | "d"]}]
        ++ [list_to_tuple(lists:seq(1, N)) || N <- lists:seq(25, 36)]
        ++ [lists:seq(1, N) || N <- lists:seq(12, 20)]
        ++ [{[{I, [I]} || I <- lists:seq(1, N)], make} || N <- lists:seq(1, 8)]
        ++ [maps:from_list([{I, {I}} || I <- lists:seq(1, N)]) || N <- [1, 5, 9, 14, 15, 16, 32, 33, 40]],
    [begin
         P ! {self(), T},
         receive {P, T2} -> T2 =:= T orelse io:format("not the same: ~p~n", [T]) end
     end || T <- Terms],
    P ! {self(), Terms},
    receive {P, All} -> io:format("shapes ~p ~p~n", [length(All), All =:= Terms]) end,
    unlink(P),
    exit(P, kill).

echo() ->
    receive {From, T} -> From ! {self(), T}, echo() end.

%% Requests with an alias, answered by it; the second answer to the same request is lost.
aliases() ->
    P = spawn_link(fun answer/0),
    L = [begin
             R = monitor(process, P, [{alias, reply_demonitor}]),
             P ! {R, N, list_to_tuple(lists:seq(1, N))},
             receive {R, V} -> V end
         end || N <- lists:seq(1, 60)],
    P ! {stop, self()},
    receive {P, stopped} -> ok end,
    Left = receive X -> X after 0 -> nothing end,
    io:format("aliases ~p ~p ~p~n", [length(L), lists:sum([tuple_size(T) || {T, _} <- L]), Left]),
    A = alias(),
    A ! immediate,
    A ! <<"a binary">>,
    receive immediate -> ok end,
    receive <<"a binary">> -> ok end,
    unalias(A),
    A ! {too, late},
    io:format("alias ~p~n", [receive Y -> Y after 0 -> nothing end]).

answer() ->
    receive
        {stop, To} -> unlink(To), To ! {self(), stopped};
        {R, N, T} ->
            R ! {R, {T, [N, {N}]}},
            R ! {R, twice},
            answer()
    end.

out_of_order() ->
    [self() ! {N, [N, {N}], lists:seq(1, N rem 20)} || N <- lists:seq(1, 300)],
    Odd = [receive {N, [N, {N}], L} -> length(L) end || N <- lists:seq(299, 1, -2)],
    Rest = [receive {N, [N, {N}], L} -> {N, length(L)} end || _ <- lists:seq(1, 150)],
    io:format("out of order ~p ~p~n", [lists:sum(Odd), lists:sum([N * L || {N, L} <- Rest])]).

%% References that were made behind messages that nobody wants.
markers() ->
    [self() ! {noise, N, [N]} || N <- lists:seq(1, 200)],
    P = spawn_link(fun echo_reference/0),
    Sum = lists:foldl(fun(N, S) ->
        R = make_ref(),
        P ! {self(), R, {N, [N, "payload"]}},
        receive {R, {N, [N, "payload"]}} -> S + N end
    end, 0, lists:seq(1, 500)),
    unlink(P),
    exit(P, kill),
    Noise = [N || N <- lists:seq(1, 200), receive {noise, N, [N]} -> true after 0 -> false end],
    io:format("markers ~p ~p~n", [Sum, length(Noise)]).

echo_reference() ->
    receive {From, R, T} -> From ! {R, T}, echo_reference() end.

%% A receiver whose stack grows with each message, and keeps what it got.
deep(N) ->
    Self = self(),
    P = spawn_link(fun() -> L = gather(N * 10), Self ! {self(), L} end),
    [P ! {I, {I, [I, I * 1.5]}} || I <- lists:seq(1, N * 10)],
    receive {P, L} -> io:format("deep ~p ~p~n", [length(L), lists:sum([I || {I, _} <- L])]) end.

gather(0) -> [];
gather(N) ->
    M = receive {I, {I, [I, F]}} when F =:= I * 1.5 -> {I, [F]} end,
    [M | gather(N - 1)].

%% Many senders, each with its own order.
flood() ->
    Self = self(),
    Each = 2000,
    Ps = [spawn_link(fun() -> [Self ! {self(), N, {[N], lists:seq(1, N rem 9)}} || N <- lists:seq(1, Each)], ok end)
          || _ <- lists:seq(1, 8)],
    M = flood(8 * Each, maps:from_list([{P, 0} || P <- Ps])),
    io:format("flood ~p ~p~n", [maps:size(M), lists:usort(maps:values(M))]).

flood(0, M) -> M;
flood(K, M) ->
    receive {P, N, {[N], L}} when length(L) =:= N rem 9 ->
        N =:= map_get(P, M) + 1 orelse io:format("out of order~n"),
        flood(K - 1, M#{P := N})
    end.

%% Processes that end with messages unread, by those who end at the same time.
unreceived() ->
    L = [begin
             P = spawn(fun() -> receive {last, _} -> ok end end),
             Ss = [spawn_monitor(fun() -> [P ! {N, I, <<N>>} || I <- lists:seq(1, 50)], P ! {last, N} end) || N <- lists:seq(1, 4)],
             [receive {'DOWN', R, process, S, Why} -> Why end || {S, R} <- Ss]
         end || _ <- lists:seq(1, 50)],
    io:format("unreceived ~p~n", [lists:usort(lists:append(L))]).
