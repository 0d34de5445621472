%% Terms of a kibibyte and more are sent, captured, returned, inserted and looked up repeatedly:
%% across collections, from processes that end, with literals of purged modules, and with parts that
%% are kept. Where the runtime reports what it shared, that is checked.
%% @stress @shared @fence @seconds 120
-module(shared_again).
-export([main/0]).

main() ->
    [begin io:format("~p: ", [F]), io:format("~p~n", [run(F)]) end
     || F <- [told, kept, stale, server, server_collected, nested, inside_twice, within, pieces, many_parts, killed, spawned, reasons, timers,
              aliases, tables, ordered, bags, elements, inserted, updated, looked_up, owner_gone, literals, ports, forwarded, dictionary, large_and_small]].

%% Each in a process of its own, which ends with its garbage.
run(F) ->
    {_, R} = spawn_monitor(fun() -> exit({done, scenario(F)}) end),
    receive {'DOWN', R, _, _, {done, V}} -> V; {'DOWN', R, _, _, Other} -> {failed, Other} end.

%% ~1 KiB for each 25.
value(N) -> maps:from_list([{I, {I, [I, I + 1]}} || I <- lists:seq(1, N)]).
tuples(N) -> [{I, I * I, list_to_atom("a" ++ integer_to_list(I rem 7))} || I <- lists:seq(1, N)].

%% Whether words were shared by the process meanwhile: only asked where nothing is done at random.
counts() -> asked(fun() -> #{words_moved := M, words_shared := S} = erlang:system_info(sharing), M + S end).
moved() -> asked(fun() -> maps:get(words_moved, purlin:sharing(self())) end).
asked(F) ->
    try {erlang:system_info(sharing_threshold), os:getenv("PURLIN_GC_STRESS")} of
        {T, false} when T > 1000 -> F();
        _ -> none
    catch error:badarg -> none
    end.
shared(none, _) -> as_expected;
shared(A, B) when B > A -> as_expected;
shared(A, B) -> {not_shared, A, B}.
same(none, _) -> as_expected;
same(A, A) -> as_expected;
same(A, B) -> {moved, A, B}.

receivers(N, F) ->
    Me = self(),
    [spawn_link(fun() -> F(Me) end) || _ <- lists:seq(1, N)].
gather(Ps) -> lists:usort([receive {P, X} -> X end || P <- Ps]).

scenario(told) ->
    V = value(200),
    Before = counts(),
    Ps = receivers(40, fun(Me) -> receive {told, M} -> Me ! {self(), erlang:phash2(M)} end end),
    [P ! {told, V} || P <- Ps],
    [H] = gather(Ps),
    {H =:= erlang:phash2(V), shared(Before, counts())};
scenario(kept) ->
    %% Receivers and the sender collect meanwhile, and the term is sent on.
    V = tuples(150),
    Ps = receivers(20, fun(Me) ->
        receive {first, M} -> ok end,
        erlang:garbage_collect(),
        receive {second, M2} -> ok end,
        garbage(2000),
        erlang:garbage_collect(),
        Me ! {self(), {M =:= M2, erlang:phash2({M, M2})}} end),
    [P ! {first, V} || P <- Ps],
    erlang:garbage_collect(),
    [P ! {second, V} || P <- Ps],
    [{true, H}] = gather(Ps),
    H =:= erlang:phash2({V, V});
scenario(stale) ->
    %% Fresh terms again and again, each of which may come to lie where the last one lay.
    P = spawn_link(fun() -> sums(0) end),
    Before = moved(),
    N = fresh(P, 300, 0),
    After = moved(),
    P ! {self(), sum},
    {receive {P, S} -> S =:= N end, same(Before, After)};
scenario(server) ->
    S = spawn_link(fun() -> server(value(100), 0, false) end),
    Before = counts(),
    Vs = [call(S) || _ <- lists:seq(1, 30)],
    {lists:usort(Vs) =:= [value(100)], shared(Before, counts())};
scenario(server_collected) ->
    S = spawn_link(fun() -> server(value(100), 0, true) end),
    Before = counts(),
    Vs = [call(S) || _ <- lists:seq(1, 30)],
    {lists:usort(Vs) =:= [value(100)], shared(Before, counts())};
scenario(nested) ->
    %% The same part in other surroundings, and surroundings of a part that is shared by then.
    V = value(60),
    Me = self(),
    P = spawn_link(fun() -> Me ! {self(), collect(8, [])} end),
    P ! {one, V},
    P ! {two, V},
    All = {three, V, [V, V], value(40)},
    P ! All,
    P ! All,
    P ! [All],
    P ! #{key => All},
    P ! fun() -> All end,
    P ! {All, All},
    [{one, V}, {two, V}, All, All, [All], #{key := All}, F, {All, All}] = receive {P, L} -> L end,
    {F() =:= All, erlang:phash2({F(), All}) =:= erlang:phash2({All, All})};
scenario(inside_twice) ->
    %% A term in which parts are reached twice stays what it is, for its owner.
    A = tuples(30),
    T = {A, [A | A], A},
    Size = erts_debug:size(T),
    Ps = receivers(5, fun(Me) -> receive {x, M} -> Me ! {self(), erlang:phash2(M)} end end),
    [P ! {x, T} || P <- Ps],
    erlang:garbage_collect(),
    [H] = gather(Ps),
    %% What is shared at random may be shared by itself and within another part.
    Kept = os:getenv("PURLIN_GC_STRESS") =/= false orelse erts_debug:size(T) =:= Size,
    {H =:= erlang:phash2(T), Kept};
scenario(within) ->
    %% Of one message two parts are shared, one of which lies in the other.
    A = [{I, I * I} || I <- lists:seq(1, 60)],
    B = [x | A],
    Size = erts_debug:size({A, B}),
    Ps = receivers(3, fun(Me) ->
        receive {X, q, Y} -> ok end,
        receive stop -> Me ! {self(), {tl(X) =:= Y, erlang:phash2(X)}} end end),
    [begin P ! {B, q, A}, P ! {B, q, A} end || P <- Ps],
    erlang:garbage_collect(),
    %% Where everything is shared at once each part is by itself.
    Kept = asked(fun() -> erts_debug:size({A, B}) =:= Size end),
    [P ! stop || P <- Ps],
    {gather(Ps) =:= [{true, erlang:phash2(B)}], Kept =/= false};
scenario(pieces) ->
    %% What is kept of a shared term is little: the rest is given up within two sweeps.
    V = tuples(200),
    Ps = receivers(10, fun(Me) ->
        receive {x, M} -> put(piece, lists:nth(150, M)) end,
        receive {big, N} -> put(big, lists:seq(1, N)) end,
        erlang:garbage_collect(),
        erlang:garbage_collect(),
        Me ! {self(), {get(piece), length(get(big)), held()}},
        receive stop -> ok end end),
    [P ! {x, V} || P <- Ps],
    [P ! {big, N} || {P, N} <- lists:zip(Ps, [20000 * (I rem 2) || I <- lists:seq(1, 10)])],
    R = gather(Ps),
    [P ! stop || P <- Ps],
    {R, erlang:phash2(V)};
scenario(many_parts) ->
    %% A heap that refers to many small regions.
    Vs = [value(50 + I rem 3) || I <- lists:seq(1, 300)],
    Me = self(),
    P = spawn_link(fun() -> Me ! {self(), erlang:phash2(collect(600, []))} end),
    Q = spawn_link(fun() -> Me ! {self(), erlang:phash2(pieces(600, []))} end),
    [begin P ! V, Q ! V, P ! V, Q ! V end || V <- Vs],
    Twice = lists:append([[V, V] || V <- Vs]),
    H = receive {P, X} -> X end,
    H2 = receive {Q, Y} -> Y end,
    {H =:= erlang:phash2(Twice), H2 =:= erlang:phash2([maps:get(7, V) || V <- Twice])};
scenario(killed) ->
    V = value(120),
    Ps = [spawn(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 30)],
    [begin P ! V, P ! {V, V}, P ! [V] end || P <- Ps],
    Rs = [monitor(process, P) || P <- Ps],
    [exit(P, kill) || P <- Ps],
    [receive {'DOWN', R, _, _, _} -> ok end || R <- Rs],
    erlang:garbage_collect(),
    V =:= value(120);
scenario(spawned) ->
    V = #{'__struct__' => settings, table => value(80), list => lists:seq(1, 200)},
    Me = self(),
    Before = counts(),
    Ps = [spawn_link(fun() -> garbage(100), Me ! {self(), {I > 0, erlang:phash2(V), maps:get(I, maps:get(table, V))}} end)
          || I <- lists:seq(1, 40)],
    Qs = [spawn_link(erlang, apply, [fun(X) -> Me ! {self(), erlang:phash2(X)} end, [V]]) || _ <- lists:seq(1, 10)],
    L = gather(Ps),
    [H] = gather(Qs),
    {length(L), H =:= erlang:phash2(V), lists:usort([X || {true, X, _} <- L]) =:= [H], shared(Before, counts())};
scenario(reasons) ->
    V = {reason, value(90)},
    [begin {P, R} = spawn_monitor(fun() -> receive {exit, X} -> exit(X) end end),
           P ! {exit, V}, receive {'DOWN', R, _, _, V2} -> V2 =:= V end end || _ <- lists:seq(1, 5)];
scenario(timers) ->
    V = {timer, value(90)},
    [erlang:send_after(I, self(), V) || I <- [1, 2, 3, 4, 5]],
    [receive {timer, _} = X -> X =:= V end || _ <- [1, 2, 3, 4, 5]];
scenario(aliases) ->
    V = value(70),
    S = spawn_link(fun() -> aliased(V) end),
    [begin A = alias([reply]), S ! {A, self()}, receive {A, X} -> X =:= V end end || _ <- lists:seq(1, 10)];
scenario(tables) -> table(set, [public, {read_concurrency, true}]);
scenario(ordered) -> table(ordered_set, [protected]);
scenario(bags) ->
    T = ets:new(t, [bag, public]),
    V = tuples(120),
    ets:insert(T, [{k, V}, {k, value(60)}]),
    L = [ets:lookup(T, k) || _ <- lists:seq(1, 12)],
    ets:delete(T),
    lists:usort(lists:append(L)) =:= lists:sort([{k, V}, {k, value(60)}]);
scenario(elements) ->
    T = ets:new(t, [public]),
    V = tuples(120),
    ets:insert(T, {k, small, V, value(60)}),
    L = [{ets:lookup_element(T, k, 3), ets:lookup_element(T, k, 4), ets:lookup_element(T, k, 2)} || _ <- lists:seq(1, 12)],
    ets:delete(T),
    garbage(1000),
    lists:usort(L) =:= [{V, value(60), small}];
scenario(inserted) ->
    Ts = [ets:new(t, [K]) || K <- [set, ordered_set, bag, set, set]],
    V = value(110),
    [ets:insert(T, {k, V, I}) || {T, I} <- lists:zip(Ts, [1, 2, 3, 4, 5])],
    erlang:garbage_collect(),
    [ets:insert(T, {l, V}) || T <- Ts],
    [self() ! V || _ <- Ts],
    R = [[{k, V, I}] =:= ets:lookup(T, k) andalso [{l, V}] =:= ets:lookup(T, l) || {T, I} <- lists:zip(Ts, [1, 2, 3, 4, 5])],
    [ets:delete(T) || T <- Ts],
    {R, [receive V2 -> V2 =:= V end || _ <- Ts]};
scenario(updated) ->
    T = ets:new(t, [public]),
    V = tuples(150),
    ets:insert(T, {k, 1, V, V}),
    M = ets:info(T, memory),
    A = [ets:lookup(T, k) || _ <- lists:seq(1, 4)],
    M2 = ets:info(T, memory),
    ets:update_counter(T, k, {2, 5}),
    ets:update_element(T, k, {3, other}),
    B = [ets:lookup(T, k) || _ <- lists:seq(1, 4)],
    ets:insert(T, {k, 2, value(60)}),
    C = [ets:lookup(T, k) || _ <- lists:seq(1, 9)],
    ets:delete(T, k),
    garbage(1000),
    {M =:= M2, lists:usort(A) =:= [[{k, 1, V, V}]], lists:usort(B) =:= [[{k, 6, other, V}]], lists:usort(C) =:= [[{k, 2, value(60)}]]};
scenario(looked_up) ->
    T = ets:new(t, [public]),
    V = tuples(200),
    ets:insert(T, {k, V}),
    Before = counts(),
    L = [ets:lookup(T, k) || _ <- lists:seq(1, 5)],
    Shared = shared(Before, counts()),
    ets:delete(T),
    {lists:usort(L) =:= [[{k, V}]], Shared};
scenario(owner_gone) ->
    Me = self(),
    P = spawn_link(fun() ->
        T = ets:new(t, [public]),
        ets:insert(T, {k, tuples(150)}),
        Me ! {self(), T}, receive stop -> ok end end),
    T = receive {P, X} -> X end,
    L = [ets:lookup(T, k) || _ <- lists:seq(1, 5)],
    R = monitor(process, P),
    P ! stop,
    receive {'DOWN', R, _, _, _} -> ok end,
    erlang:garbage_collect(),
    lists:usort(L) =:= [[{k, tuples(150)}]];
scenario(literals) ->
    %% Shared terms refer to literals of modules that are loaded anew and purged.
    Me = self(),
    Ps = [begin
        M = load(I),
        V = {M:literal(), [M:literal() | tuples(60)], value(50)},
        Qs = receivers(4, fun(To) -> receive {x, X} -> receive go -> garbage(500), To ! {self(), X} end end end),
        [Q ! {x, V} || Q <- Qs],
        Me ! {I, erlang:phash2(V)},
        {I, Qs} end || I <- lists:seq(1, 6)],
    code:delete(shared_again_literals), code:purge(shared_again_literals),
    erlang:garbage_collect(),
    [begin [Q ! go || Q <- Qs], H = receive {I, Z} -> Z end, [X] = gather(Qs), erlang:phash2(X) =:= H end || {I, Qs} <- Ps];
scenario(ports) ->
    P = open_port({spawn, "cat"}, [binary, {line, 100000}]),
    L = [[integer_to_list(I), $,] || I <- lists:seq(1, 300)],
    R = [begin P ! {self(), {command, [L, $\n]}}, port_command(P, [L, $\n]),
               receive {P, {data, {eol, A}}} -> ok end, receive {P, {data, {eol, B}}} -> ok end,
               A =:= B andalso A =:= iolist_to_binary(L) end || _ <- lists:seq(1, 4)],
    port_close(P),
    R;
scenario(forwarded) ->
    %% Along a chain of processes, by name and by pid, each of which collects.
    V = value(130),
    Me = self(),
    Last = spawn_link(fun() -> Me ! {self(), collect(5, [])} end),
    First = lists:foldl(fun(_, Next) -> spawn_link(fun() -> pass(5, Next) end) end, Last, lists:seq(1, 10)),
    register(shared_again_first, First),
    [{shared_again_first, node()} ! {V, I} || I <- lists:seq(1, 5)],
    L = receive {Last, X} -> X end,
    L =:= [{V, I} || I <- lists:seq(1, 5)];
scenario(dictionary) ->
    put(key, value(130)),
    P = spawn_link(fun() -> sleeper() end),
    L = [begin P ! {self(), get(key)}, erlang:garbage_collect(), receive {P, H} -> H end end || _ <- lists:seq(1, 6)],
    D = [begin {dictionary, Pairs} = process_info(Q, dictionary), proplists:get_value(key, Pairs) end || Q <- [self(), self(), self()]],
    {lists:usort(L) =:= [erlang:phash2(get(key))], lists:usort(D) =:= [value(130)]};
scenario(large_and_small) ->
    V = {value(60), lists:seq(1, 40000), value(70)},
    Ps = receivers(6, fun(Me) -> receive {x, M} -> erlang:garbage_collect(), Me ! {self(), erlang:phash2(M)} end end),
    {A, B, C} = V,
    lists:foldl(fun(P, I) -> P ! {x, case I rem 2 of 0 -> V; 1 -> {A, B, C} end}, I + 1 end, 0, Ps),
    gather(Ps) =:= [erlang:phash2(V)].

table(Kind, Options) ->
    T = ets:new(t, [Kind | Options]),
    V = tuples(200),
    ets:insert(T, [{{key, I}, {V, I}, tail} || I <- [1, 2, 3]]),
    ets:insert(T, {small, tuples(30)}),
    Ps = receivers(20, fun(Me) ->
        A = ets:lookup(T, {key, 2}),
        garbage(200),
        B = ets:lookup(T, {key, 2}),
        C = ets:lookup(T, small),
        Me ! looked,
        receive gone -> ok end,
        garbage(200),
        Me ! {self(), {A =:= B, erlang:phash2({A, B, C})}} end),
    L = [ets:lookup(T, {key, 1}) || _ <- lists:seq(1, 4)],
    [receive looked -> ok end || _ <- Ps],
    Size = ets:info(T, size),
    ets:delete(T),
    [P ! gone || P <- Ps],
    [{true, H}] = gather(Ps),
    O = [{{key, 2}, {V, 2}, tail}],
    {Size, H =:= erlang:phash2({O, O, [{small, tuples(30)}]}), lists:usort(L) =:= [[{{key, 1}, {V, 1}, tail}]]}.
garbage(N) -> garbage(N, []).
garbage(0, L) -> length(L);
garbage(N, _) when N rem 50 =:= 0 -> garbage(N - 1, [N]);
garbage(N, L) -> garbage(N - 1, [{N, N} | L]).

held() ->
    case os:getenv("PURLIN_GC_STRESS") of
        false -> try length(purlin:regions(self())) catch _:_ -> 0 end;
        _ -> 0
    end.

fresh(_, 0, N) -> N;
fresh(P, K, N) ->
    P ! {x, [{K, I} || I <- lists:seq(1, 60)]},
    case K rem 3 of 0 -> erlang:garbage_collect(); _ -> ok end,
    fresh(P, K - 1, N + 60 * K).
sums(N) ->
    receive
        {x, L} -> sums(N + lists:sum([K || {K, _} <- L]));
        {From, sum} -> From ! {self(), N}
    end.

server(V, N, Collect) ->
    receive
        {From, Ref, ask} ->
            From ! {Ref, {ok, V}},
            case Collect of true -> erlang:garbage_collect(); false -> ok end,
            server(V, N + 1, Collect)
    end.
call(S) -> R = make_ref(), S ! {self(), R, ask}, receive {R, {ok, V}} -> V end.

aliased(V) -> receive {A, _} -> A ! {A, V}, aliased(V) end.

collect(0, L) -> lists:reverse(L);
collect(N, L) -> receive X -> collect(N - 1, [X | L]) end.
pieces(0, L) -> lists:reverse(L);
pieces(N, L) -> receive #{7 := X} -> pieces(N - 1, [X | L]) end.

pass(0, _) -> ok;
pass(N, Next) -> receive X -> garbage(60), Next ! X, pass(N - 1, Next) end.

sleeper() -> receive {From, V} -> From ! {self(), erlang:phash2(V)}, sleeper() end.

load(I) ->
    code:purge(shared_again_literals),
    L = [{literal, I, K} || K <- lists:seq(1, 40)],
    Forms = [{attribute, 1, module, shared_again_literals}, {attribute, 2, export, [{literal, 0}]},
             {function, 3, literal, 0, [{clause, 3, [], [], [erl_parse:abstract(L)]}]}],
    {ok, M, B} = compile:forms(Forms, []),
    code:delete(M),
    code:purge(M),
    {module, M} = code:load_binary(M, "literals", B),
    M.
