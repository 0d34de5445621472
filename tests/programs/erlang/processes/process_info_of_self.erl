%% A process that inspects itself sees the signals that have arrived, in every state. Also checks
%% unique integers at the limits of their counter. @stress @fence
-module(process_info_of_self).
-export([main/0]).

main() ->
    ets:new(done, [public, named_table]),
    [io:format("~w: ~w~n", [Item, one(Item, F)])
     || {Item, F} <- [{monitored_by, fun(Me) -> monitor(process, Me) end},
                      {links, fun(Me) -> link(Me) end}]],
    unique().

one(Item, F) ->
    Me = self(),
    %% The one that the emulator starts has links of its own.
    {P, M} = spawn_monitor(fun() -> exit({told, asks(Item, F, self())}) end),
    receive {'DOWN', M, _, P, {told, Told}} -> Told; {'DOWN', M, _, P, Why} -> {Me, Why} end.

asks(Item, F, Me) ->
    Other = spawn(fun() -> F(Me), ets:insert(done, {Item}), receive after 60000 -> ok end end),
    await(Item),
    {Item, Told} = process_info(self(), Item),
    Again = [T || {I, T} <- process_info(self(), [status, Item]), I =:= Item],
    exit(Other, kill),
    {length(Told), Again =:= [Told]}.

%% No process waits here, nor takes a turn anew for long.
await(Item) ->
    case ets:lookup(done, Item) of
        [] -> await(Item);
        _ -> ok
    end.

unique() ->
    erts_debug:set_internal_state(available_internal_state, true),
    Least = erts_debug:get_internal_state(min_unique_monotonic_integer),
    First = erts_debug:get_internal_state(unique_monotonic_integer_state),
    io:format("~w~n", [Least]),
    [begin
         true = erts_debug:set_internal_state(unique_monotonic_integer_state, State),
         N = [erlang:unique_integer([monotonic]) || _ <- [1, 2, 3, 4]],
         true = erts_debug:set_internal_state(unique_monotonic_integer_state, State),
         P = [erlang:unique_integer([positive, monotonic]) || _ <- [1, 2, 3, 4]],
         io:format("~w ~w~n", [N, P])
     end || State <- [-Least - 3, -2 * Least - 3, (1 bsl 63) - Least - 3, (1 bsl 64) - 3, -3]],
    true = erts_debug:set_internal_state(unique_monotonic_integer_state, First),
    N = [erlang:unique_integer([monotonic]) || _ <- [1, 2]],
    io:format("~w~n", [[(X - Least - First) band ((1 bsl 64) - 1) < 1000 || X <- N]]),
    io:format("~w~n", [catch erts_debug:set_internal_state(unique_monotonic_integer_state, a)]).
