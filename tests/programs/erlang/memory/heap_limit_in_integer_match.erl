%% A process at its heap limit ends when it matches an integer that is larger than its heap.
%% @stress @fence
-module(heap_limit_in_integer_match).
-export([main/0, known/0, unknown/0, several/0]).

main() ->
    [io:format("~w ~w~n", [F, ended(F, 233)]) || F <- [known, unknown, several]],
    [io:format("~w ~w~n", [F, ended(F, 0)]) || F <- [known, unknown, several]].

ended(F, Size) ->
    {P, R} = spawn_opt(?MODULE, F, [], [{max_heap_size, #{size => Size, kill => true, error_logger => false}}, monitor]),
    receive {'DOWN', R, process, P, W} when is_atom(W) -> W; {'DOWN', R, process, P, W} -> erlang:phash2(W) end.

id(X) -> X.

known() ->
    Bin = id(<<255:1864/little-unit:8>>),
    <<N:1864/big-unit:8>> = Bin,
    exit({N}).
unknown() ->
    Size = id(1864),
    Bin = id(<<255:Size/little-unit:8>>),
    <<N:Size/big-unit:8>> = Bin,
    exit({N}).
%% Among others.
several() ->
    Bin = id(<<7:8, 1:2000/unit:8, "rest">>),
    <<A:8, N:16000/little, B:16, T/binary>> = Bin,
    exit({A, N, B, T}).
