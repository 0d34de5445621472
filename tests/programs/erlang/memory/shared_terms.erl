%% Large terms are sent, captured, stored and released by processes that go on using them.
%% @stress @shared @fence
-module(shared_terms).
-export([main/0]).

main() ->
    %% Stock has no such flag. Where there is one, everything is large.
    Before = (catch erlang:system_flag(sharing_threshold, 1)),
    all(),
    is_integer(Before) andalso erlang:system_flag(sharing_threshold, 100),
    all(),
    is_integer(Before) andalso erlang:system_flag(sharing_threshold, infinity),
    all(),
    is_integer(Before) andalso erlang:system_flag(sharing_threshold, Before),
    all().

all() ->
    [begin io:format("~p ~p~n", [F, erlang:phash2(test(F))]) end
     || F <- [sent, captured, exits, tables, tables_sizes, updates, bags, persistent, persistent_kept, kept, shared, walk, graphs, lengths]].

list(N) -> [{I, {x, I}, <<I:64, 0:800>>} || I <- lists:seq(1, N)].
map(N) -> maps:from_list([{I, [I, I + 1]} || I <- lists:seq(1, N)]).

%% What is reached more than once in a term still is after it was sent or stored, where large terms
%% are shared at all; what is itself below the threshold only within one part above it.
test(graphs) ->
    Threshold = (catch erlang:system_info(sharing_threshold)),
    Shares = is_integer(Threshold),
    [begin
         L = lists:seq(1, N),
         Deep = lists:foldl(fun(_, A) -> {A, [A | x]} end, L, lists:seq(1, 6)),
         T = {L, {L}, [L | L], Deep, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, L, <<N:8000>>}},
         Pid = spawn_link(fun() -> receive {From, X} -> From ! {self(), X} end end),
         Pid ! {self(), T},
         Sent = receive {Pid, X} -> X end,
         Tab = ets:new(t, []),
         ets:insert(Tab, {1, T}),
         [{1, Stored}] = ets:lookup(Tab, 1),
         ets:delete(Tab),
         persistent_term:put({?MODULE, graphs}, T),
         Kept = persistent_term:get({?MODULE, graphs}),
         persistent_term:erase({?MODULE, graphs}),
         [begin
              {A, {B}, [C | D], Nested, Wide} = Y,
              {T =:= Y,
               What =:= kept orelse Shares =:= false orelse
                   lists:all(fun({G, H}) -> erts_debug:same(G, H) end,
                             [{A, B}, {A, element(13, Wide)} |
                              [P || 2 * N >= Threshold, P <- [{A, C}, {A, D}, {A, innermost(Nested)}]]])}
          end || {What, Y} <- [{sent, Sent}, {stored, Stored}, {kept, Kept}]]
     end || N <- [300, 3000, 6000]];
%% How long shared lists are, of which parts, longer ones and improper ones are asked for as well,
%% by one process after another; and those that come to lie where others were.
test(lengths) ->
    Self = self(),
    [begin
         L = lists:seq(1, N),
         Lists = [L, tl(L), [a | L], [a, b | L], lists:nthtail(N div 2, L), [L, L], [], list(20)],
         F = fun() ->
                 Self ! {self(), [{length(X), length([z | X]), try length(X ++ y) catch error:badarg -> no end} || X <- Lists]}
             end,
         Ps = [spawn_link(F) || _ <- lists:seq(1, 3)],
         [R, R, R] = [receive {P, R} -> R end || P <- Ps],
         R
     end || N <- [999, 1000, 1001, 5000, 20000]];
%% The same list to several processes in several wrappings, while the sender collects.
test(sent) ->
    L = list(60), M = map(60),
    Self = self(),
    Ps = [spawn_link(fun() -> Self ! {self(), echo([])} end) || _ <- lists:seq(1, 3)],
    [begin P ! {a, L}, P ! {b, {c, [L, M]}}, erlang:garbage_collect(), P ! M, P ! [1, 2 | L], P ! stop end || P <- Ps],
    Rs = [receive {P, R} -> R end || P <- Ps],
    [{a, L}, {b, {c, [L, M]}}, M, [1, 2 | L]] = hd(Rs),
    Rs;
test(captured) ->
    L = list(60), M = map(60),
    Self = self(),
    Ps = [spawn_link(fun() -> Self ! {self(), I, length(L), map_size(M), lists:nth(I, L)} end) || I <- lists:seq(1, 10)],
    [receive {P, A, B, C, D} -> {A, B, C, D} end || P <- Ps];
test(exits) ->
    L = list(60),
    {_, R} = spawn_monitor(fun() -> exit({why, L}) end),
    process_flag(trap_exit, true),
    P = spawn_link(fun() -> exit({why, L, L}) end),
    A = receive {'DOWN', R, _, _, {why, X}} -> X end,
    B = receive {'EXIT', P, {why, Y, Y}} -> Y end,
    L = A, L = B,
    B;
test(tables) ->
    L = list(60), M = map(60),
    [begin
         T = ets:new(t, [Kind]),
         true = ets:insert(T, [{1, L}, {2, M, L}, {3, small}, {L, 4}]),
         [{1, L}] = ets:lookup(T, 1),
         erlang:garbage_collect(),
         [{1, L}] = ets:lookup(T, 1),
         true = ets:insert(T, hd(ets:lookup(T, 1))),
         [{L, 4}] = ets:lookup(T, L),
         L = ets:lookup_element(T, 2, 3),
         [[V]] = ets:match(T, {2, '_', ['_', '$1' | '_']}),
         [{_, W}] = ets:select(T, [{{2, '$1', '$2'}, [], [{{'$1', {hd, '$2'}}}]}]),
         [{2, M, L}] = ets:take(T, 2),
         false = ets:insert_new(T, {1, M}),
         S = lists:sort(ets:tab2list(T)),
         ets:delete(T, 1),
         F = ets:foldl(fun(O, A) -> [O | A] end, [], T),
         ets:delete(T),
         {V, W, S, lists:sort(F)}
     end || Kind <- [set, ordered_set]];
test(tables_sizes) ->
    T = ets:new(t, []),
    L = lists:seq(1, 5000),
    A = ets:info(T, memory),
    ets:insert(T, {1, L, {L}}),
    B = ets:info(T, memory),
    ets:insert(T, {1, hd(ets:lookup(T, 1)), 2}),
    C = ets:info(T, memory),
    ets:insert(T, {1, L}),
    D = ets:info(T, memory),
    ets:delete(T, 1),
    E = ets:info(T, memory),
    {B - A, C - A, D - A, E - A};
test(updates) ->
    T = ets:new(t, []),
    L = list(60),
    ets:insert(T, {k, 1, L}),
    2 = ets:update_counter(T, k, {2, 1}),
    true = ets:update_element(T, k, {2, L}),
    [{k, L, L}] = ets:lookup(T, k),
    true = ets:update_element(T, k, {3, 1 bsl 100}),
    true = ets:update_element(T, k, [{2, 0}, {3, [a | L]}]),
    1 = ets:select_replace(T, [{{k, '$1', '$2'}, [], [{{k, '$2', '$1'}}]}]),
    ets:tab2list(T);
test(bags) ->
    [begin
         T = ets:new(t, [Kind]),
         L = list(60),
         [ets:insert(T, {k, X}) || X <- [L, tl(L), L, hd(L)]],
         ets:delete_object(T, {k, tl(L)}),
         ets:tab2list(T)
     end || Kind <- [bag, duplicate_bag]];
test(persistent) ->
    Self = self(),
    Ps = [spawn_link(fun() -> Self ! {self(), readers(200, 0)} end) || _ <- lists:seq(1, 2)],
    [begin persistent_term:put(?MODULE, {I, lists:duplicate(2000, I)}), I rem 10 =:= 0 andalso persistent_term:erase(?MODULE) end
     || I <- lists:seq(1, 200)],
    [receive {P, ok} -> ok end || P <- Ps],
    persistent_term:put(?MODULE, map(300)),
    M = persistent_term:get(?MODULE),
    persistent_term:erase(?MODULE),
    {M, persistent_term:get(?MODULE, none)};
%% A value that was given up long ago is still good where it is used.
test(persistent_kept) ->
    persistent_term:put(?MODULE, list(300)),
    Self = self(),
    P = spawn_link(fun() ->
        L = persistent_term:get(?MODULE),
        Self ! {self(), got},
        receive go -> erlang:garbage_collect(), Self ! {self(), erlang:phash2(L)} end
    end),
    receive {P, got} -> ok end,
    [persistent_term:put(?MODULE, lists:seq(I, 3000)) || I <- lists:seq(1, 20)],
    persistent_term:erase(?MODULE),
    P ! go,
    receive {P, H} -> H end;
%% A small part of what was received is kept.
test(kept) ->
    Self = self(),
    P = spawn_link(fun() ->
        Parts = [receive {I, L} -> lists:nth(I, L) end || I <- lists:seq(1, 20)],
        erlang:garbage_collect(),
        erlang:garbage_collect(),
        Self ! {self(), Parts, hd(Parts)}
    end),
    [P ! {I, list(50 * I)} || I <- lists:seq(1, 20)],
    receive {P, Parts, One} -> One = hd(Parts), Parts end;
test(shared) ->
    T = lists:foldl(fun(_, A) -> {A, A} end, list(2), lists:seq(1, 8)),
    P = spawn_link(fun() -> receive {From, X} -> From ! {self(), X, [X, X]} end end),
    P ! {self(), T},
    receive {P, T, [T, T] = R} -> R end;
%% Terms that processes change and pass on, parts of old ones in new ones, by a fixed series of
%% numbers.
test(walk) ->
    Self = self(),
    Ps = [spawn_link(fun() -> walker(Self, []) end) || _ <- lists:seq(1, 3)],
    [begin
         P = lists:nth(1 + erlang:phash2(I, 3), Ps),
         P ! {step, self(), I},
         receive {P, Term} -> lists:nth(1 + erlang:phash2({I}, 3), Ps) ! {take, Term} end
     end || I <- lists:seq(1, 150)],
    [begin P ! {stop, self()}, receive {P, S} -> erlang:phash2(S) end end || P <- Ps].

walker(Owner, S) ->
    receive
        {take, T} -> walker(Owner, lists:sublist([T | S], 4));
        {step, From, I} ->
            T = case I rem 5 of
                    0 -> list(I rem 30);
                    1 -> {S};
                    2 -> #{I => S, list => list(3)};
                    3 -> [element(1, X) || X <- S, is_tuple(X)];
                    4 -> [hd(X) || X <- S, is_list(X), X =/= []]
                end,
            From ! {self(), small(T)},
            I rem 7 =:= 0 andalso erlang:garbage_collect(),
            walker(Owner, S);
        {stop, From} -> From ! {self(), S}
    end.
small(T) -> case erts_debug:flat_size(T) > 5000 of true -> erlang:phash2(T); false -> T end.

echo(L) -> receive stop -> lists:reverse(L); M -> echo([M | L]) end.

readers(0, _) -> ok;
readers(N, _) ->
    case persistent_term:get(?MODULE, none) of
        none -> readers(N - 1, 0);
        {I, L} when is_list(L) -> true = lists:all(fun(X) -> X =:= I end, L), readers(N - 1, I);
        _ -> readers(N - 1, 0)
    end.

innermost({X, [_ | x]}) -> innermost(X);
innermost(X) -> X.
