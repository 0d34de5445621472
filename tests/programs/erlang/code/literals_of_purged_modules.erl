%% Modules are reloaded and purged while processes hold parts of their literals. Each part stays
%% intact, and unreferenced literals are freed. Each kind of holder has a version of its own.
%% @stress
-module(literals_of_purged_modules).
-export([main/0, with_argument/2, sleeper/1]).

-define(VERSIONS, 20).

main() ->
    Bins = list_to_tuple([compile_version(V) || V <- lists:seq(1, ?VERSIONS)]),
    ets:new(?MODULE, [public, named_table]),
    unload(load(element(1, Bins))),
    Kinds = [dict, stack, built, register, queue, hibernated, matched, region, closure, argument, old, reason, map, table, part,
             persistent, timer],
    Held = [begin load(element(V, Bins)), H = hold(K, V), unload(ok), {K, V, H} end || {K, V} <- number(Kinds)],
    %% What went would be overwritten by these.
    churn(Bins, 40),
    io:format("~p~n", [[{K, get_held(K, H, V) =:= expected(K, V)} || {K, V, H} <- Held]]),
    [erlang:garbage_collect(H) || {_, _, H} <- Held, is_pid(H)],
    churn(Bins, 40),
    io:format("~p~n", [[K || {K, V, H} <- Held, K =/= timer, get_held(K, H, V) =/= expected(K, V)]]),
    [settle() || _ <- lists:seq(1, 3)],
    Before = erlang:memory(total),
    churn(Bins, 400),
    io:format("~p~n", [shrinks(Before, 10)]).

number(L) -> lists:zip(L, lists:seq(2, length(L) + 1)).

value(V) -> {[{V, I, integer_to_list(V * I), I + 0.5} || I <- lists:seq(1, 150)], #{version => V, 1 bsl 70 => [V]}, binary:copy(<<V>>, 50), binary:copy(<<V>>, 200)}.

compile_version(V) ->
    F = fun(N, E) -> {function, 1, N, 0, [{clause, 1, [], [], [E]}]} end,
    Forms = [{attribute, 1, module, old_literals}, {attribute, 1, export, [{all, 0}, {big, 0}]},
             F(all, erl_parse:abstract(value(V))), F(big, {integer, 1, (1 bsl 62) + V})],
    {ok, old_literals, Bin} = compile:forms(Forms, []),
    Bin.

load(Bin) ->
    {module, old_literals} = code:load_binary(old_literals, "old_literals.beam", Bin),
    ok.

unload(ok) ->
    true = code:delete(old_literals),
    false = code:purge(old_literals).

churn(Bins, N) ->
    [begin
         V = 1 + I rem ?VERSIONS,
         load(element(V, Bins)),
         {_, M} = spawn_monitor(fun() -> exit(old_literals:all() =:= value(V)) end),
         receive {'DOWN', M, _, _, true} -> ok end,
         unload(ok)
     end || I <- lists:seq(1, N)].

all() -> old_literals:all().
big() -> old_literals:big().

%% A process that holds a part of the literals, made so that nobody else does.
hold(queue, _) ->
    by_other(fun() -> P = spawn(fun() -> receive {get, From} -> receive {part, X} -> From ! {self(), X} end end end), P ! {part, all()}, P end);
hold(argument, _) -> by_other(fun() -> spawn(?MODULE, with_argument, [all(), x]) end);
hold(closure, _) -> by_other(fun() -> A = all(), spawn(fun() -> serve(fun() -> A end) end) end);
hold(region, _) ->
    by_other(fun() -> P = spawn(fun() -> receive {hold, L} -> serve(fun() -> L end) end end), P ! {hold, [[all(), X] || X <- lists:seq(1, 2000)]}, P end);
hold(reason, _) ->
    %% The reason stays in the queue.
    Came = fun W() -> case process_info(self(), message_queue_len) of {_, 0} -> receive after 1 -> W() end; _ -> ok end end,
    by_other(fun() ->
        S = self(),
        P = spawn(fun() ->
            {_, M} = spawn_monitor(fun() -> exit({all(), big()}) end),
            Came(),
            S ! {self(), ready},
            serve(fun() -> receive {'DOWN', M, _, _, R} -> self() ! {'DOWN', M, x, x, R}, R end end)
        end),
        receive {P, ready} -> P end
    end);
hold(table, V) -> by_other(fun() -> ets:insert(?MODULE, {V, all()}), none end);
hold(part, V) -> by_other(fun() -> ets:insert(?MODULE, {V, a, element(2, all()), hd(element(1, all()))}), none end);
hold(persistent, V) -> by_other(fun() -> persistent_term:put({?MODULE, V}, all()), none end);
hold(timer, _) -> Self = self(), by_other(fun() -> erlang:start_timer(100000000, Self, all()) end);
hold(Kind, _) ->
    Self = self(),
    P = spawn(fun() -> holder(Kind, fun(X) -> Self ! {self(), ready}, X end) end),
    receive {P, ready} -> P end.

by_other(F) ->
    {_, M} = spawn_monitor(fun() -> exit({done, F()}) end),
    receive {'DOWN', M, _, _, {done, X}} -> X end.

with_argument(A, x) -> serve(fun() -> A end).

holder(dict, R) -> put(dict, all()), R(x), serve(fun() -> get(dict) end);
holder(stack, R) -> A = all(), R(x), receive {get, From} -> From ! {self(), A}, From ! {self(), A} end, receive {get, From2} -> From2 ! {self(), A} end;
holder(built, R) -> A = [{x, element(1, all())}, element(3, all())], R(x), serve(fun() -> A end);
holder(register, R) -> put(dict, {lists:last(element(1, all())), big()}), R(x), serve(fun() -> get(dict) end);
holder(map, R) -> put(dict, #{a => element(2, all())}), R(x), serve(fun() -> get(dict) end);
holder(matched, R) ->
    <<_:8, B1/binary>> = element(3, all()),
    <<_:4, B2:800/bits, _/bits>> = element(4, all()),
    put(dict, {B1, B2}),
    R(x),
    serve(fun() -> get(dict) end);
holder(old, R) -> put(dict, [all()]), erlang:garbage_collect(), erlang:garbage_collect(), R(x), serve(fun() -> get(dict) end);
holder(hibernated, R) -> put(dict, all()), R(x), erlang:hibernate(?MODULE, sleeper, [element(1, all())]).

sleeper(A) -> serve(fun() -> {A, get(dict)} end).

serve(F) -> receive {get, From} -> From ! {self(), F()}, serve(F) end.

get_held(table, _, V) -> [{V, X}] = ets:lookup(?MODULE, V), X;
get_held(part, _, V) -> [{V, a, X, Y}] = ets:lookup(?MODULE, V), {X, Y};
get_held(persistent, _, V) -> persistent_term:get({?MODULE, V});
get_held(timer, T, _) -> is_integer(erlang:cancel_timer(T));
get_held(queue, P, V) -> Self = self(), P ! {get, Self}, receive {P, X} -> put({queue, V}, X), X after 100 -> get({queue, V}) end;
get_held(stack, P, _) -> P ! {get, self()}, receive {P, X} -> receive {P, X} -> X after 0 -> X end end;
get_held(region, P, _) -> P ! {get, self()}, receive {P, L} -> {lists:usort([A || [A, _] <- L]), length(L)} end;
get_held(_, P, _) -> P ! {get, self()}, receive {P, X} -> X end.

expected(Kind, V) ->
    {List, Map, Small, Large} = All = value(V),
    case Kind of
        part -> {Map, hd(List)};
        timer -> true;
        region -> {[All], 2000};
        reason -> {All, (1 bsl 62) + V};
        built -> [{x, List}, Small];
        register -> {lists:last(List), (1 bsl 62) + V};
        map -> #{a => Map};
        matched -> <<_:8, B1/binary>> = Small, <<_:4, B2:800/bits, _/bits>> = Large, {B1, B2};
        old -> [All];
        hibernated -> {List, All};
        _ -> All
    end.

settle() -> receive after 300 -> erlang:garbage_collect() end.
%% The memory of four hundred versions would be more than ten megabytes.
shrinks(Before, 0) -> {grown, erlang:memory(total) - Before};
shrinks(Before, N) ->
    settle(),
    case erlang:memory(total) - Before of
        D when D < 3000000 -> returned;
        _ -> shrinks(Before, N - 1)
    end.
