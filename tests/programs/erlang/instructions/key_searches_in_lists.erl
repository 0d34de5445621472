%% Checks `lists:keyfind`, `keymember` and `member`: keys and elements of every kind, lists of every
%% length, proper and improper, invalid positions; as tail calls with and without a frame, before
%% other work, and traced. @stress @fence
-module(key_searches_in_lists).
-export([main/0, find/3, has/3, is_in/2, id/1]).

id(X) -> X.

%% The last call of a function without a frame, of one with a frame, and not the last.
find(K, P, L) -> lists:keyfind(K, P, L).
has(K, P, L) -> lists:keymember(K, P, L).
is_in(E, L) -> lists:member(E, L).
find_framed(K, P, L) -> X = id(L), lists:keyfind(K, P, X).
has_framed(K, P, L) -> X = id(L), lists:keymember(K, P, X).
is_in_framed(E, L) -> X = id(L), lists:member(E, X).
find_then(K, P, L, A) -> R = lists:keyfind(K, P, L), {R, A, K, P, length([L])}.
has_then(K, P, L, A) -> case lists:keymember(K, P, L) of true -> {yes, A, L}; false -> {no, A, K} end.
is_in_then(E, L, A) -> case lists:member(E, L) of true -> {yes, A, L}; false -> {no, A, E} end.
caught(K, P, L) -> (catch lists:keyfind(K, P, L)).
loop(_, 0, N) -> N;
loop(L, I, N) -> case lists:keyfind(b, 1, L) of {b, X} -> loop(L, I - 1, N + X); false -> loop(L, I - 1, N) end.

told(F) ->
    try F() catch C:E:T -> {C, E, [{M, N, case A of _ when is_list(A) -> length(A); _ -> A end} || {M, N, A, _} <- lists:sublist(T, 2)]} end.

lists_of(K) ->
    Short = [[], [{K}], [{K, 1}], [{x, K}, {K, 2}], [K, {K, 3}], [[K], <<"k">>, 5, {}, {y, K, z}], [{K, 1} | improper], [{x, 1} | improper], not_a_list, {K}],
    Long = [[{I, I} || I <- lists:seq(1, N)] ++ [{K, N}, K] || N <- [10, 13, 14, 15, 16, 17, 40]],
    Plain = [lists:duplicate(N, x) ++ [K] || N <- [0, 1, 13, 14, 15, 16, 40]] ++ [lists:duplicate(N, x) || N <- [14, 15, 16]],
    Short ++ Long ++ Plain ++ [lists:duplicate(N, {x, y}) ++ tail || N <- [14, 15, 16]].

results() ->
    Keys = [a, [], self(), 5, 5.0, -1, 1 bsl 70, <<"bin">>, {t, 1}, "text", 0.0, fun ?MODULE:id/1, make_ref()],
    Places = [1, 2, 3, 0, -1, 1 bsl 62, 1 bsl 70, a, 1.0],
    [erlang:phash2([told(fun() -> F(K, P, L) end) || L <- lists_of(K), P <- Places,
         F <- [fun find/3, fun has/3, fun find_framed/3, fun has_framed/3, fun caught/3,
               fun(A, B, C) -> find_then(A, B, C, [A]) end, fun(A, B, C) -> has_then(A, B, C, {B}) end]])
     || K <- Keys, is_atom(K) orelse is_number(K) orelse is_list(K) orelse is_binary(K)] ++
    [[told(fun() -> F(K, 1, L) end) =:= told(fun() -> apply(lists, keyfind, [K, 1, L]) end) || L <- lists_of(K), F <- [fun find/3]] -- [true || _ <- lists_of(K)] || K <- Keys] ++
    [erlang:phash2([told(fun() -> F(K, L) end) || L <- lists_of(K), F <- [fun is_in/2, fun is_in_framed/2, fun(A, B) -> is_in_then(A, B, {B}) end]])
     || K <- Keys, is_atom(K) orelse is_number(K) orelse is_list(K) orelse is_binary(K)].

main() ->
    First = results(),
    io:format("~p~n", [First]),
    [io:format("~p~n", [told(fun() -> F(K, P, L) end)]) || {K, P, L} <- [{a, 0, []}, {a, 1, [{b} | c]}, {a, x, []}, {a, -1, [{a}]}, {a, 1, x}], F <- [fun find/3, fun has_framed/3]],
    %% Often enough that it has machine code.
    io:format("~p~n", [[X || X <- [results() || _ <- lists:seq(1, 20)], X =/= First]]),
    io:format("~p ~p~n", [loop([{a, 1}, {b, 2}], 100000, 0), loop([{I, I} || I <- lists:seq(1, 30)] ++ [{b, 1}], 20000, 0)]),
    %% Traced, while machine code runs; not traced any more.
    Self = self(),
    P = spawn_link(fun() -> receive go -> ok end, X = [find(a, 1, [{a, 1}]), has(a, 1, [{b, 1}]), is_in(a, [a]), loop([{b, 1}], 3, 0)], Self ! {done, X} end),
    erlang:trace(P, true, [call]),
    [erlang:trace_pattern({lists, N, A}, true, [local]) || {N, A} <- [{keyfind, 3}, {keymember, 3}, {member, 2}]],
    P ! go,
    receive {done, X} -> io:format("~p~n", [X]) end,
    R = erlang:trace_delivered(P),
    receive {trace_delivered, P, R} -> ok end,
    All = fun All() -> receive {trace, P, call, What} -> [What | All()] after 0 -> [] end end,
    io:format("~p~n", [All()]),
    io:format("~p~n", [results() =:= First]).
