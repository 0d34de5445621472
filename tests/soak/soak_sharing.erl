%% Random sharing: large terms, and parts of them, go at random among processes, tables,
%% persistent_term, timers, closures and exit reasons; holders die, forget, collect and hibernate at
%% random. Whatever comes back anywhere must have the hash that it had at first. `round(Seed)` makes
%% some hundreds of operations and gives their number; nothing of it outlives the process that calls
%% it but what it was told to erase.
-module(soak_sharing).
-export([round/1, holder/1]).

-define(HOLDERS, 6).
-define(KEPT, 8).

round(Seed) ->
    rand:seed(exsss, Seed),
    %% Stock has no such thing.
    catch erlang:system_flag(sharing_threshold, 8192),
    Tables = [ets:new(t, [set, public]), ets:new(t, [ordered_set, public]), ets:new(t, [bag, public, compressed])],
    Holders = [spawn_link(?MODULE, holder, [#{}]) || _ <- lists:seq(1, ?HOLDERS)],
    Terms = [named(made()) || _ <- lists:seq(1, 4)],
    N = 100 + rand:uniform(300),
    {_, Keys} = lists:foldl(fun(_, {Ts, Ks}) -> step(Ts, Ks, Tables, Holders) end, {Terms, []}, lists:seq(1, N)),
    [persistent_term:erase(K) || K <- Keys],
    [begin Ref = monitor(process, P), unlink(P), P ! stop, receive {'DOWN', Ref, _, _, _} -> ok after 60000 -> error(stuck) end end
     || P <- Holders],
    [ets:delete(T) || T <- Tables],
    N.

%% A term with its hash.
named(T) -> {erlang:phash2(T), T}.
check({Hash, T} = Named) ->
    erlang:phash2(T) =:= Hash orelse error({changed, Hash}),
    Named.

%% Around the threshold that was set, and well above.
made() ->
    case rand:uniform(8) of
        1 -> lists:seq(1, rand:uniform(20000));
        2 -> [{I, <<I:64>>} || I <- lists:seq(1, rand:uniform(4000))];
        3 -> maps:from_list([{I, {I, [I]}} || I <- lists:seq(1, rand:uniform(5000))]);
        4 -> list_to_tuple(lists:seq(1, rand:uniform(30000)));
        5 -> binary:copy(<<"sharing">>, rand:uniform(20000));
        6 -> lists:foldl(fun(_, A) -> {A, [A | x]} end, lists:seq(1, rand:uniform(9000)), lists:seq(1, rand:uniform(5)));
        7 -> B = binary:copy(<<7>>, 1000 + rand:uniform(1000)),
             [binary:part(B, I, rand:uniform(500)) || I <- lists:seq(1, rand:uniform(400))];
        8 -> [make_ref(), self(), 1.5, 1 bsl 100, fun() -> ok end | lists:seq(1, rand:uniform(12000))]
    end.

%% Another term around, or a part of, what there is.
changed({_, T}) ->
    case rand:uniform(5) of
        1 -> {T, T};
        2 -> [T | T];
        3 when is_list(T), length(T) > 10 -> lists:nthtail(rand:uniform(length(T) - 1), T);
        3 when is_tuple(T), tuple_size(T) > 0 -> element(rand:uniform(tuple_size(T)), T);
        4 when is_map(T) -> T#{changed => rand:uniform(100)};
        4 when is_list(T) -> try lists:sublist(T, 100) of S -> {S, T} catch error:_ -> hd(T) end;
        _ -> made()
    end.

pick(L) -> lists:nth(rand:uniform(length(L)), L).

step(Terms, Keys, Tables, Holders) ->
    {Hash, T} = Named = pick(Terms),
    case rand:uniform(20) of
        1 -> {keep(named(bounded(changed(Named))), Terms), Keys};
        2 -> {keep(named(made()), Terms), Keys};
        3 -> [P ! {keep, rand:uniform(?KEPT), Named} || P <- Holders], {Terms, Keys};
        4 -> pick(Holders) ! {keep, rand:uniform(?KEPT), Named}, {Terms, Keys};
        5 ->
            P = pick(Holders), Ref = make_ref(),
            P ! {give, self(), Ref, rand:uniform(?KEPT)},
            receive {Ref, none} -> {Terms, Keys}; {Ref, Got} -> {keep(check(Got), Terms), Keys} after 60000 -> error(lost) end;
        6 -> pick(Holders) ! {hand_on, rand:uniform(?KEPT), pick(Holders)}, {Terms, Keys};
        7 -> pick(Holders) ! {forget, rand:uniform(?KEPT)}, {Terms, Keys};
        8 -> pick(Holders) ! pick([collect, hibernate]), {Terms, Keys};
        9 -> ets:insert(pick(Tables), {rand:uniform(?KEPT), Hash, T}), {Terms, Keys};
        10 ->
            case ets:lookup(pick(Tables), rand:uniform(?KEPT)) of
                [] -> {Terms, Keys};
                L -> {_, H, X} = pick(L), {keep(check({H, X}), Terms), Keys}
            end;
        11 -> ets:delete(pick(Tables), rand:uniform(?KEPT)), {Terms, Keys};
        12 ->
            Found = ets:select(pick(Tables), [{{'_', '$1', '$2'}, [], [{{'$1', '$2'}}]}]),
            [check(F) || F <- Found],
            {Terms, Keys};
        13 ->
            K = {?MODULE, self(), rand:uniform(?KEPT)},
            persistent_term:put(K, Named),
            {Terms, lists:usort([K | Keys])};
        14 when Keys =/= [] -> {keep(check(persistent_term:get(pick(Keys))), Terms), Keys};
        15 when Keys =/= [] -> K = pick(Keys), persistent_term:erase(K), {Terms, Keys -- [K]};
        16 ->
            Ref = erlang:start_timer(rand:uniform(5), self(), Named),
            receive {timeout, Ref, Got} -> {keep(check(Got), Terms), Keys} after 60000 -> error(lost) end;
        17 ->
            erlang:cancel_timer(erlang:send_after(100000, pick(Holders), {keep, 1, Named})),
            {Terms, Keys};
        18 ->
            {P, Ref} = spawn_monitor(fun() -> exit(check(Named)) end),
            receive {'DOWN', Ref, _, P, Got} -> {keep(check(Got), Terms), Keys} after 60000 -> error(lost) end;
        19 ->
            %% Ends with messages that it has not read.
            {P, Ref} = spawn_monitor(fun() -> check(Named), receive stop -> ok end end),
            [P ! {I, T} || I <- [1, 2, 3]],
            case rand:uniform(2) of 1 -> exit(P, kill); 2 -> P ! stop end,
            receive {'DOWN', Ref, _, _, _} -> {Terms, Keys} after 60000 -> error(stuck) end;
        _ ->
            case rand:uniform(3) of
                1 -> erlang:garbage_collect();
                2 -> put(kept, Named);
                3 -> erase(kept)
            end,
            {Terms, Keys}
    end.

%% Terms around terms would grow without end.
bounded(T) ->
    case erts_debug:flat_size(T) > 200000 of
        true -> made();
        false -> T
    end.

keep(Named, Terms) -> lists:sublist([Named | Terms], 5).

holder(Kept) ->
    receive
        {keep, K, Named} -> holder(Kept#{K => check(Named)});
        {give, From, Ref, K} -> From ! {Ref, maps:get(K, Kept, none)}, holder(Kept);
        {hand_on, K, To} ->
            case Kept of
                #{K := {_, T}} -> To ! {keep, K, named(part(T))};
                #{} -> ok
            end,
            holder(Kept);
        {forget, K} -> holder(maps:remove(K, Kept));
        collect -> erlang:garbage_collect(), holder(Kept);
        hibernate -> proc_lib:hibernate(?MODULE, holder, [Kept]);
        stop -> ok
    end.

part([_, T | _]) -> T;
part(T) when is_tuple(T), tuple_size(T) > 0 -> element(tuple_size(T), T);
part(T) -> T.
