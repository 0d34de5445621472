%% Exercises everything that the accounts of copies look at: closures with large variables, deep and
%% empty stacks, messages and table objects above and below the sizes that are counted one by one,
%% exit reasons, timers, and code that is purged while its addresses are keys.
%% @stress @shared @fence
-module(explain_accounts).
-export([main/0, deep/2]).

main() ->
    process_flag(trap_exit, true),
    Large = lists:seq(1, 3000),
    Huge = lists:seq(1, 40000),
    [spawned(N, Large, Huge) || N <- lists:seq(1, 40)],
    [messages(Large, Huge) || _ <- lists:seq(1, 20)],
    deep(2000, Large),
    tables(Large, Huge),
    exits(Large, Huge),
    purged(Large),
    small(20000),
    io:format("~p~n", [length(Large) + length(Huge)]).

%% A closure in a closure in a list in a tuple, with improper lists and bits beside it.
spawned(N, Large, Huge) ->
    Inner = fun() -> length(Large) + N end,
    {_, Ref} = spawn_monitor(fun() -> exit({done, Inner(), hd(Huge)}) end),
    receive {'DOWN', Ref, _, _, {done, Sum, 1}} -> Sum = 3000 + N end,
    Me = self(),
    P = spawn_link(?MODULE, deep, [N, {Me, [Inner, fun lists:seq/2 | <<1:3>>], #{Large => Inner}}]),
    receive {'EXIT', P, normal} -> ok end.

deep(0, _) -> ok;
deep(N, T) ->
    case N rem 100 of
        1 -> self() ! {T, N}, receive {_, N} -> ok end;
        _ -> ok
    end,
    ok = deep(N - 1, T).

messages(Large, Huge) ->
    Me = self(),
    P = spawn_link(fun() -> echo(Me) end),
    [begin P ! {say, M}, receive {said, Got} -> true = Got =:= M end end
     || M <- [1, Large, Huge, {Large, Huge}, fun() -> Large end, list_to_tuple(Large), <<0:80000>>, []]],
    P ! stop,
    receive {'EXIT', P, normal} -> ok end.
echo(To) ->
    receive {say, M} -> To ! {said, M}, echo(To); stop -> ok end.

tables(Large, Huge) ->
    [begin
         T = ets:new(t, [Type]),
         true = ets:insert(T, [{1, Large}, {2, Huge}, {3, a}, {4, {Large, Large}}]),
         [{1, Large}] = ets:lookup(T, 1),
         true = lists:member(ets:lookup_element(T, 2, 2), [Huge, [Huge]]),
         [[Large]] = ets:match(T, {1, '$1'}),
         4 = length(ets:tab2list(T)),
         [{4, {Large, Large}}] = ets:take(T, 4),
         ets:delete(T)
     end || Type <- [set, ordered_set, bag]].

exits(Large, Huge) ->
    [begin
         P = spawn_link(fun() -> exit(R) end),
         receive {'EXIT', P, Got} -> true = Got =:= R end,
         Q = spawn_link(fun() -> receive never -> ok end end),
         exit(Q, R),
         receive {'EXIT', Q, Got2} -> true = Got2 =:= R end,
         erlang:send_after(0, self(), {late, R}),
         receive {late, Got3} -> true = Got3 =:= R end
     end || R <- [Large, Huge, {Large, Huge}]],
    put(large, Huge),
    Me = self(),
    {_, Ref} = spawn_monitor(fun() ->
        {dictionary, D} = process_info(Me, dictionary),
        exit({length(proplists:get_value(large, D))})
    end),
    receive {'DOWN', Ref, _, _, {40000}} -> erase(large) end.

%% The same addresses may hold another module's code after a purge.
purged(Large) ->
    [begin
         M = list_to_atom("e_accounts_" ++ integer_to_list(N rem 2)),
         Forms = [{attribute, 1, module, M}, {attribute, 1, export, [{f, 2}]},
                  {function, 1, f, 2, [{clause, 1, [{var, 1, 'P'}, {var, 1, 'T'}], [],
                      [{op, N, '!', {var, N, 'P'}, {var, N, 'T'}}, {atom, 1, ok}]}]}],
         {ok, M, B} = compile:forms(Forms, []),
         {module, M} = code:load_binary(M, atom_to_list(M) ++ ".beam", B),
         ok = M:f(self(), Large),
         receive Large -> ok end,
         true = code:delete(M),
         false = code:purge(M)
     end || N <- lists:seq(1, 6)].

%% So many small messages that samples of them are taken.
small(0) -> ok;
small(N) ->
    self() ! {N, {a, [b]}},
    receive {N, _} -> small(N - 1) end.
