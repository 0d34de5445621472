%% Runs one program of the hunt: its workers and servers, to their ends. Says how many values were
%% checked, and a sum of them that depends on the program, its seed and the sizes alone.
%%
%%   erl -noshell -pa DIR -run hunt main MODULE SEED STEPS SIZE
-module(hunt).
-export([main/1]).

main([Module, Seed, Steps, Size]) ->
    try
        run(list_to_atom(Module), list_to_integer(Seed), list_to_integer(Steps), list_to_integer(Size))
    catch
        C:R:S ->
            io:format(standard_error, "fault in ~s, main: ~P~n", [Module, {C, R, S}, 60]),
            halt(3)
    end.

run(Module, Seed, Steps, Size) ->
    logger:set_primary_config(level, none),
    Literals = list_to_atom(atom_to_list(Module) ++ "_l"),
    {module, _} = code:load_file(Literals),
    hunt_v:setup(Module, Literals, Size),
    ets:new(hunt_reload, [named_table, public]),
    ets:insert(hunt_reload, [{lock, 0}, {turn, 0}]),
    rand:seed(exsss, Seed),
    Tables = {ets:new(t, [set, public]), ets:new(t, [ordered_set, public]), ets:new(t, [bag, public, {write_concurrency, true}]),
              ets:new(t, [set, public, compressed])},
    E0 = #{tables => Tables, module => Module},
    Servers = [spawn_opt(hunt_v, server, [E0], [link | options()]) || _ <- [1, 2, 3]],
    Main = self(),
    Workers = [spawn_opt(hunt_v, worker, [Main, K, Steps, rand:uniform(1 bsl 30)], [monitor | options()]) || K <- [1, 2, 3, 4]],
    E = E0#{servers => list_to_tuple(Servers), workers => list_to_tuple([P || {P, _} <- Workers])},
    [P ! {start, E} || {P, _} <- Workers],
    Sent = [receive
                {done, P, L} -> L;
                {'DOWN', M, _, _, R} -> error({worker, K, R})
            end || {K, {P, M}} <- lists:zip([1, 2, 3, 4], Workers)],
    [P ! {expect, lists:sum([lists:nth(K, L) || L <- Sent])} || {K, {P, _}} <- lists:zip([1, 2, 3, 4], Workers)],
    [receive {'DOWN', M, _, P, R} -> R =:= normal orelse error({worker, R}) end || {P, M} <- Workers],
    [hunt_v:stop(P) || P <- Servers],
    [0 = ets:info(T, size) || T <- tuple_to_list(Tables)],
    io:format("~s ~w: ~w checked, sums ~w ~w~n", [Module, Seed | hunt_v:counted()]),
    halt(0).

options() ->
    [lists:nth(rand:uniform(3), [{fullsweep_after, 0}, {fullsweep_after, 5}, {fullsweep_after, 65535}]),
     lists:nth(rand:uniform(3), [{min_heap_size, 233}, {min_heap_size, 233}, {min_heap_size, 20000}]),
     lists:nth(rand:uniform(2), [{message_queue_data, on_heap}, {message_queue_data, off_heap}])].
