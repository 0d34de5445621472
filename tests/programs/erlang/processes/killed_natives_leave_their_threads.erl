%% As many processes as there are dirty threads are killed in long natives. The natives end too, and
%% the next native gets a thread at once. @stress @fence @seconds 300
-module(killed_natives_leave_their_threads).
-export([main/0]).

main() ->
    N = erlang:system_info(dirty_cpu_schedulers),
    [io:format("~w ~w~n", [Name, try_it(N, Make, Run)]) || {Name, Make, Run} <- cases()],
    halt(0).

cases() ->
    L = lists:seq(1, 2000000),
    B = binary:copy(<<"abcdefgh">>, 1000000),
    S = binary:copy(<<"a">>, 1120),
    Limit = {match_limit, 1000000000},
    [{re, S, fun(X) -> re:run(X, "(a*a*)*b|(a|aa)+$c", [Limit]) end},
     {re_look_ahead, S, fun(X) -> re:run(X, "(?=(a|aa)+[cd])[ax]", [Limit]) end},
     {re_unicode, S, fun(X) -> re:run(X, "(\\w*\\w*)*b|(\\w|\\w\\w)+$c", [unicode, caseless, Limit]) end},
     {compressed, lists:seq(1, 300000), fun(X) -> many(fun() -> term_to_binary(X, [{compressed, 9}]) end) end},
     {external, L, fun(X) -> many(fun() -> binary_to_term(term_to_binary(X)) end) end},
     {iovec, L, fun(X) -> many(fun() -> term_to_iovec(X) end) end},
     {to_list, B, fun(X) -> many(fun() -> binary_to_list(X) end) end},
     {to_binary, [L, B], fun([X, _]) -> many(fun() -> list_to_binary([I band 255 || I <- X]) end) end},
     {characters, B, fun(X) -> many(fun() -> unicode:characters_to_list(X) end) end},
     {matches, B, fun(X) -> many(fun() -> binary:matches(X, [<<"h">>, <<"cd">>]) end) end},
     {split, B, fun(X) -> many(fun() -> binary:split(X, <<"h">>, [global]) end) end},
     {subtract, L, fun(X) -> many(fun() -> X -- lists:reverse(X) end) end}].

many(F) -> F(), many(F).

try_it(N, X, Run) ->
    Ps = [spawn_monitor(fun() -> Run(X) end) || _ <- lists:seq(1, N)],
    receive after 200 -> ok end,
    [exit(P, kill) || {P, _} <- Ps],
    Why = lists:usort([receive {'DOWN', M, _, _, R} -> R end || {_, M} <- Ps]),
    {_, M} = spawn_monitor(fun() -> exit(length(binary:split(binary:copy(<<"ab">>, 1000000), <<"b">>, [global]))) end),
    Next = receive {'DOWN', M, _, _, R} -> R after 20000 -> late end,
    {Why, Next, quiet(40)}.

%% Whether there is a while in which nothing is computed. Memory may be given back before.
quiet(0) -> busy;
quiet(N) ->
    A = cpu(),
    receive after 200 -> ok end,
    case cpu() - A of
        Ms when Ms < 30 -> quiet;
        _ -> quiet(N - 1)
    end.

%% Milliseconds of processor time of the emulator.
cpu() ->
    {ok, Stat} = file:read_file("/proc/self/stat"),
    [_, Rest] = string:split(Stat, ") "),
    Fields = string:split(Rest, " ", all),
    10 * lists:sum([binary_to_integer(lists:nth(I, Fields)) || I <- [12, 13]]).
