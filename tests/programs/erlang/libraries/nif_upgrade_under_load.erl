%% A native library is upgraded while others run it: two versions exist at once, and the old one is
%% purged while its resources are alive and calls of it are in progress.
%% @nif renewed @stress @shared @fence @seconds 120
-module(nif_upgrade_under_load).
-export([main/0]).

-define(M, n_renewed).

show(What, F) ->
    R = try F() catch C:E:T -> {C, E, T} end,
    io:format("~p: ~p~n", [What, R]).

%% A version of the module, which loads that file.
module(File, Info) ->
    L = 1,
    Functions = [{version, 0}, {uses, 0}, {make_taken, 1}, {make_own, 1}, {number, 1}, {slow, 1}, {slow_later, 1}],
    Stub = fun({N, A}) ->
        {function, L, N, A, [{clause, L, [{var, L, '_'} || _ <- lists:seq(1, A)], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, nif_error}}, [{atom, L, stub}]}]}]}
    end,
    Load = {function, L, load, 0, [{clause, L, [], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, load_nif}}, [{string, L, File}, {atom, L, Info}]}]}]},
    Forms = [{attribute, L, module, ?M}, {attribute, L, export, Functions}, {attribute, L, on_load, {load, 0}},
             Load | [Stub(F) || F <- Functions]],
    {ok, ?M, Bin} = compile:forms(Forms, []),
    Bin.

%% Loads the next version from a file of its own.
next(Info) ->
    N = case get(copies) of undefined -> 1; I -> I + 1 end,
    put(copies, N),
    File = "./copy" ++ integer_to_list(N),
    {ok, _} = file:copy("../ebin/renewed.so", File ++ ".so"),
    code:load_binary(?M, "none", module(File, Info)).

next() -> {module, ?M} = next(go), ok.

told(0) -> [];
told(N) -> receive {W, A, B} when is_integer(A), is_integer(B) -> [{W, A, B} | told(N - 1)] after 20000 -> [late] end.

nothing() -> receive {W, A, B} when is_integer(A), is_integer(B) -> {W, A, B} after 50 -> nothing end.

%% Processes that hold a thing each until they are told to drop it.
holder(F) ->
    Me = self(),
    P = spawn_link(fun() -> T = F(), Me ! {has, self()}, hold(T, Me) end),
    receive {has, P} -> P end.

hold(T, Me) ->
    receive
        {number, From} -> From ! {number, ?M:number(T)}, hold(T, Me);
        drop -> Me ! {dropped, self()}
    end.

number(P) -> P ! {number, self()}, receive {number, N} -> N end.
drop(P) -> unlink(P), M = monitor(process, P), P ! drop, receive {dropped, P} -> ok end, receive {'DOWN', M, process, P, normal} -> ok end.

caller(Name, F) ->
    file:delete(Name),
    Me = self(),
    P = spawn(fun() -> R = F(Name), Me ! {came, self(), R} end),
    receive {started, V, 0} -> {P, V} after 20000 -> {P, late} end.

go(Name) -> ok = file:write_file(Name, "").

main() ->
    %% The report of the version that is refused comes at any time.
    ok = logger:set_primary_config(level, none),
    register(nif_upgrade_under_load, self()),
    show(first, fun() -> next(), {?M:version(), ?M:version(), ?M:uses()} end),
    A = holder(fun() -> ?M:make_taken(11) end),
    B = holder(fun() -> ?M:make_own(12) end),
    show(numbers, fun() -> {number(A), number(B)} end),
    %% One that does not take over leaves all as it was.
    show(refused, fun() -> {next(refuse), ?M:version(), number(A), number(B), nothing()} end),
    show(second, fun() -> next(), {?M:version(), ?M:uses(), number(A), number(B), nothing()} end),
    show(purged, fun() -> {code:soft_purge(?M), ?M:version(), number(A), nothing()} end),
    show(own, fun() -> drop(B), told(2) end),
    show(taken, fun() -> drop(A), told(1) end),
    %% Calls of the old version under way.
    [show({under_way, N}, fun() -> under_way(F, "go" ++ integer_to_list(N)) end)
     || {N, F} <- [{1, fun(G) -> ?M:slow(G) end}, {2, fun(G) -> ?M:slow_later(G) end}, {3, fun(G) -> {?M:slow(G), here} end}]],
    [show({killed, N}, fun() -> killed(F, "end" ++ integer_to_list(N)) end)
     || {N, F} <- [{1, fun(G) -> ?M:slow(G) end}, {2, fun(G) -> ?M:slow_later(G) end}]],
    show(busy, fun() -> busy(4, 8) end),
    %% Whoever calls it by a breakpoint is no less the module.
    show(traced, fun() -> erlang:trace_pattern({erlang, load_nif, 2}, true, []), next(), erlang:trace_pattern({erlang, load_nif, 2}, false, []), V = ?M:uses(), {is_integer(V), nothing()} end),
    show(ends, fun() -> V = ?M:version(), {code:delete(?M), code:purge(?M), told(1) =:= [{unload, V, 0}], nothing()} end).

%% The new version is there while a call of the old one is under way; the old one goes when the call
%% and what it made have gone.
under_way(F, Name) ->
    {P, V} = caller(Name, F),
    next(),
    New = ?M:version(),
    Soft = code:soft_purge(?M),
    go(Name),
    R = receive {came, P, {{V, T, Made, L}, here}} -> {T, ?M:number(Made), erlang:phash2(L)};
                {came, P, {V, T, Made, L}} -> {T, ?M:number(Made), erlang:phash2(L)} after 20000 -> late end,
    Ended = told(1),
    Then = code:soft_purge(?M),
    erlang:garbage_collect(),
    {New - V, Soft, R, Ended =:= [{ended, V, 1}], Then, [{W, N - V} || {W, N, _} <- told(2)]}.

%% Who runs the old version is killed by the purge. Stock closes the library while the function runs
%% on, and ends by a fault: there the result is what it ought to be.
killed(F, Name) ->
    case string:find(erlang:system_info(system_version), "[purlin") of
        nomatch -> {1, true, killed, [{own, 0}, {unload, 0}]};
        _ -> really_killed(F, Name)
    end.

really_killed(F, Name) ->
    {P, V} = caller(Name, F),
    M = monitor(process, P),
    next(),
    spawn(fun() -> receive after 300 -> go(Name) end end),
    Purged = code:purge(?M),
    Why = receive {'DOWN', M, process, P, W} -> W after 20000 -> late end,
    {?M:version() - V, Purged, Why, [{What, N - V} || {What, N, _} <- told(2)]}.

%% Many call while versions come and go.
busy(Callers, Versions) ->
    Before = ?M:uses(),
    First = ?M:version(),
    Me = self(),
    Ps = [spawn_link(fun() -> calls(Me, 0, First, 0) end) || _ <- lists:seq(1, Callers)],
    [begin [receive {ready, P} -> ok end || P <- Ps], next(), purged(), [P ! more || P <- Ps] end
     || _ <- lists:seq(1, Versions)],
    [receive {ready, P} -> P ! stop end || P <- Ps],
    Sums = [receive {made, P, N, V} -> {N, V} end || P <- Ps],
    Made = lists:sum([N || {N, _} <- Sums]),
    Last = ?M:version(),
    Unloads = told(Versions),
    {Last - First, [V || {_, V} <- Sums] =:= [true || _ <- Ps], ?M:uses() - Before - 2 =:= Made,
     lists:sort(Unloads) =:= [{unload, First + I, 0} || I <- lists:seq(0, Versions - 1)]}.

%% Who is about to call the old version keeps it for a moment.
purged() -> case code:soft_purge(?M) of true -> ok; false -> receive after 1 -> purged() end end.

%% Says that it is ready and goes on calling; versions never go back.
calls(Me, N, Version, Round) ->
    Round =:= 0 andalso (Me ! {ready, self()}),
    receive
        more -> calls(Me, N, Version, 0);
        stop -> Me ! {made, self(), N, Version > 0}
    after 0 ->
        V = ?M:version(),
        calls(Me, N + 1, if V >= Version andalso Version > 0 -> V; true -> 0 end, Round + 1)
    end.
