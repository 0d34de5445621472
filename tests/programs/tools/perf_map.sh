# Checks the map of function names that `perf` reads, and a program that runs with it: calls of all
# kinds, exceptions, processes.
cat >p.erl <<'X'
-module(p).
-export([main/0, 'a strange\nname'/1, id/1]).

main() ->
    io:format("~p~n", [[fib(15), sum(lists:seq(1, 1000), 0), caught(3), applied(), in_processes(20), 'a strange\nname'(4), deep(5000)]]),
    {ok, B} = file:read_file("/tmp/perf-" ++ os:getpid() ++ ".map"),
    Names = [N || L <- string:split(B, "\n", all), [_, _, N] <- [string:split(L, " ", all)], wanted(N)],
    [io:format("~ts~n", [N]) || N <- lists:sort(Names)],
    file:delete("/tmp/perf-" ++ os:getpid() ++ ".map"),
    halt().
wanted(<<"$lists:foldl/", R/binary>>) -> byte_size(R) =:= 1;
wanted(<<"$p:", R/binary>>) -> binary:match(R, [<<"Prologue">>, <<"code">>]) =:= nomatch;
wanted(_) -> false.

id(X) -> X.
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
sum([], S) -> S;
sum([X | T], S) -> sum(T, ?MODULE:id(X) + S).
caught(N) ->
    A = try thrower(N) catch throw:X -> fib(X) after fib(3) end,
    B = (catch thrower(A)),
    C = try fib(5) of 5 -> thrower(B) catch _:Y -> Y end,
    {A, B, C}.
thrower(X) -> throw(X).
applied() ->
    F = fun(X) -> X + fib(4) end,
    {F(1), apply(?MODULE, id(id), [2]), lists:foldl(fun(X, S) -> F(X) + S end, 0, [1, 2, 3])}.
in_processes(N) ->
    Self = self(),
    [spawn_link(fun() -> receive {From, I} -> From ! {I, fib(I rem 15), binary_to_term(term_to_binary(deep(100)))} end end) ! {Self, I} || I <- lists:seq(1, N)],
    erlang:phash2([receive {I, F, D} -> {I, F, D} end || I <- lists:seq(1, N)]).
'a strange\nname'(N) -> fib(N).
deep(0) -> 0;
deep(N) -> 1 + deep(?MODULE:id(N - 1)).
X
erlc p.erl
erl +JPperf map -noshell -s p main
PURLIN_GC_STRESS=1 erl +JPperf map -noshell -s p main
PURLIN_FENCE=1 erl +JPperf map -noshell -s p main
erl +JPperf false -noshell -eval 'io:format("~p~n", [filelib:is_file("/tmp/perf-" ++ os:getpid() ++ ".map")]), halt().'
