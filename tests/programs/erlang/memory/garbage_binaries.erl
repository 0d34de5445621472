%% Unreferenced binaries are freed long before a large heap is full, because their bytes cause
%% collections too.
-module(garbage_binaries).
-export([main/0, id/1]).

main() ->
    B = binary:copy(<<"x">>, 1000000),
    File = "/tmp/garbage_binaries." ++ os:getpid(),
    ok = file:write_file(File, B),
    T = ets:new(t, [public]),
    Makers = [
        {built, fun(N) -> <<N, B/binary>> end},
        {appended, fun(N) -> <<B/binary, N>> end},
        {integer, fun(N) -> <<N:8000000>> end},
        {copied, fun(N) -> binary:copy(<<N>>, 1000000) end},
        {list, fun(N) -> iolist_to_binary([N rem 256, B]) end},
        {term, fun(N) -> term_to_binary({N, B}) end},
        {decoded, fun(N) -> binary_to_term(<<131, 109, 1000000:32, N, B:999999/binary>>) end},
        {file, fun(_) -> {ok, X} = file:read_file(File), X end},
        {stored, fun(N) -> ets:insert(T, {a, <<N, B/binary>>}), ets:lookup(T, a) end},
        {received, fun(N) -> self() ! {b, <<N, B/binary>>}, receive {b, X} -> X end end},
        {joined, fun(N) -> binary:replace(B, <<"xxxxxxxxxx">>, <<N>>) end}
    ],
    [begin
         {P, R} = spawn_opt(fun() -> exit(round_(Make, 300, 0)) end, [monitor, {min_heap_size, 200000}]),
         receive {'DOWN', R, process, P, Most} -> io:format("~p ~p~n", [Kind, Most - erlang:memory(binary) < 100000000]) end
     end || {Kind, Make} <- Makers],
    file:delete(File),
    Swept = swept(),
    io:format("~p~n", [Swept =< 3 orelse stress()]).

%% Collections are full ones at random: how many they are is no test.
stress() -> os:getenv("PURLIN_GC_STRESS", "0") =/= "0".

%% How often a large heap that holds many binaries is swept whole while others become garbage:
%% hardly ever.
swept() ->
    Me = self(),
    P = spawn_link(fun() -> M = maps:from_list([{I, <<I:800>>} || I <- lists:seq(1, 300000)]), Me ! made, answer(M) end),
    receive made -> ok end,
    Ask = fun() -> P ! Me, receive P -> ok end end,
    [Ask() || _ <- lists:seq(1, 100)],
    1 = erlang:trace(P, true, [garbage_collection]),
    [Ask() || _ <- lists:seq(1, 1000)],
    erlang:trace(P, false, [garbage_collection]),
    Ref = erlang:trace_delivered(P),
    receive {trace_delivered, P, Ref} -> ok end,
    majors().

answer(M) -> receive From -> ?MODULE:id(binary:copy(<<"x">>, 20000)), From ! self(), answer(M) end.

majors() -> receive {trace, _, gc_major_start, _} -> 1 + majors(); {trace, _, _, _} -> majors() after 0 -> 0 end.

round_(_, 0, Most) -> Most;
round_(Make, N, Most) -> ?MODULE:id(Make(N)), round_(Make, N - 1, max(Most, erlang:memory(binary))).

id(X) -> X.
