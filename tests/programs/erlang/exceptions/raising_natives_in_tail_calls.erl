%% Functions tail-call natives that raise, with a `catch` or a `try` around the call of the
%% function: the exception continues where the function would have returned to. Large results of
%% arithmetic, which force collections, are kept across calls. @stress
-module(raising_natives_in_tail_calls).
-export([main/0, atom/1, part/3, elem/2, thrown/1, exited/1, raised/1, raised/2, again/3, bytes/1, noted/1, tuple/2, in_frame/2, keep/1]).

main() ->
    [io:format("~p~n", [caught(N)]) || N <- [1, 2]],
    io:format("~p~n", [same(60)]),
    io:format("~p~n", [tries(200, [])]),
    io:format("~p~n", [products(60)]),
    io:format("~p~n", [in_process(fun() -> products(150) end)]).

in_process(F) ->
    {P, R} = spawn_monitor(fun() -> exit({done, F()}) end),
    receive {'DOWN', R, process, P, {done, Result}} -> Result; {'DOWN', R, process, P, Other} -> {died, Other} end.

%% The same each time, whatever ran the function.
same(N) -> length(lists:usort([caught(1) || _ <- lists:seq(1, N)])) =:= 1.

caught(N) ->
    [short(catch atom(N)), short(catch part(<<1, 2, 3>>, 2, N + 5)), short(catch elem(N + 3, {a, b, c})), short(catch thrown(N rem 1)),
     short(catch exited(stop)), short(catch raised(wrong)), short(catch raised(wrong, [N rem 1])), short(catch again(error, why, [])),
     short(catch bytes(N)), short(catch noted(3)), short(catch tuple(-N, x)), {kept, N rem 1}].

%% Without the places in the trace.
short({'EXIT', {R, [{M, F, A, _} | _]}}) -> {exit, R, M, F, if is_list(A) -> length(A); true -> A end};
short({'EXIT', {R, []}}) -> {exit, R};
short(Other) -> Other.

atom(X) -> binary_to_atom(X, utf8).
part(B, P, L) -> binary:part(B, P, L).
elem(N, T) -> erlang:element(N, T).
thrown(X) -> erlang:throw({thrown, X}).
exited(X) -> erlang:exit(X).
raised(X) -> erlang:error(X).
raised(X, A) -> erlang:error(X, A).
again(C, R, S) -> erlang:raise(C, R, S).
bytes(X) -> erlang:byte_size(X).
noted(X) -> erlang:list_to_binary([X | a]).
tuple(N, X) -> erlang:make_tuple(N, X).

tries(0, Acc) -> lists:usort(Acc);
tries(N, Acc) ->
    Kept = {N, [N]},
    A = try atom(N) catch error:badarg -> caught; _:O -> {other, O} end,
    B = try thrown(x) of V -> {value, V} catch throw:{thrown, x} -> caught end,
    C = try tuple(-1, N) catch C1:R1 -> {C1, R1} after ok = keep(ok) end,
    {N, [N]} = Kept,
    tries(N - 1, [{A, B, C} | Acc]).

keep(X) -> X.

%% Each product and sum is kept in the frame over a call.
in_frame(A, B) ->
    P = A * B,
    X = keep(a),
    Q = P + A,
    Y = keep(b),
    R = Q - P,
    Z = keep(c),
    S = P band ((1 bsl 900) - 1),
    W = keep(d),
    T = P bsl 70,
    V = keep(e),
    [a, b, c, d, e] = [X, Y, Z, W, V],
    {P, Q, R, S, T}.

products(N) -> products(N, 3, 1 bsl 200 + 1, []).
products(0, _, _, Sums) -> erlang:phash2(Sums);
products(N, A, B, Sums) ->
    {P, Q, R, S, T} = in_frame(A, B),
    R = A,
    P = Q - A,
    P = T bsr 70,
    S = P band ((1 bsl 900) - 1),
    products(N - 1, (A * 7919 + P) band ((1 bsl 2000) - 1), B bxor (P bsr 3), [erlang:phash2(T) | Sums]).
