%% Spawns, links, monitors, kills, registers and sends at random from all schedulers for SECONDS,
%% then ends everything and compares what the runtime counts with what it counted at the start: `erl
%% -noshell -pa DIR -run stress main SECONDS`.
-module(stress).
-export([main/1]).

-define(NAMES, [stress_a, stress_b, stress_c, stress_d, stress_e, stress_f, stress_g, stress_h]).

main([Seconds]) ->
    process_flag(trap_exit, true),
    logger:set_primary_config(level, none),
    turn(500),
    settle(),
    Before = counters(),
    End = erlang:monotonic_time(millisecond) + 1000 * list_to_integer(Seconds),
    Done = until(End, 0),
    settle(),
    After = counters(),
    Worse = [{K, B, A} || {{K, B}, {K, A}} <- lists:zip(Before, After), worse(K, B, A)],
    io:format("~b operations; ~p~n", [Done, After]),
    case Worse of
        [] -> io:format("ok~n"), halt(0);
        _ -> io:format("leaked: ~p~n", [Worse]), halt(1)
    end.

%% Memory is counted in MiB and may differ by a few; everything else must be as it was.
worse(K, B, A) when K =:= memory -> A > B + 16;
worse(_, B, A) -> A =/= B.

until(End, N) ->
    case erlang:monotonic_time(millisecond) >= End of
        true -> N;
        false -> until(End, N + turn(2000))
    end.

turn(Each) ->
    Self = self(),
    T = ets:new(pids, [public, set]),
    Actors = [spawn_monitor(fun() -> rand:seed(exsss), act(T, Each), Self ! {done, self()} end)
              || _ <- lists:seq(1, 2 * erlang:system_info(schedulers_online))],
    [receive {'DOWN', R, process, _, _} -> ok end || {_, R} <- Actors],
    All = [P || {P} <- ets:tab2list(T)],
    [exit(P, kill) || P <- All],
    [begin R = monitor(process, P), receive {'DOWN', R, process, _, _} -> ok end end || P <- All],
    ets:delete(T),
    flush(),
    Each * length(Actors).

flush() -> receive _ -> flush() after 0 -> ok end.

act(_, 0) -> ok;
act(T, N) ->
    case rand:uniform(10) of
        1 -> ets:insert(T, {spawn(fun() -> actor(T) end)});
        2 -> ets:insert(T, {spawn_link(fun() -> process_flag(trap_exit, true), actor(T) end)});
        3 -> ets:insert(T, {spawn_opt(fun() -> actor(T) end, [{min_heap_size, rand:uniform(1000)}, {message_queue_data, off_heap}])});
        4 -> with(T, fun(P) -> exit(P, kill) end);
        5 -> with(T, fun(P) -> exit(P, stop) end);
        6 -> with(T, fun(P) -> R = monitor(process, P), rand:uniform(2) =:= 1 andalso demonitor(R, [flush]) end);
        7 -> with(T, fun(P) -> catch register(name(), P) end);
        8 -> with(T, fun(P) -> erlang:send_after(rand:uniform(5), P, late) end);
        9 -> catch name() ! {text, lists:seq(1, rand:uniform(200))};
        10 -> with(T, fun(P) -> P ! {binary, binary:copy(<<"x">>, rand:uniform(500))} end)
    end,
    act(T, N - 1).

name() -> lists:nth(rand:uniform(length(?NAMES)), ?NAMES).

with(T, F) ->
    case ets:first(T) of
        '$end_of_table' -> ok;
        _ ->
            L = ets:match(T, {'$1'}, 20),
            {Ps, _} = L,
            [P] = lists:nth(rand:uniform(length(Ps)), Ps),
            F(P)
    end.

%% An actor links and monitors others, forwards some of what it gets, and ends after a while.
actor(T) ->
    rand:seed(exsss),
    actor(T, rand:uniform(20), []).
actor(_, 0, _) -> ok;
actor(T, N, Kept) ->
    receive
        {binary, _} = M ->
            with(T, fun(P) -> P =/= self() andalso rand:uniform(3) =:= 1 andalso (P ! M) end),
            actor(T, N - 1, [M | Kept]);
        {text, L} -> actor(T, N - 1, [lists:sum(L) | Kept]);
        _ -> actor(T, N - 1, Kept)
    after 10 ->
        case rand:uniform(4) of
            1 -> with(T, fun(P) -> catch link(P) end);
            2 -> with(T, fun(P) -> catch unlink(P) end);
            3 -> with(T, fun(P) -> monitor(process, P) end);
            4 -> put(kept, Kept)
        end,
        actor(T, N - 1, Kept)
    end.

settle() ->
    flush(),
    [erlang:garbage_collect(P) || P <- processes()],
    timer:sleep(2000).

counters() ->
    [{processes, erlang:system_info(process_count)},
     {ports, erlang:system_info(port_count)},
     {tables, erlang:system_info(ets_count)},
     {names, length(registered())},
     {links, length(element(2, process_info(self(), links)))},
     {monitors, length(element(2, process_info(self(), monitors)))},
     {watchers, length(element(2, process_info(self(), monitored_by)))},
     {messages, element(2, process_info(self(), message_queue_len))},
     {binaries, erlang:memory(binary) div 65536},
     {memory, erlang:memory(total) div 1048576}].
