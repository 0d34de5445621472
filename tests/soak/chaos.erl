%% What processes may do to each other, at random and from all schedulers, for as long as told:
%% spawning, links, monitors, kills, names, messages small and large, timers that others cancel,
%% tables that are filled, walked, emptied, renamed, given away and inherited, ports that others
%% close, a module that is loaded and purged while it runs, questions to processes that end,
%% suspension, tracing, the number of schedulers.
%%
%%   erl -noshell -run chaos main SECONDS
%%
%% At the end nothing may be left, and nobody may have waited in vain. Prints what was done; status
%% 1 if something is wrong.
-module(chaos).
-export([main/1, live/1]).

-define(SLOTS, 48).
-define(NAMES, 6).
-define(PATIENCE, 60000).

main([Seconds]) ->
    process_flag(trap_exit, true),
    process_flag(priority, high),
    logger:set_primary_config(level, none),
    _ = os:cmd("true"),
    _ = compile:forms([{attribute, 1, module, chaos_warm}], []),
    Versions = [module(V) || V <- [1, 2, 3]],
    load(hd(Versions)),
    code:purge(chaos_code),
    Keep = processes(),
    Tables = tables(),
    Code = spawn_link(fun() -> coder(Versions) end),
    Tracer = spawn_link(fun swallow/0),
    Before = left(),
    Until = now_ms() + list_to_integer(Seconds) * 1000,
    World = {Tables, Code, Tracer},
    Me = self(),
    Drivers = [spawn_link(fun() -> Me ! {done, self(), drive(World, Until, 0)} end) || _ <- lists:seq(1, 8)],
    Rounds = [receive {done, D, N} -> N after list_to_integer(Seconds) * 1000 + 2 * ?PATIENCE -> bad("a driver is stuck", D) end || D <- Drivers],
    [receive {'EXIT', D, normal} -> ok; {'EXIT', D, Why} -> bad("a driver failed", Why) end || D <- Drivers],
    erlang:trace(all, false, [all]),
    erlang:trace_pattern({'_', '_', '_'}, false, [local]),
    erlang:system_flag(schedulers_online, erlang:system_info(schedulers)),
    calm(World, Keep, now_ms() + ?PATIENCE),
    [ets:delete_all_objects(T) || T <- Tables],
    [persistent_term:erase({chaos, K}) || K <- [1, 2, 3]],
    After = settle(Before, now_ms() + ?PATIENCE),
    io:format("~b rounds~nbefore ~0p~nafter  ~0p~n", [lists:sum(Rounds), Before, After]),
    case [K || K <- maps:keys(Before), maps:get(K, After) =/= maps:get(K, Before)] of
        [] -> io:format("nothing is left~n"), halt(0);
        Left -> bad("left behind", [{K, maps:get(K, After)} || K <- Left] ++ details())
    end.

bad(What, Of) ->
    io:format("~s: ~0p~n", [What, Of]),
    [io:format("~0p ~0p~n", [P, process_info(P)]) || P <- lists:flatten([Of]), is_pid(P)],
    halt(1).

now_ms() -> erlang:monotonic_time(millisecond).

details() -> [{P, process_info(P, [current_function, initial_call, status, links, messages])} || P <- processes()].

left() ->
    #{processes => length(processes()), ports => length(erlang:ports()), tables => lists:sort(ets:all()),
      names => lists:sort(registered()), fixed => [T || T <- ets:all(), ets:info(T, fixed) =:= true],
      regions => regions()}.

%% Regions of literals and such do not count.
regions() -> try maps:get(regions, apply(purlin, sharing, [])) catch _:_ -> 0 end.

settle(Before, Until) ->
    [erlang:garbage_collect(P) || P <- processes()],
    After = left(),
    Regions = maps:get(regions, After) =< maps:get(regions, Before),
    case After =:= Before orelse (Regions andalso maps:remove(regions, After) =:= maps:remove(regions, Before)) orelse now_ms() > Until of
        true when Regions -> After#{regions := maps:get(regions, Before)};
        true -> After;
        false -> timer:sleep(200), settle(Before, Until)
    end.

%% Ends whoever still lives, until nobody does.
calm({[_, Ports | _], Code, Tracer} = World, Keep, Until) ->
    [case ets:lookup(Ports, K) of [{_, P}] -> catch port_close(P); [] -> ok end || K <- lists:seq(1, ?SLOTS)],
    case processes() -- [Code, Tracer | Keep] of
        [] -> ok;
        Mine ->
            now_ms() > Until andalso bad("cannot be ended", Mine),
            [exit(P, kill) || P <- Mine],
            timer:sleep(20),
            calm(World, Keep, Until)
    end.

tables() ->
    [ets:new(N, [public | O]) || {N, O} <- [{pids, []}, {ports, []}, {timers, []}, {set, [{write_concurrency, true}]}, {plain, []},
                                            {bag, [bag, {write_concurrency, true}]}, {ordered, [ordered_set, {read_concurrency, true}]}]].

swallow() -> receive _ -> swallow() end.

%% ---- the module that is loaded and purged ----

module(V) ->
    Forms = [{attribute, 1, module, chaos_code}, {attribute, 1, export, [{version, 0}, {wait, 1}, {adder, 1}]},
             {function, 1, version, 0, [{clause, 1, [], [], [{integer, 1, V}]}]},
             {function, 2, wait, 1, [{clause, 2, [{var, 2, 'T'}], [],
               [{'receive', 2, [{clause, 2, [{atom, 2, go}], [], [{integer, 2, V}]}], {var, 2, 'T'}, [{atom, 2, late}]}]}]},
             {function, 3, adder, 1, [{clause, 3, [{var, 3, 'N'}], [],
               [{'fun', 3, {clauses, [{clause, 3, [{var, 3, 'M'}], [], [{tuple, 3, [{integer, 3, V}, {op, 3, '+', {var, 3, 'N'}, {var, 3, 'M'}}]}]}]}}]}]}],
    {ok, M, B} = compile:forms(Forms, []),
    {M, B}.

load({M, B}) -> {module, M} = code:load_binary(M, "chaos_code.erl", B).

coder(Versions) ->
    receive {load, From, R} ->
        code:purge(chaos_code),
        load(lists:nth(rand:uniform(length(Versions)), Versions)),
        From ! R,
        coder(Versions)
    end.

%% ---- rounds ----

drive({[Pids | _], _, _} = World, Until, N) ->
    {P, R} = spawn_monitor(fun() -> enter(Pids), live({World, 20 + rand:uniform(60)}) end),
    receive {'DOWN', R, _, _, Why} -> check(Why) after ?PATIENCE -> bad("stuck", P) end,
    case now_ms() > Until of
        true -> N + 1;
        false -> drive(World, Until, N + 1)
    end.

check({Class, _}) when Class =:= badmatch; Class =:= case_clause -> exit(Class);
check(_) -> ok.

enter(Pids) -> ets:insert(Pids, {rand:uniform(?SLOTS), self()}).

live({_, 0}) -> ok;
live({World, N}) ->
    act(rand:uniform(34), World),
    live({World, N - 1}).

someone([Pids | _]) ->
    case ets:lookup(Pids, rand:uniform(?SLOTS)) of [{_, P}] -> P; [] -> self() end.

name() -> element(rand:uniform(?NAMES), {chaos_a, chaos_b, chaos_c, chaos_d, chaos_e, chaos_f}).

small() -> lists:seq(1, rand:uniform(20)).
large() -> [{I, <<I:64>>} || I <- lists:seq(1, 3000)].

flush(0) -> ok;
flush(N) ->
    receive
        {'ETS-TRANSFER', T, _, _} -> rand:uniform(2) =:= 1 andalso (catch ets:delete(T)), flush(N - 1);
        {From, R, ask} -> From ! {R, self()}, flush(N - 1);
        _ -> flush(N - 1)
    after 0 -> ok
    end.

walk(_, '$end_of_table', _) -> ok;
walk(_, _, 0) -> ok;
walk(T, K, N) -> walk(T, ets:next(T, K), N - 1).

act(1, {T, _, _}) -> someone(T) ! small();
act(2, {T, _, _}) -> someone(T) ! {small(), large()};
act(3, {T, _, _}) -> catch link(someone(T));
act(4, {T, _, _}) -> unlink(someone(T));
act(5, {T, _, _}) -> process_flag(trap_exit, rand:uniform(2) =:= 1), monitor(process, someone(T));
act(6, {T, _, _}) -> demonitor(monitor(process, someone(T)), [flush]);
act(7, {T, _, _}) -> exit(someone(T), case rand:uniform(3) of 1 -> kill; 2 -> normal; 3 -> small() end);
act(8, {T, _, _}) -> catch register(name(), someone(T));
act(9, _) -> catch unregister(name());
act(10, _) -> catch name() ! small();
act(11, {T, _, _}) ->
    case process_info(someone(T), [messages, links, monitors, current_stacktrace, dictionary, memory]) of
        undefined -> ok;
        [{messages, _} | _] -> ok
    end;
act(12, {[Pids | _], _, _} = World) ->
    P = spawn(fun() -> enter(Pids), live({World, 15}) end),
    P ! go;
act(13, {[Pids | _], _, _} = World) ->
    spawn_opt(fun() -> enter(Pids), put(k, large()), live({World, 10}) end,
              lists:nth(rand:uniform(5), [[link], [monitor], [{priority, high}], [{priority, low}, link], [{message_queue_data, off_heap}]]));
act(14, {[_, _, Timers | _] = T, _, _}) ->
    R = erlang:start_timer(rand:uniform(30), someone(T), small()),
    ets:insert(Timers, {rand:uniform(?SLOTS), R});
act(15, {[_, _, Timers | _], _, _}) ->
    case ets:lookup(Timers, rand:uniform(?SLOTS)) of [{_, R}] -> erlang:cancel_timer(R), erlang:read_timer(R); [] -> ok end;
act(16, _) -> flush(50);
act(17, _) -> receive nothing -> ok after rand:uniform(5) - 1 -> ok end;
act(18, {T, _, _}) -> X = ets_table(T), ets:insert(X, [{rand:uniform(5000), small()} || _ <- lists:seq(1, rand:uniform(400))]);
act(19, {T, _, _}) -> ets:insert(ets_table(T), {rand:uniform(100), large()});
act(20, {T, _, _}) ->
    case rand:uniform(6) of 1 -> ets:delete_all_objects(ets_table(T)); _ -> ets:delete(ets_table(T), rand:uniform(5000)) end;
act(21, {T, _, _}) ->
    X = ets_table(T),
    ets:safe_fixtable(X, true),
    catch walk(X, ets:first(X), 100),
    %% Or it ends with its process.
    rand:uniform(3) =:= 1 orelse ets:safe_fixtable(X, false);
act(22, {T, _, _}) -> N = rand:uniform(5000), ets:select_delete(ets_table(T), [{{'$1', '_'}, [{'<', '$1', N}], [{'<', {'rem', '$1', 7}, 3}]}]);
act(23, {T, _, _}) -> case ets:select(ets_table(T), [{{'$1', '_'}, [], ['$1']}], 50) of {_, C} -> catch ets:select(C); _ -> ok end;
act(24, {T, _, _}) ->
    X = ets:new(name(), [public, {heir, someone(T), small()}]),
    ets:insert(X, [{I, I} || I <- lists:seq(1, 300)]),
    catch ets:give_away(X, someone(T), small());
act(25, _) ->
    try ets:new(name(), [named_table, public]) of N -> catch ets:rename(N, name()), catch ets:insert(N, {1, 2}), catch ets:delete(N)
    catch error:badarg -> catch ets:delete(name()) end;
act(26, {[_, Ports | _], _, _}) ->
    case rand:uniform(10) of
        1 -> P = open_port({spawn, "exec cat 2>/dev/null"}, [binary, exit_status]), ets:insert(Ports, {rand:uniform(?SLOTS), P}), P ! {self(), {command, "chaos"}};
        _ -> ok
    end;
act(27, {[_, Ports | _] = T, _, _}) ->
    case ets:lookup(Ports, rand:uniform(?SLOTS)) of
        [{K, P}] ->
            case rand:uniform(4) of
                1 -> catch port_command(P, "more");
                2 -> catch port_connect(P, someone(T));
                3 -> catch unlink(P), catch erlang:port_info(P);
                4 -> ets:delete(Ports, K), catch port_close(P)
            end;
        [] -> ok
    end;
act(28, {_, Code, _}) ->
    case rand:uniform(4) of
        1 -> R = make_ref(), Code ! {load, self(), R}, receive R -> ok after ?PATIENCE -> bad("nobody loads code", Code) end;
        _ -> {_, 5} = (chaos_code:adder(2))(3), chaos_code:version()
    end;
act(29, {[Pids | _], _, _}) -> spawn(chaos_code, wait, [rand:uniform(20)]) ! go, spawn(fun() -> enter(Pids), chaos_code:wait(rand:uniform(20)) end);
act(30, {T, _, Tracer}) ->
    P = someone(T),
    P =:= self() orelse catch erlang:trace(P, rand:uniform(2) =:= 1, [procs, send, 'receive', call, garbage_collection, {tracer, Tracer}]);
act(31, _) ->
    case rand:uniform(10) of
        1 -> erlang:trace_pattern({chaos_code, '_', '_'}, rand:uniform(2) =:= 1, [local]);
        2 -> erlang:system_flag(schedulers_online, rand:uniform(erlang:system_info(schedulers)));
        _ -> ok
    end;
act(32, {T, _, _}) ->
    P = someone(T),
    P =:= self() orelse catch erlang:suspend_process(P, [unless_suspending, asynchronous]),
    rand:uniform(2) =:= 1 orelse catch erlang:resume_process(P);
act(33, {T, _, _}) -> erlang:garbage_collect(someone(T), [{async, make_ref()}]), lists:member(someone(T), processes());
act(34, _) ->
    K = {chaos, rand:uniform(3)},
    case rand:uniform(3) of 1 -> persistent_term:put(K, large()); 2 -> persistent_term:erase(K); 3 -> length(persistent_term:get(K, [])) end.

ets_table([_, _, _ | T]) -> lists:nth(rand:uniform(length(T)), T).
