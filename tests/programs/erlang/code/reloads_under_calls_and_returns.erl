%% A module is reloaded and purged repeatedly while processes call it by name, return into it from
%% waits and deep calls, and catch its exceptions. @stress @shared @fence @seconds 120
-module(reloads_under_calls_and_returns).
-export([main/0]).

-define(M, reloaded_m).
-define(ROUNDS, 30).

main() ->
    All = list_to_tuple([version(N) || N <- [1, 2, 3]]),
    {module, ?M} = code:load_binary(?M, "none", element(1, All)),
    Me = self(),
    Kinds = [callers, returners, deep, catchers, holders],
    Workers = [{spawn_monitor(fun() -> worker(Kind, Me) end), Kind} || Kind <- Kinds, _ <- [1, 2]],
    %% Soft purges leave those alone that are inside; they are then asked to leave.
    Purged = reload(All, [P || {{P, _}, _} <- Workers], ?ROUNDS, 0),
    [P ! stop || {{P, _}, _} <- Workers],
    Ends = [receive {'DOWN', R, process, P, Reason} -> {Kind, Reason} after 60000 -> {Kind, late} end ||
        {{P, R}, Kind} <- Workers],
    io:format("~p~n", [lists:usort([{K, element(1, R)} || {K, R} <- Ends])]),
    io:format("~p~n", [[{K, R} || {K, R} <- Ends, not is_tuple(R) orelse element(2, R) < 1]]),
    io:format("purges ~p~n", [Purged]),
    killed(All),
    true = code:delete(?M),
    code:purge(?M),
    io:format("~p~n", [catch ?M:tag(1)]).

%% Loads the next version once no process is in the old one.
reload(_, _, 0, Purged) -> Purged;
reload(All, Workers, N, Purged) ->
    [W ! leave || W <- Workers],
    soft_purge(Workers),
    {module, ?M} = code:load_binary(?M, "none", element(N rem 3 + 1, All)),
    erlang:yield(),
    reload(All, Workers, N - 1, Purged + 1).

soft_purge(Workers) ->
    case code:soft_purge(?M) of
        true -> ok;
        false -> [W ! leave || W <- Workers], erlang:yield(), soft_purge(Workers)
    end.

%% Processes in old code, which a purge ends: in a wait, and in a loop, and one that is about to
%% return into it.
killed(All) ->
    Ps = [spawn_monitor(F) || F <- [
        fun() -> ?M:wait_for(never) end,
        fun() -> ?M:spin(0) end,
        fun() -> ?M:around(fun() -> receive never -> ok end end) end,
        fun() -> ?M:around(fun() -> spin(0) end) end]],
    timer:sleep(50),
    {module, ?M} = code:load_binary(?M, "none", element(2, All)),
    io:format("soft ~p~n", [code:soft_purge(?M)]),
    io:format("hard ~p~n", [code:purge(?M)]),
    io:format("~p~n", [[receive {'DOWN', R, process, P, Reason} -> Reason after 60000 -> late end || {P, R} <- Ps]]).

spin(N) -> spin(N + 1).

worker(Kind, Main) ->
    exit({ok, work(Kind, Main, 0)}).

work(Kind, Main, N) ->
    receive
        stop -> N;
        leave -> work(Kind, Main, N)
    after 0 ->
        ok = turn(Kind, N),
        work(Kind, Main, N + 1)
    end.

%% Each answer is of one version, whole: calls within the module stay in it.
turn(callers, N) ->
    {V, N, V} = ?M:tag(N),
    true = lists:member(V, [1, 2, 3]),
    ok;
turn(returners, _) ->
    {V, X, V} = ?M:around(fun() -> receive leave -> left; stop -> self() ! stop, left after 1 -> none end end),
    true = lists:member(X, [left, none]),
    ok;
turn(deep, N) ->
    Depth = 50 + N rem 50,
    {V, L} = ?M:deep(Depth, fun() -> erlang:yield(), [] end),
    L = lists:duplicate(Depth, V),
    ok;
turn(catchers, N) ->
    {V, {caught, N}, V} = ?M:guarded(fun() -> erlang:yield(), throw(N) end),
    ok;
turn(holders, N) ->
    {V, Literal, F} = ?M:things(),
    erlang:yield(),
    {literal, V, [V, "text"]} = Literal,
    %% The fun may be of a version that is gone by now; the call says so, or is right.
    try {V, N} = F(N) of _ -> ok
    catch error:{badfun, F} -> ok; error:undef -> ok
    end.

version(N) ->
    S = integer_to_list(N),
    Text = ["-module(" ++ atom_to_list(?M) ++ ").",
        "-export([tag/1, around/1, deep/2, guarded/1, things/0, wait_for/1, spin/1]).",
        "v() -> " ++ S ++ ".",
        "tag(X) -> A = v(), {A, X, v()}.",
        "around(F) -> A = v(), X = F(), {A, X, v()}.",
        "deep(N, F) -> L = rest(N, F), {v(), L}.",
        "rest(0, F) -> F(); rest(N, F) -> L = rest(N - 1, F), [v() | L].",
        "guarded(F) -> A = v(), X = try F() catch throw:T -> {caught, T} end, {A, X, v()}.",
        "things() -> A = v(), {A, {literal, " ++ S ++ ", [" ++ S ++ ", \"text\"]}, fun(X) -> {A, X} end}.",
        "wait_for(X) -> receive X -> v() end.",
        "spin(N) -> spin(N + 1)."],
    Forms = [begin {ok, Ts, _} = erl_scan:string(L), {ok, F} = erl_parse:parse_form(Ts), F end || L <- Text],
    {ok, ?M, B} = compile:forms(Forms, [binary]),
    B.
