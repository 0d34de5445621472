%% A process that only calls one native in a loop answers after few calls, because the native
%% charges reductions for its work. Stock charges none for comparisons and for patterns of many
%% words, and answers after minutes. @seconds 120
-module(natives_in_a_tight_loop).
-export([main/0]).

main() ->
    L = lists:seq(1, 1000000),
    Words = [integer_to_binary(X) || X <- lists:seq(1, 30000)],
    persistent_term:put(kept, L),
    Cases = [
        {put_and_erase, fun() -> persistent_term:put(x, L), persistent_term:erase(x) end},
        {put_another, fun() -> persistent_term:put(y, [make_ref() | L]) end}
    ],
    Counted = [
        {put_the_same, fun() -> persistent_term:put(kept, L) end},
        {compile_pattern, fun() -> binary:compile_pattern(Words) end},
        {match, fun() -> binary:match(<<"word">>, Words) end},
        {matches, fun() -> binary:matches(<<"word">>, Words) end},
        {split, fun() -> binary:split(<<"word">>, Words) end}
    ],
    [io:format("~w ~w~n", [Name, asked(Call)]) || {Name, Call} <- Cases],
    Stock = string:find(erlang:system_info(system_version), "[purlin") =:= nomatch,
    [io:format("~w ~w~n", [Name, case Stock of true -> {answered, killed}; false -> asked(Call) end])
     || {Name, Call} <- Counted].

%% Asks a process that loops three times within a time that thousands of calls exceed by far.
asked(Call) ->
    {P, M} = spawn_monitor(fun() -> loop(Call) end),
    receive after 20 -> ok end,
    Me = self(),
    {Asker, A} = spawn_monitor(fun() ->
        [{message_queue_len, 0} = process_info(P, message_queue_len) || _ <- [1, 2, 3]],
        Me ! {self(), answered}
    end),
    Told = receive {Asker, answered} -> answered after 15000 -> no_answer end,
    exit(Asker, kill),
    receive {'DOWN', A, _, _, _} -> ok end,
    exit(P, kill),
    receive {'DOWN', M, _, _, Why} -> {Told, Why} after 15000 -> {Told, lives} end.

loop(Call) ->
    Call(),
    loop(Call).
