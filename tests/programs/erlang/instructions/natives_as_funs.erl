%% Calls natives as external funs in loops: results, errors, traps, reductions, and call traces.
-module(natives_as_funs).
-export([main/0, id/1, hot/2]).
id(X) -> X.
main() ->
    io:format("~p~n", [[each(F, L) || {F, L} <- [
        {fun erlang:abs/1, [1, -2, 3.5, -4.5]}, {fun erlang:hd/1, [[a], "b"]},
        {fun erlang:byte_size/1, [<<1, 2>>, <<>>]}, {fun erlang:integer_to_list/1, [1, 1 bsl 70]},
        {fun lists:reverse/1, ["abc", []]}, {fun erlang:length/1, ["abc", []]}]]]),
    io:format("~p~n", [[two(F, L) || {F, L} <- [
        {fun erlang:'>='/2, [1, 2, 2.0, a]}, {fun erlang:'+'/2, [1, 1 bsl 59, -3]},
        {fun lists:member/2, [a]}, {fun erlang:max/2, [1, 2, 3]}, {fun erlang:'++'/2, ["ab", []]}]]]),
    io:format("~p~n", [long(3000, fun erlang:'+'/2, 0)]),
    io:format("~p~n", [long(3000, fun erlang:'*'/2, 1)]),
    io:format("~p~n", [sort(lists:seq(1, 500), fun erlang:'>='/2) =:= lists:seq(500, 1, -1)]),
    %% The same place calls funs of all kinds in turn.
    Fs = [fun erlang:abs/1, fun ?MODULE:id/1, fun id/1, fun(X) -> {X} end, fun erlang:'-'/1, fun erlang:not_there/1, fun erlang:atom_to_list/1],
    io:format("~p~n", [[mixed(F, N) || N <- lists:seq(1, 30), F <- Fs]]),
    io:format("~p~n", [[tail(F, N) || N <- lists:seq(1, 30), F <- Fs]]),
    io:format("~p~n", [caught(fun erlang:hd/1, [[1], x, [], [2]], 40)]),
    io:format("~p~n", [tried(fun erlang:element/2, 40)]),
    %% Traps: what the native goes on in returns to behind the call.
    Many = lists:seq(1, 60000),
    io:format("~p~n", [[length(two1(fun erlang:'++'/2, Many)), length(two1(fun erlang:'--'/2, lists:seq(1, 3000))),
        byte_size(one1(fun erlang:term_to_binary/1, Many)), byte_size(one1(fun erlang:list_to_binary/1, [X band 255 || X <- Many])),
        length(one1(fun erlang:binary_to_list/1, binary:copy(<<"a">>, 50000)))]]),
    io:format("~p~n", [slept(fun erlang:yield/0, 50)]),
    io:format("~p~n", [applied(fun erlang:apply/2, fun id/1, 50)]),
    io:format("~p~n", [ended()]),
    %% Calls of a native are seen from the place that was compiled, too.
    [hot(fun erlang:abs/1, -N) || N <- lists:seq(1, 500)],
    S = self(),
    erlang:trace_pattern({erlang, abs, 1}, true, [global]),
    P = spawn(fun() -> receive go -> S ! {self(), [hot(fun erlang:abs/1, -N) || N <- [1, 2, 3]]} end end),
    erlang:trace(P, true, [call]),
    P ! go,
    receive {P, R} -> io:format("~p~n", [R]) end,
    Ref = erlang:trace_delivered(P),
    receive {trace_delivered, P, Ref} -> ok end,
    io:format("~p~n", [traces(P, [])]),
    erlang:trace_pattern({erlang, abs, 1}, false, [global]),
    io:format("~p~n", [hot(fun erlang:abs/1, -9)]),
    io:format("~p~n", [counted()]).

traces(P, L) -> receive {trace, P, call, C} -> traces(P, [C | L]) after 0 -> lists:reverse(L) end.
hot(F, X) -> {F(X), X}.
each(F, [H | T]) -> [F(H) | each(F, T)];
each(_, []) -> [].
two(F, L) -> [try F(A, B) catch error:E -> E end || A <- L, B <- L].
long(0, _, A) -> erlang:phash2(A);
long(N, F, A) -> long(N - 1, F, F(A, N)).
sort([], _) -> [];
sort([H | T], F) -> insert(H, sort(T, F), F).
insert(H, [X | T] = L, F) -> case F(H, X) of true -> [H | L]; false -> [X | insert(H, T, F)] end;
insert(H, [], _) -> [H].
mixed(F, N) ->
    try {F(N), N}
    catch error:E:S -> {E, shown(S)}
    end.
tail(F, N) ->
    try tail1(F, N)
    catch error:E:S -> {E, shown(S)}
    end.
tail1(F, N) -> F(N).
shown(S) -> [{M, F, if is_list(A) -> length(A); true -> A end} || {M, F, A, _} <- lists:sublist(S, 2)].
caught(_, _, 0) -> [];
caught(F, L, N) -> [erase_trace(catch F(lists:nth(1 + N rem 4, L))) | caught(F, L, N - 1)].
erase_trace({'EXIT', {R, [{M, F, A, _} | _]}}) -> {R, M, F, A};
erase_trace(V) -> V.
tried(_, 0) -> [];
tried(F, N) ->
    R = try F(N rem 5, {a, b, c}) of V -> {value, V}
        catch error:badarg -> bad
        after put(n, N)
        end,
    [R | tried(F, N - 1)].
one1(F, L) -> [_ | R] = [1 | [F(L)]], hd(R).
two1(F, L) -> R = F(L, L), id(R).
slept(_, 0) -> done;
slept(F, N) -> true = F(), slept(F, N - 1).
applied(_, _, 0) -> done;
applied(F, G, N) -> N = F(G, [N]), applied(F, G, N - 1).
%% The native ends the process.
ended() ->
    [begin
        {P, M} = spawn_monitor(fun() -> [hot(fun erlang:abs/1, N) || N <- lists:seq(1, 100)], hot(fun erlang:exit/1, {bye, K}) end),
        receive {'DOWN', M, process, P, R} -> R end
    end || K <- [1, 2, 3]].
%% A call that is the last thing of a slice goes on in the next.
counted() ->
    S = self(),
    Ps = [spawn_link(fun() -> S ! {self(), long(20000, fun erlang:'+'/2, I)} end) || I <- lists:seq(1, 8)],
    [receive {P, R} -> R end || P <- Ps].
