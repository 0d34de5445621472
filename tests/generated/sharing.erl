%% Random programs that pass random terms, with parts in common, among processes: by message, alias,
%% name, closure, argument, exit, timer, table, `persistent_term` and what is told of a process.
%% Each process carries out its own commands; whoever waits does so for a message that stands before
%% in the order of all commands, so they always end, and what each has got doesn't depend on who was
%% faster. What each keeps is told as hashes, a line a process.
%%
%%   erl -noshell -run sharing main SEED COUNT
-module(sharing).
-export([main/1, worker/3, woken/4]).

-import(arguments, [pick/1, many/2]).

-define(PROCESSES, 5).
-define(SLOTS, 6).

main([Seed, Count]) ->
    rand:seed(exsss, list_to_integer(Seed)),
    logger:set_primary_config(level, none),
    Steps = 120,
    [program(N, Steps) || N <- lists:seq(1, max(1, list_to_integer(Count) div 5))],
    halt(0).

program(N, Steps) ->
    process_flag(trap_exit, true),
    T = ets:new(sharing, [pick([set, ordered_set]), public | many(1, fun() -> pick([compressed, {read_concurrency, true}, {write_concurrency, true}]) end)]),
    Names = [list_to_atom("sharing_" ++ integer_to_list(I)) || I <- lists:seq(1, ?PROCESSES)],
    Main = self(),
    Ps = [spawn_opt(?MODULE, worker, [Main, Name, T], [link, {message_queue_data, pick([on_heap, off_heap])}]) || Name <- Names],
    [receive {P, Alias} -> put(P, Alias) end || P <- Ps],
    put(tag, 0),
    [[P ! {command, C} || {P, C} <- commands(Ps, Names)] || _ <- lists:seq(1, Steps)],
    [P ! {command, stop} || P <- Ps],
    [io:format("~w.~w ~w~n", [N, I, result(P)]) || {I, P} <- lists:zip(lists:seq(1, ?PROCESSES), Ps)],
    ets:delete(T),
    [persistent_term:erase(K) || {{sharing, _} = K, _} <- persistent_term:get()].

result(P) ->
    receive
        {result, P, R} -> receive {'EXIT', P, _} -> R end;
        {'EXIT', P, {R, [{M, F, A, _} | _]}} -> {failed, erlang:phash2(R), M, F, A}
    after 60000 -> timeout
    end.

slot() -> rand:uniform(?SLOTS).
tag() -> T = get(tag) + 1, put(tag, T), T.

%% What processes are to do, in an order in which it can be done.
commands(Ps, Names) ->
    P = pick(Ps),
    Q = pick(Ps),
    case rand:uniform(22) of
        N when N < 4 -> [{P, {make, slot(), slot(), rand:uniform(1 bsl 40)}}];
        4 -> [{P, {join, slot(), slot(), slot(), rand:uniform(6)}}];
        5 -> [{P, {part, slot(), slot(), rand:uniform(1000)}}];
        N when N < 9 ->
            To = case rand:uniform(3) of 1 -> Q; 2 -> {name, lists:nth(index(Q, Ps), Names)}; 3 -> {alias, get(Q)} end,
            T = tag(),
            [{P, {send, slot(), To, T}}, {Q, {take, T, slot()}}];
        9 -> S = slot(), Tags = [{R, tag()} || R <- Ps], [{P, {send, S, R, T}} || {R, T} <- Tags] ++ [{R, {take, T, slot()}} || {R, T} <- Tags];
        10 -> K = rand:uniform(5), T = tag(), [{P, {insert, slot(), {K, T}}}, {P, {send, slot(), Q, T}}, {Q, {take, T, slot()}}, {Q, {lookup, {K, T}, slot(), rand:uniform(4)}}];
        11 -> T = tag(), [{P, {store, slot(), T}}, {P, {send, slot(), Q, T}}, {Q, {take, T, slot()}}, {Q, {fetch, T, slot()}}];
        12 -> [{P, {crash, slot(), slot(), pick([exit, error, throw, signal, link, shutdown])}}];
        13 -> [{P, {timer, slot(), slot(), pick([send_after, start_timer])}}];
        14 -> [{P, {child, slot(), slot(), pick([closure, argument, monitor, request, mfa])}}];
        15 -> [{P, {told, slot(), slot(), pick([dictionary, messages])}}];
        16 -> [{P, pick([collect, minor, hibernate])}];
        17 -> [{P, {drop, slot()}}];
        18 -> [{P, {update, slot(), slot(), rand:uniform(50)}}];
        19 -> [{P, {keep, slot()}}];
        20 -> [{P, {refuse, slot(), Q}}];
        21 -> [{P, {external, slot(), slot()}}];
        22 -> [{P, {same, slot(), slot()}}]
    end.

index(X, [X | _]) -> 1;
index(X, [_ | L]) -> 1 + index(X, L).

worker(Main, Name, T) ->
    register(Name, self()),
    Main ! {self(), alias()},
    next(Main, T, {0, []}).

%% Slots are in the dictionary; the accumulator is what is told in the end.
next(Main, T, Acc) ->
    receive
        {command, stop} -> Main ! {result, self(), told(Acc)};
        {command, hibernate} -> self() ! {wake, Main}, erlang:hibernate(?MODULE, woken, [Main, T, Acc, x]);
        {command, C} -> next(Main, T, noted(do(C, T), Acc))
    end.
woken(Main, T, Acc, x) -> receive {wake, Main} -> next(Main, T, Acc) end.

noted(none, Acc) -> Acc;
noted(V, {N, L}) -> {N + 1, [erlang:phash2(V) | L]}.

told({N, L}) ->
    Slots = [get({slot, I}) || I <- lists:seq(1, ?SLOTS)],
    {N, erlang:phash2(L), [{erlang:phash2(S), erts_debug:flat_size(S), erlang:external_size(S)} || S <- Slots]}.

slot(I) -> get({slot, I}).
slot(I, V) -> put({slot, I}, limited(V)), none.

%% So that terms don't grow beyond all bounds.
limited(V) -> case erts_debug:flat_size(V) > 60000 of true -> {large, erlang:phash2(V)}; false -> V end.

do({make, I, J, Seed}, _) ->
    Old = get(rand_seed),
    rand:seed(exsss, Seed),
    V = fresh(slot(J)),
    case Old of undefined -> erase(rand_seed); _ -> put(rand_seed, Old) end,
    slot(I, V);
do({join, I, J, K, How}, _) ->
    {A, B} = {slot(J), slot(K)},
    slot(I, case How of
                1 -> {A, B, A};
                2 -> [A, B | A];
                3 -> #{1 => A, 2 => B, {3, 1} => [A]};
                4 -> [A, [B, A], {B}];
                5 -> fun() -> {A, B} end;
                6 -> maps:from_list([{X, A} || X <- lists:seq(1, 40)] ++ [{0, B}])
            end);
do({part, I, J, N}, _) -> slot(I, part(slot(J), N));
do({send, I, To, T}, _) ->
    Message = {tagged, T, slot(I)},
    case To of
        {name, Name} -> Name ! Message;
        {alias, A} -> A ! Message;
        _ -> To ! Message
    end,
    none;
do({take, T, I}, _) -> receive {tagged, T, V} -> slot(I, V) end;
do({insert, I, K}, T) -> ets:insert(T, {K, slot(I), [slot(I), 1]}), none;
do({lookup, K, I, How}, T) ->
    slot(I, case How of
                1 -> [{_, V, _}] = ets:lookup(T, K), V;
                2 -> ets:lookup_element(T, K, 3);
                3 -> [[V]] = ets:match(T, {K, '$1', '_'}), V;
                4 -> [V] = ets:select(T, [{{K, '$1', '$2'}, [], [{{'$2', '$1'}}]}]), V
            end);
do({store, I, T}, _) -> persistent_term:put({sharing, T}, {slot(I), slot(I)}), none;
do({fetch, T, I}, _) -> {V, V} = persistent_term:get({sharing, T}), (T band 1) =:= 1 andalso persistent_term:erase({sharing, T}), slot(I, V);
do({crash, I, J, How}, _) ->
    V = slot(I),
    {P, R} = spawn_monitor(fun() ->
                                   case How of
                                       exit -> exit({why, V});
                                       error -> error({why, V});
                                       throw -> throw({why, V});
                                       shutdown -> exit({shutdown, V});
                                       _ -> receive never -> ok end
                                   end
                           end),
    case How of
        signal -> exit(P, {why, V});
        link -> spawn(fun() -> link(P), exit({why, V}) end);
        _ -> ok
    end,
    receive
        {'DOWN', R, process, P, {{nocatch, {why, W}}, _}} -> slot(J, W);
        {'DOWN', R, process, P, {{why, W}, _}} -> slot(J, W);
        {'DOWN', R, process, P, {_, W}} -> slot(J, W)
    end;
do({timer, I, J, start_timer}, _) -> R = erlang:start_timer(1, self(), {x, slot(I)}), receive {timeout, R, {x, V}} -> slot(J, V) end;
do({timer, I, J, send_after}, _) -> R = make_ref(), erlang:send_after(1, self(), {R, slot(I)}), receive {R, V} -> slot(J, V) end;
do({child, I, J, How}, _) ->
    {V, S, R} = {slot(I), self(), make_ref()},
    F = fun() -> erlang:garbage_collect(), S ! {R, [V]} end,
    case How of
        closure -> spawn(F);
        argument -> spawn(erlang, apply, [fun(X) -> S ! {R, [X]} end, [V]]);
        monitor -> {P, M} = spawn_monitor(F), receive {'DOWN', M, process, P, normal} -> ok end;
        request -> spawn_request(F, [{reply, no}]);
        mfa -> spawn(erlang, send, [S, {R, [V]}])
    end,
    receive {R, [W]} -> slot(J, W) end;
do({told, I, J, What}, _) ->
    {V, S} = {slot(I), self()},
    {P, M} = spawn_monitor(fun() -> put(kept, V), S ! {self(), ready}, receive stop -> ok end end),
    receive {P, ready} -> ok end,
    P ! {held, V},
    case process_info(P, What) of
        {dictionary, D} -> slot(J, proplists:get_value(kept, D));
        {messages, [{held, W}]} -> slot(J, W)
    end,
    P ! stop,
    %% It waits for `stop` behind the other message.
    receive {'DOWN', M, process, P, R} -> R =:= normal end;
do(collect, _) -> erlang:garbage_collect(), none;
do(minor, _) -> erlang:garbage_collect(self(), [{type, minor}]), none;
do({drop, I}, _) -> erase({slot, I}), none;
do({update, I, J, N}, _) ->
    V = slot(J),
    slot(I, case slot(I) of
                M when is_map(M) -> M#{N => V, {N, 0} => [V]};
                L when is_list(L), length(L) < 200 -> [V | L];
                T when is_tuple(T), tuple_size(T) > 0, tuple_size(T) < 20 -> erlang:append_element(setelement(1, T, V), N);
                B when is_binary(B) -> <<B/binary, N>>;
                X -> {X, V}
            end);
do({keep, I}, _) -> slot(I);
do({refuse, I, Q}, _) ->
    %% To nobody: an alias that is gone, a name that nobody has, a process that has ended.
    A = alias(), unalias(A),
    A ! slot(I),
    catch sharing_nobody ! slot(I),
    {P, M} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', M, process, P, normal} -> ok end,
    P ! {slot(I), Q},
    none;
do({external, I, J}, _) -> slot(J, binary_to_term(term_to_binary(slot(I))));
do({same, I, J}, _) -> {slot(I) =:= slot(J), slot(I) < slot(J)}.

part([X | _], N) when N rem 3 =:= 0 -> X;
part([_ | T], _) -> T;
part(T, N) when is_tuple(T), tuple_size(T) > 0 -> element(1 + N rem tuple_size(T), T);
part(M, N) when is_map(M), map_size(M) > 0 -> lists:nth(1 + N rem map_size(M), [V || {_, V} <- lists:sort(maps:to_list(M))]);
part(B, N) when is_binary(B), byte_size(B) > 2 -> binary:part(B, 1, N rem (byte_size(B) - 1));
part(F, _) when is_function(F, 0) -> F();
part(X, _) -> X.

%% Keys of maps are numbers: with atoms the shape of a large map, and so its size, would depend on
%% the numbers of atoms. Terms of some hundred words to some ten thousand, or small; with what is
%% there already as a part.
fresh(Old) ->
    case rand:uniform(14) of
        1 -> lists:seq(1, rand:uniform(5000));
        2 -> [{I, float(I), Old} || I <- lists:seq(1, rand:uniform(100))];
        3 -> maps:from_list([{I, {I, <<I:64>>}} || I <- lists:seq(1, rand:uniform(300))]);
        4 -> binary:copy(<<"0123456789abcdef">>, rand:uniform(5000));
        5 -> B = binary:copy(<<"xyz">>, 100 + rand:uniform(1000)), N = 100 + rand:uniform(500), <<_:13/bits, R:N/bits, _/bits>> = B, {R, B, R};
        6 -> list_to_tuple(lists:seq(1, rand:uniform(2000)));
        7 -> lists:foldl(fun(I, A) -> case I rem 3 of 0 -> {A, A}; 1 -> [A | I]; 2 -> #{5 => A} end end, Old, lists:seq(1, rand:uniform(5)));
        8 -> X = lists:duplicate(rand:uniform(300), Old), [X, {X}, #{6 => X}];
        9 -> [1 bsl I || I <- lists:seq(1, rand:uniform(300))];
        10 -> F = fun(Y) -> {Y, Old} end, {F, F(1), fun lists:map/2};
        11 -> lists:foldl(fun(I, A) -> [I, A] end, [], lists:seq(1, rand:uniform(3000)));
        12 -> maps:from_list([{{I, Old_}, [I]} || Old_ <- [erlang:phash2(Old)], I <- lists:seq(1, rand:uniform(40))]);
        13 -> [<<I:800>> || I <- lists:seq(1, rand:uniform(50))];
        14 -> pick([a, 1, 2.5, <<>>, [], {}, #{}, "short", {a, Old}, [Old], <<1:3>>])
    end.
