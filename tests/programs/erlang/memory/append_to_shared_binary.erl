%% A binary that was made by appending, and has spare capacity, is sent to several processes. They
%% and its maker append to it at the same time, and each finds the common bytes followed by its own.
%% @stress @shared @fence
-module(append_to_shared_binary).
-export([main/0, more/2]).

-define(PROCESSES, 3).

main() ->
    Parent = self(),
    Pids = [spawn_link(fun() -> appends(Parent, I) end) || I <- lists:seq(1, ?PROCESSES)],
    io:format("~p~n", [rounds(rounds(), Pids, 0)]).

%% Fewer where each allocation collects.
rounds() ->
    case os:getenv("PURLIN_GC_STRESS") of false -> 20000; _ -> 300 end.

rounds(0, _, Wrong) -> {wrong, Wrong};
rounds(N, Pids, Wrong) ->
    %% A new block for some rounds, and one that has been appended to before for others.
    Common = ?MODULE:more(binary:copy(<<N:16>>, 40 + N rem 64), <<N:32>>),
    [P ! {append, Common, N} || P <- Pids],
    Own = ?MODULE:more(Common, <<0, N:64>>),
    Size = byte_size(Common),
    Bad = lists:sum([receive {P, N, B} -> bad(B, Common, Size) end || P <- Pids])
        + case Own of <<Common:Size/binary, 0, N:64>> -> 0; _ -> 1 end,
    rounds(N - 1, Pids, Wrong + Bad).

bad(true, _, _) -> 0;
bad(false, _, _) -> 1.

appends(Parent, I) ->
    receive
        {append, Common, N} ->
            Size = byte_size(Common),
            Mine = ?MODULE:more(Common, <<I, N:64>>),
            Again = ?MODULE:more(Mine, <<I>>),
            erlang:yield(),
            Parent ! {self(), N, case Again of <<Common:Size/binary, I, N:64, I>> -> true; _ -> false end},
            appends(Parent, I)
    end.

more(B, C) -> <<B/binary, C/binary>>.
