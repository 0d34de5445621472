%% Binds schedulers to processors: topologies set and read, the order of each kind of binding, and
%% errors.
-module(scheduler_binding).
-export([main/0]).

-define(HOW, [no_spread, thread_spread, processor_spread, spread, no_node_thread_spread, no_node_processor_spread,
              thread_no_node_processor_spread, default_bind]).

%% A level of a topology: 1 to 3 of what is within.
level([], Next) -> {{logical, Next}, Next + 1};
level([Tag | Tags], Next) ->
    lists:mapfoldl(fun(_, N) -> {In, M} = level(Tags, N), {{Tag, In}, M} end, Next, lists:seq(1, rand:uniform(3))).

random() ->
    Shapes = [[processor, core], [processor, core, thread], [core], [node, processor, core], [node, processor, core, thread],
              [processor, node, core], [processor, node, core, thread]],
    Mixed = [[node, processor, core, thread], [processor, node, core, thread], [processor, node, core]],
    case rand:uniform(3) of
        1 ->
            {L, _} = lists:mapfoldl(fun(_, N) -> level(lists:nth(rand:uniform(3), Mixed), N) end, 0, [1, 2, 3]),
            lists:append(L);
        _ -> element(1, level(lists:nth(rand:uniform(length(Shapes)), Shapes), 0))
    end.

orders() ->
    [{H, erts_debug:get_internal_state({fake_scheduler_bindings, H})} || H <- ?HOW].

told(What) ->
    case catch erlang:system_flag(cpu_topology, What) of
        {'EXIT', {Why, _}} -> Why;
        _ -> {erlang:system_info(cpu_topology), erlang:system_info({cpu_topology, defined})}
    end.

how(What) ->
    case catch erlang:system_flag(scheduler_bind_type, What) of
        {'EXIT', {Why, _}} -> Why;
        Before -> {Before, erlang:system_info(scheduler_bind_type)}
    end.

main() ->
    logger:set_primary_config(level, none),
    erts_debug:set_internal_state(available_internal_state, true),
    rand:seed(exsss, {1, 2, 3}),
    Free = free(),
    [begin
         T = random(),
         told(T) =:= {T, T} orelse io:format("~p~n ~p~n", [T, told(T)]),
         io:format("~w~n~w~n", [T, orders()])
     end || _ <- lists:seq(1, 30)],
    [io:format("~w ~w~n", [T, told(T)])
     || T <- [[{core, {logical, 0}}, {core, {logical, 0}}], foo, [], [{logical, 0}], [{core, [{logical, 0}, {logical, 1}]}],
              [{node, [{core, {logical, 1}}]}, {node, [{core, {logical, 0}}]}], [{core, {logical, 0}}, {processor, {logical, 1}}],
              {core, {logical, 0}}, [{core, []}], [{core, {logical, 70000}}], [{core, {logical, -1}}], [{core, [], {logical, 3}}],
              [{processor, [{node, [{core, {logical, 0}}]}]}, {core, {logical, 1}}], [{thread, {logical, 0}}, {thread, {logical, 1}}]]],
    %% Processor 0 is there everywhere.
    io:format("~w~n", [told([{processor, [{core, {logical, 0}}, {core, {logical, 60000}}]}])]),
    io:format("~w~n", [[how(H) || H <- ?HOW ++ [foo, 1, "spread", default]]]),
    erlang:system_flag(schedulers_online, 1),
    [receive after 50 -> ok end || hd(bound()) =:= unbound],
    io:format("~w~n", [hd(bound())]),
    %% A program that a bound scheduler starts is as free as before.
    io:format("~w~n", [Free =:= free()]),
    %% Threads that a bound scheduler starts are as free as before, and processes run on.
    P = [spawn_opt(fun() -> receive M -> exit({M, lists:sum(lists:seq(1, 1000))}) end end, [monitor]) || _ <- lists:seq(1, 100)],
    [Q ! go || {Q, _} <- P],
    io:format("~w~n", [lists:usort([receive {'DOWN', R, process, _, W} -> W end || {_, R} <- P])]),
    io:format("~w ~w~n", [how(unbound), element(1, {told(undefined)}) =:= {erlang:system_info({cpu_topology, detected}), undefined}]),
    [receive after 50 -> ok end || lists:usort(bound()) =/= [unbound], _ <- lists:seq(1, 20)],
    erts_debug:set_internal_state(available_internal_state, false).

free() -> os:cmd("grep Cpus_allowed_list /proc/self/status").

bound() -> tuple_to_list(erlang:system_info(scheduler_bindings)).
