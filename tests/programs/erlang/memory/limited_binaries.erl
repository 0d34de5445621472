%% Makes binaries that exceed the budget of their process unless garbage is collected first. Where
%% there are no budgets, they are ordinary binaries.
-module(limited_binaries).
-export([main/1]).

main(_) ->
    [io:format("~p ~p~n", [Name, in_budget(fun() -> rounds(30, Make, 0) end)])
        || {Name, Make} <- [{copy, fun copied/1}, {built, fun built/1}, {joined, fun joined/1},
                            {bits, fun bits/1}, {appended, fun appended/1}, {parts, fun parts/1}]],
    io:format("lists ~p~n", [in_budget(fun() -> lists(30, 0) end)]),
    io:format("kept ~p~n", [in_budget(fun() -> kept(lists:seq(1, 5), []) end)]).

%% The result of a function in a process that may use 8 MiB.
in_budget(F) ->
    Self = self(),
    Run = fun() -> Self ! {self(), catch F()} end,
    P = try purlin:budget(#{memory => 8 bsl 20}) of
        {ok, B} -> spawn_opt(Run, [link, {budget, B}])
    catch
        error:undef -> spawn_link(Run)
    end,
    receive {P, X} -> X end.

%% Each binary takes more than a third of the memory, and none is needed when the next is made.
rounds(0, _, Sum) -> Sum;
rounds(N, Make, Sum) ->
    Kept = {N, [N], <<N:32>>},
    B = Make(N),
    {N, [N], <<N:32>>} = Kept,
    rounds(N - 1, Make, (Sum + erlang:crc32(B) + byte_size(B)) rem 1000000007).

copied(N) -> binary:copy(<<N, 1, 2>>, 1000000).
built(N) ->
    A = <<N:800000>>,
    <<A/binary, 0:(8 * 2800000), A/binary, N>>.
joined(N) ->
    A = <<N:8000000>>,
    iolist_to_binary([A, [N | A], A]).
bits(N) ->
    A = <<N:8000000>>,
    list_to_bitstring([A, A, A, N]).
appended(N) -> appended(100, <<N>>).
appended(0, B) -> B;
appended(N, B) -> appended(N - 1, <<B/binary, N:200000>>).

%% Two that take so long that they do not run on a scheduler.
parts(N) ->
    A = <<N:800>>,
    iolist_to_binary(lists:duplicate(30000, A)).
lists(0, Sum) -> Sum;
lists(N, Sum) ->
    Kept = {N, [N], <<N:32>>},
    L = binary_to_list(<<N, 0:1000000, N>>),
    {N, [N], <<N:32>>} = Kept,
    lists(N - 1, Sum + hd(L) + lists:last(L) + length(L)).

%% What is still needed stays.
kept([], L) -> [{byte_size(B), erlang:crc32(B)} || B <- L];
kept([N | Rest], L) -> kept(Rest, [binary:copy(<<N>>, 1000000) | L]).
