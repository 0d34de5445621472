%% What the programs of the hunt are made with. Every value has a recipe, a small term from which it
%% can be built anew: `chk` compares a value, which may have been sent, stored and taken apart
%% since, with a fresh one. So damage is found at the value itself, whoever was faster than whom,
%% and without another runtime to compare with.
%%
%% Recipes: `{Kind, N}` with a number (see `k/2`), or how the value was made of others or taken out
%% of them (see `v/1`). A fault is told on standard error and ends the runtime with status 3.
-module(hunt_v).
-export([setup/3, opaque/0, id/1, ids/1, idb/1, idl/1, v/1, chk/2, chkl/1, chk0/2, fault/2, scaled/1, part/2, counted/0]).
-export([via/3, wrap/3, deliver/6, junk/2, drain/1, mail/2, keep/2, worker/4, server/1, server/2, woken/1, stop/1, grow/1, collect/2,
         reload/0, reload/1, table/2, vary/0, again/1,
         same/1, echoed/1, numbers/3, chunks/2, whole_chunks/2, big/5, lit/1, wide/2]).

%% ---- Values ----

%% Which program, where the module of its literals is, and how large values are, in hundredths.
setup(Module, Literals, Size) ->
    persistent_term:put(hunt_module, Module),
    persistent_term:put(hunt_literals, Literals),
    persistent_term:put(hunt_size, Size),
    persistent_term:put(hunt_versions, [versions(M) || M <- [Module, Literals]]),
    persistent_term:put(hunt_count, counters:new(4, [write_concurrency])),
    T = ets:new(hunt_fixed, [public]),
    Sleeping = fun() -> receive after infinity -> ok end end,
    persistent_term:put(hunt_fixed, {list_to_tuple([spawn(Sleeping) || _ <- lists:seq(1, 7)]),
                                     list_to_tuple([make_ref() || _ <- lists:seq(1, 7)]),
                                     {T, atomics:new(3, []), counters:new(2, []), ets:match_spec_compile([{'_', [], ['$_']}]),
                                      ets:new(x, []), atomics:new(1, [])}}),
    persistent_term:put(hunt_stored, list_to_tuple([k(K, K * 97) || K <- [1, 2, 7, 9, 10, 12, 14, 15, 17, 18, 20, 21, 22, 24, 28, 29]])).

%% Nobody compiles what depends on this.
opaque() -> persistent_term:get(hunt_opaque, none).

scaled(N) ->
    case persistent_term:get(hunt_size) of
        100 -> N;
        S -> N * S div 100
    end.

mix(I) -> erlang:phash2({I, hunt}, 1 bsl 27).

%% Recipes by number: of any kind, the large ones more seldom; of small values; of bit strings; of
%% lists.
id(I) -> case get(hunt_kind) of undefined -> any(I); K -> {K, mix(I)} end.
ids(I) -> wanted(small(I), [0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 17, 18, 20, 22, 24]).
idb(I) -> wanted(bits(I), [17, 18, 19, 20, 21, 22, 23]).
idl(I) -> wanted(list(I), [7, 8, 10, 28, 31, 32]).

%% The kind that is wanted, if it is one of those that may be.
wanted({_, N} = R, Kinds) ->
    K = get(hunt_kind),
    case lists:member(K, Kinds) of
        true -> {K, N};
        false -> R
    end.

any(I) ->
    case mix(I) of
        N when N rem 1024 < 8 -> {27, N bsr 10};
        N when N rem 1024 < 24 -> {16, N bsr 10};
        N when N rem 1024 < 40 -> {19, N bsr 10};
        N when N rem 1024 < 80 -> {13, N bsr 10};
        N -> {element(1 + (N bsr 10) rem 31, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 17, 18, 20, 21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 32, 33, 34}), N bsr 4}
    end.
small(I) -> N = mix(I + 1), {element(1 + N rem 16, {0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 17, 18, 20, 22, 24}), N bsr 4}.
bits(I) ->
    case mix(I + 2) of
        N when N rem 64 =:= 0 -> {19, N bsr 6};
        N -> {element(1 + (N bsr 6) rem 6, {17, 18, 20, 21, 23, 18}), N bsr 5}
    end.
list(I) -> N = mix(I + 3), {element(1 + N rem 6, {7, 8, 10, 28, 31, 32}), N bsr 4}.

v({K, N}) when is_integer(K) -> k(K, N);
v({hd, R}) -> hd(v(R));
v({tl, R}) -> tl(v(R));
v({el, I, R}) -> element(I, v(R));
v({key, K, R}) -> map_get(K, v(R));
v({bits, Off, Len, R}) -> <<_:Off, A:Len/bits, _/bits>> = v(R), A;
v({rest, Off, R}) -> <<_:Off, A/bits>> = v(R), A;
v({int, Off, Len, R}) -> <<_:Off, A:Len, _/bits>> = v(R), A;
v({call, R}) -> (v(R))();
v({mul, C, R}) -> C * v(R);
v({t, Rs}) -> list_to_tuple([v(R) || R <- Rs]);
v({l, Rs}) -> [v(R) || R <- Rs];
v({c, A, B}) -> [v(A) | v(B)];
v({m, L}) -> maps:from_list([{K, v(R)} || {K, R} <- L]);
v({b, Rs}) -> << <<(v(R))/bits>> || R <- Rs >>;
v({fn, R}) -> captured(v(R));
v({q, T}) -> T;
v({part, N, R}) -> part(N, v(R));
v({lit, N}) -> lit(N rem 16);
v({wide, Size, L}) -> wide(Size, [{I, v(R)} || {I, R} <- L]);
v({ap, M, F, Rs}) -> apply(M, F, [v(R) || R <- Rs]).

captured(V) -> fun() -> V end.

%% What programs have as literals, made anew.
lit(N) ->
    case N rem 8 of
        0 -> lists:seq(N, N + 40);
        1 -> {idle, [N, {N}]};
        2 -> #{N => [N], {N} => <<N:600>>, 3 => "map"};
        3 -> bytes(N, 150);
        4 -> {(N + 1) bsl 200, N / 7, [[N] | x]};
        5 -> "text" ++ [N];
        6 -> list_to_tuple(lists:seq(N, N + 100));
        7 -> bytes(N, 20)
    end.

%% A record of so many elements, of which few are set.
wide(Size, L) -> erlang:make_tuple(Size, undefined, [{1, list_to_atom("wide_" ++ integer_to_list(Size))} | L]).

%% Some part of a value.
part(N, [X | _]) when N rem 3 =:= 0 -> X;
part(_, [_ | T]) -> T;
part(N, T) when is_tuple(T), tuple_size(T) > 0 -> element(1 + N rem tuple_size(T), T);
part(N, M) when is_map_key(N rem 5, M) -> map_get(N rem 5, M);
part(N, B) when byte_size(B) > 2 -> S = N rem (byte_size(B) - 1), <<_:3, A:S/binary, _/bits>> = B, A;
part(_, F) when is_function(F, 0) -> F();
part(_, X) -> X.

k(0, N) -> N - 60000;
k(1, N) -> ((N + 1) bsl (64 + N rem 900)) bxor (N * 12345678901);
k(2, N) -> N / 7;
k(3, N) -> element(1 + N rem 5, {a, true, undefined, [], 'an atom'});
k(4, N) -> element(1 + N rem 7, element(1, persistent_term:get(hunt_fixed)));
k(5, N) -> element(1 + N rem 7, element(2, persistent_term:get(hunt_fixed)));
k(6, N) -> element(1 + N rem 6, element(3, persistent_term:get(hunt_fixed)));
k(7, N) -> [N, {N}, [N | a], N + 1];
k(8, N) -> lists:seq(N, N + scaled(N rem 3000));
k(9, N) -> [N, {N, N}, [] | N];
k(10, N) -> lists:foldl(fun(I, A) -> [I, A] end, [], lists:seq(1, 3 + scaled(N rem 700)));
k(11, N) -> {N, [N], {a, N / 3}};
k(12, N) -> list_to_tuple(lists:seq(N, N + 239));
k(13, N) -> list_to_tuple([{I, N} || I <- lists:seq(1, 300 + scaled(4700))]);
k(14, N) -> #{1 => N, 2 => [N], {3} => {N}, a => <<N:64>>};
k(15, N) -> maps:from_list([{I, {I, N}} || I <- lists:seq(1, 33 + N rem 68)]);
k(16, N) -> maps:from_list([{I, [N]} || I <- lists:seq(1, 33 + scaled(5000))]);
k(17, N) -> bytes(N, N rem 65);
k(18, N) -> bytes(N, 65 + N rem 250);
k(19, N) -> bytes(N, 400 + scaled(100000));
k(20, N) -> L = 10 + N rem 50, B = bytes(N, L + 4), <<_:16, A:L/binary, _/binary>> = B, A;
k(21, N) -> L = 10 + N rem 400, B = bytes(N, L + 100), <<_:72, A:L/binary, _/binary>> = B, A;
k(22, N) -> L = 1 + N rem 900, B = bytes(N, 130), <<_:3, A:L/bits, _/bits>> = B, A;
k(23, N) -> appended(1 + N rem 90, N, <<>>);
k(24, N) -> A = [N], B = bytes(N, N rem 90), fun() -> {N, A, B} end;
k(25, N) -> (persistent_term:get(hunt_literals)):lit(N rem 16);
k(26, N) -> element(1 + N rem 16, persistent_term:get(hunt_stored));
k(27, N) ->
    case N rem 3 of
        0 -> [{I, [N]} || I <- lists:seq(1, 200 + scaled(6500))];
        1 -> list_to_tuple(lists:seq(N, N + 300 + scaled(34000)));
        2 -> B = bytes(N, 300), {[<<B/binary, I>> || I <- lists:seq(1, 200 + scaled(3000))], [binary:part(B, 0, I rem 300) || I <- lists:seq(1, 200 + scaled(5000))]}
    end;
k(28, N) -> [<<(N + I):(8 * (60 + I))>> || I <- lists:seq(1, N rem 20)];
k(29, N) -> {k(N rem 24, N), [k((N + 5) rem 24, N + 1) | k(17, N)], #{1 => k(18, N), 2 => k(9, N)}};
k(30, N) -> element(1 + N rem 3, {outside(<<88, 119, 4, "o@oo", 0, 0, 0, 90, 0, 0, 0, 0, 0, 0, 0, 1>>),
                                  outside(<<90, 0, 3, 119, 4, "o@oo", 0, 0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11>>),
                                  outside(<<89, 119, 4, "o@oo", 0, 0, 0, 7, 0, 0, 0, 1>>)});
k(31, N) -> L = 100 + N rem 300, B = bytes(N, L), [begin <<_:I/binary, A:50/binary, _/bits>> = B, A end || I <- lists:seq(0, min(L - 50, 40))];
k(32, N) -> [element(1 + I rem 2, {I / 3, (N + I) bsl 70}) || I <- lists:seq(1, N rem 60)];
k(33, N) -> {rec, N, undefined, [{N, x}], <<N:100/unit:8>>, N * 1.0, undefined, N};
k(34, N) -> lists:duplicate(20, {"text of ", N, <<"äö"/utf8>>}).

outside(B) -> binary_to_term(<<131, B/binary>>).

bytes(N, L) -> binary:copy(binary:part(binary:copy(<<(N rem 251), (N rem 241), (N rem 239), 1, (N rem 7), 5, (N rem 255)>>, L div 7 + 1), 0, L)).

appended(0, _, Acc) -> Acc;
appended(I, N, Acc) -> appended(I - 1, N, <<Acc/binary, (N + I):24>>).

%% What the compiler knows nothing of.
same(X) -> X.
echoed(X) -> S = self(), R = make_ref(), spawn(fun() -> S ! {R, X} end), receive {R, Y} -> Y after 600000 -> fault(lost, {q, R}) end.

%% What steps compute, in another way: the numbers from Top down to K, of so many bits; the pieces
%% of a bit string, the rest of it as the last, or none; a tuple of small terms with two values in
%% it.
numbers(K, Top, W) -> << <<N:W>> || N <- lists:seq(Top, K, -1) >>.
chunks(W, B) -> S = bit_size(B) div W * W, <<_:S, A/bits>> = B, whole_chunks(W, B) ++ [A].
whole_chunks(W, B) -> [begin S = I * W, <<_:S, A:W/bits, _/bits>> = B, A end || I <- lists:seq(0, bit_size(B) div W - 1)].
big(At, Size, Kind, V, X) ->
    list_to_tuple([case K of
                       At -> {K, V};
                       5 -> {K, X};
                       _ -> case Kind of 1 -> {K}; 2 -> [K, K]; 3 -> X; 4 -> K; 5 -> <<K:32>> end
                   end || K <- lists:seq(1, Size)]).

%% ---- Checks ----

again(R) -> v(R).

%% Counted: what the program says in the end depends on these alone.
chk(V, R) ->
    chk0(V, R),
    C = persistent_term:get(hunt_count),
    counters:add(C, 1, 1),
    counters:add(C, 2, erlang:phash2(R)),
    case R of
        {K, _} when is_integer(K), K < 3; K =:= 7; K =:= 11; K =:= 14; K >= 17, K =< 22 -> counters:add(C, 3, erlang:phash2(V));
        _ -> ok
    end.
chkl(L) -> [chk(V, R) || {R, V} <- L], ok.

%% Not counted: for what depends on who was faster.
chk0(V, R) ->
    case again(R) of
        E when E =:= V -> ok;
        _ -> fault(V, R)
    end.

counted() -> C = persistent_term:get(hunt_count), [counters:get(C, I) || I <- [1, 2, 3]].

%% What isn't as it must be may be no term at all: so it is told last, and not for long.
fault(V, R) ->
    io:format(standard_error, "fault in ~w step ~w: ~P~n", [persistent_term:get(hunt_module), get(hunt_step), R, 40]),
    spawn_opt(fun() -> receive after 3000 -> halt(3) end end, [{priority, max}]),
    io:format(standard_error, " trace ~P~n", [element(2, process_info(self(), current_stacktrace)), 60]),
    io:format(standard_error, " for ~P~n got ~P~n", [v(R), 30, V, 30]),
    halt(3).

%% ---- Ways for a value to come ----

pick(T) -> element(rand:uniform(tuple_size(T)), T).
table(E, N) -> element(1 + N rem tuple_size(map_get(tables, E)), map_get(tables, E)).
server(E, N) -> element(1 + N rem tuple_size(map_get(servers, E)), map_get(servers, E)).

via(0, _, R) -> v(R);
via(1, _, R) -> put({via, 1}, v(R)), grow(3000), erase({via, 1});
via(2, E, R) ->
    T = table(E, erlang:phash2(R)),
    K = make_ref(),
    ets:insert(T, {K, v(R), R}),
    grow(1000),
    [{_, V, _}] = ets:lookup(T, K),
    ets:delete(T, K),
    V;
via(3, _, R) ->
    K = {hunt, self()},
    persistent_term:put(K, {v(R)}),
    {V} = persistent_term:get(K),
    V;
via(4, _, R) -> binary_to_term(term_to_binary(v(R)));
via(5, E, R) ->
    S = server(E, erlang:phash2(R)),
    Ref = make_ref(),
    S ! {hold, Ref, R, v(R)},
    grow(500),
    S ! {give, self(), Ref},
    receive {Ref, V} -> V after 600000 -> fault(lost, R) end;
via(6, _, R) ->
    S = self(),
    {P, M} = spawn_monitor(fun() -> put(kept, v(R)), S ! {self(), ready}, receive stop -> ok end end),
    receive {P, ready} -> ok end,
    {dictionary, D} = process_info(P, dictionary),
    P ! stop,
    receive {'DOWN', M, _, _, normal} -> ok end,
    {_, V} = lists:keyfind(kept, 1, D),
    V;
via(7, _, R) ->
    T = erlang:start_timer(erlang:phash2(R, 3), self(), [v(R)]),
    receive {timeout, T, [V]} -> V after 600000 -> fault(lost, R) end;
via(8, _, R) ->
    {_, M} = spawn_monitor(fun() -> exit({why, v(R)}) end),
    receive {'DOWN', M, _, _, {why, V}} -> V after 600000 -> fault(lost, R) end;
via(9, _, R) ->
    {S, Ref, W} = {self(), make_ref(), v(R)},
    spawn(fun() -> grow(500), S ! {Ref, W} end),
    receive {Ref, V} -> V after 600000 -> fault(lost, R) end;
via(10, _, R) ->
    {S, W} = {self(), v(R)},
    {P, M} = spawn_opt(fun() -> receive {S, go} -> ok end, S ! {self(), process_info(self(), messages)} end,
                       [monitor, {message_queue_data, element(1 + erlang:phash2(R, 2), {on_heap, off_heap})}]),
    P ! {held, W},
    P ! {S, go},
    receive {P, {messages, L}} -> ok after 600000 -> L = fault(lost, R) end,
    receive {'DOWN', M, _, _, normal} -> ok end,
    {_, V} = lists:keyfind(held, 1, L),
    V;
via(N, E, R) -> via(N rem 11, E, R).

%% ---- Messages ----

wrap(0, Tag, V) -> {Tag, V};
wrap(1, Tag, V) -> {V, Tag};
wrap(2, Tag, V) -> #{tag => Tag, v => V};
wrap(3, Tag, V) -> [Tag | V];
wrap(4, Tag, V) -> [V, Tag];
wrap(5, Tag, V) -> {Tag, {x, [V, V]}, V};
wrap(6, Tag, V) -> #{Tag => V};
wrap(7, Tag, V) -> {Tag, V, lists:seq(1, 300)};
wrap(8, Tag, V) -> {1.5, Tag, V, v({12, 5})};
wrap(9, Tag, V) -> <<Tag:32, V/bits>>.

%% A message to the process itself, made and sent in one of many ways.
deliver(0, _, Tag, Shape, _, V) -> self() ! wrap(Shape, Tag, V);
deliver(1, E, Tag, Shape, R, _) -> server(E, Shape + erlang:phash2(R)) ! {say, self(), Tag, Shape, R};
deliver(2, _, Tag, Shape, _, V) -> S = self(), spawn(fun() -> S ! wrap(Shape, Tag, V) end);
deliver(3, _, Tag, Shape, R, V) -> erlang:send_after(erlang:phash2(R, 3), self(), wrap(Shape, Tag, V));
deliver(4, E, Tag, Shape, R, V) -> server(E, 0) ! {pass, [server(E, 1), server(E, 2), server(E, 1)], self(), Tag, Shape, R, {passed, [V, {V}]}};
deliver(5, _, Tag, Shape, _, V) -> alias([reply]) ! wrap(Shape, Tag, V);
deliver(6, _, Tag, Shape, _, V) -> spawn_opt(erlang, send, [self(), wrap(Shape, Tag, V)], [{min_heap_size, 1000}, {fullsweep_after, 0}]);
deliver(7, E, Tag, Shape, R, _) -> S = self(), server(E, 2) ! {hold, Tag, R, v(R)}, server(E, 2) ! {tell, S, Tag, Shape};
deliver(8, _, Tag, Shape, R, _) ->
    S = self(),
    spawn(fun() -> L = [v({7, 1}), v(R)], erlang:garbage_collect(), [_, V] = L, S ! wrap(Shape, Tag, V), exit({gone, V}) end);
deliver(N, E, Tag, Shape, R, V) -> deliver(N rem 9, E, Tag, Shape, R, V).

%% Messages that nobody waits for until the queue is drained.
junk(I, N) when N > 0 ->
    self() ! case mix(I + N) rem 8 of
                 0 -> <<"junk", I:32, (v({17, I}))/bits>>;
                 1 -> {junk, {21, I}, v({21, I})};
                 2 -> {junk, {18, I}, v({18, I})};
                 3 -> R = ids(I + N), {junk, R, v(R)};
                 4 -> R = id(I + N), {junk, R, v(R)};
                 5 -> <<"junk", I:32, (v({18, I}))/bits>>;
                 _ -> {junk, {11, N}, {N, [N], {a, N / 3}}}
             end,
    junk(I, N - 1);
junk(_, _) -> ok.

%% A value that another worker takes when it likes.
mail(E, I) ->
    R = id(I),
    Ws = map_get(workers, E),
    N = 1 + I rem tuple_size(Ws),
    element(N, Ws) ! {mail, R, v(R)},
    put({hunt_sent, N}, get({hunt_sent, N}) + 1).

drain(K) ->
    receive
        {mail, R, [A | B] = V} -> chk(V, R), put(hunt_mails, get(hunt_mails) + 1), drain(later(K, [{{hd, R}, A}, {{tl, R}, B}]));
        {mail, R, <<A:200/bits, B/bits>> = V} -> chk(V, R), put(hunt_mails, get(hunt_mails) + 1), drain(later(K, [{{bits, 0, 200, R}, A}, {{rest, 200, R}, B}]));
        {mail, R, V} -> chk(V, R), put(hunt_mails, get(hunt_mails) + 1), drain(later(K, [{R, V}]));
        {junk, R, V} -> chk0(V, R), drain(K);
        <<"junk", I:32, B/bits>> when byte_size(B) =< 64 -> chk0(B, {17, I}), drain(later(K, [{{17, I}, B}]));
        <<"junk", I:32, B/bits>> -> chk0(B, {18, I}), drain(later(K, [{{18, I}, B}]))
    after 0 ->
        [chk0(V, R) || {R, V} <- K],
        ok
    end.
later(K, L) -> lists:sublist(L ++ K, 12).

%% ---- Processes ----

%% Holds values of others, sends them on, and collects, sleeps or grows now and then.
server(E) -> serve(E, 0, #{}).

serve(E, N, M) ->
    case mix(N) rem 24 of
        0 -> erlang:garbage_collect();
        1 -> erlang:garbage_collect(self(), [{type, minor}]);
        2 -> grow(20000);
        3 -> process_flag(message_queue_data, element(1 + N rem 2, {on_heap, off_heap}));
        4 -> process_flag(fullsweep_after, element(1 + N rem 3, {0, 3, 65535}));
        5 -> self() ! {wake, make_ref()}, erlang:hibernate(?MODULE, woken, [{E, N + 1, M}]);
        _ -> ok
    end,
    receive
        {say, To, Tag, Shape, R} -> To ! wrap(Shape, Tag, v(R)), serve(E, N + 1, M);
        {hold, Key, R, V} -> serve(E, N + 1, M#{Key => {R, V}});
        {give, To, Key} ->
            #{Key := {R, V}} = M,
            chk0(V, R),
            To ! {Key, V},
            serve(E, N + 1, maps:remove(Key, M));
        {tell, To, Key, Shape} ->
            {{R, V}, M1} = maps:take(Key, M),
            chk0(V, R),
            To ! wrap(Shape, Key, V),
            serve(E, N + 1, M1);
        {pass, [P | Ps], To, Tag, Shape, R, {passed, [V | {_}]}} ->
            P ! {pass, Ps, To, Tag, Shape, R, {passed, [V | {[V]}]}},
            serve(E, N + 1, M#{pass => {R, V}});
        {pass, [P | Ps], To, Tag, Shape, R, {passed, [V, X]}} ->
            P ! {pass, Ps, To, Tag, Shape, R, {passed, [V | {[X, lists:seq(1, 50)]}]}},
            serve(E, N + 1, M#{pass => {R, V}});
        {pass, [], To, Tag, Shape, R, {passed, [V | _]}} ->
            chk0(V, R),
            To ! wrap(Shape, Tag, V),
            serve(E, N + 1, M);
        {wake, _} -> serve(E, N, M);
        {stop, From, Ref} -> [chk0(V, R) || {_, {R, V}} <- maps:to_list(M)], From ! {Ref, stopped}
    end.

woken({E, N, M}) -> serve(E, N, M).

stop(P) -> Ref = make_ref(), P ! {stop, self(), Ref}, receive {Ref, stopped} -> ok after 600000 -> fault(stuck, {q, P}) end.

worker(Main, Me, N, Seed) ->
    process_flag(trap_exit, true),
    rand:seed(exsss, Seed),
    receive {start, E} -> ok end,
    put(hunt_mails, 0),
    [put({hunt_sent, I}, 0) || I <- lists:seq(1, tuple_size(map_get(workers, E)))],
    Steps = (map_get(module, E)):steps(),
    work(N, E#{me => Me}, Steps, []),
    Main ! {done, self(), [get({hunt_sent, I}) || I <- lists:seq(1, tuple_size(map_get(workers, E)))]},
    receive {expect, All} -> rest(All, 600) end,
    Main ! {finished, self()}.

%% The mails of all others.
rest(All, Left) ->
    drain([]),
    case get(hunt_mails) of
        All -> ok;
        N when Left =:= 0 -> fault({mails, N}, {q, All});
        _ -> receive after 20 -> rest(All, Left - 1) end
    end.

work(0, _, _, Kept) -> [chk0(V, R) || {R, V} <- Kept];
work(N, E, Steps, Kept) ->
    I = rand:uniform(1 bsl 24),
    K = case map_get(module, E) of
            hunt_0 ->
                %% Each step with each kind of value.
                At = N * 4 + map_get(me, E),
                put(hunt_kind, At div Steps rem 35),
                1 + At rem Steps;
            _ -> rand:uniform(Steps)
        end,
    put(hunt_step, {K, I}),
    L = (map_get(module, E)):step(K, I, E),
    case rand:uniform(12) of
        1 -> mail(E, I);
        2 -> junk(I, rand:uniform(12));
        3 -> drain([]);
        4 -> grow(rand:uniform(scaled(100000) + 100));
        5 -> vary();
        6 -> reload(I);
        _ -> ok
    end,
    {Place, Other} = {rand:uniform(8), rand:uniform(8)},
    case get({kept, Other}) of
        {R, V} -> chk0(V, R);
        undefined -> ok
    end,
    case L of
        [{PR, PV} = P | _] when Place < 5 ->
            %% Terms around terms would grow without end.
            case erts_debug:flat_size(PR) < 200 andalso erts_debug:flat_size(PV) < 100000 of
                true -> put({kept, Place}, P);
                false -> ok
            end;
        _ -> ok
    end,
    work(N - 1, E, Steps, keep(L, Kept)).

keep(L, Kept) -> kept(L ++ Kept, 7).
kept([{R, V} = P | L], N) when N > 0 ->
    case erts_debug:flat_size(R) < 200 andalso erts_debug:flat_size(V) < 100000 of
        true -> [P | kept(L, N - 1)];
        false -> kept(L, N)
    end;
kept(L, _) -> [chk0(V, R) || {R, V} <- L], [].

%% Other sizes and kinds of heaps.
vary() ->
    case rand:uniform(10) of
        1 -> erlang:garbage_collect();
        2 -> erlang:garbage_collect(self(), [{type, minor}]);
        3 -> process_flag(fullsweep_after, pick({0, 1, 10, 65535}));
        4 -> process_flag(min_heap_size, pick({233, 1000, 50000}));
        5 -> process_flag(message_queue_data, pick({on_heap, off_heap}));
        6 -> process_flag(min_bin_vheap_size, pick({100, 46422}));
        7 -> process_flag(priority, pick({low, normal, high}));
        8 -> receive after 1 -> ok end;
        9 -> erlang:yield();
        10 -> [erlang:garbage_collect(P) || P <- [rand_process()]]
    end.

rand_process() -> L = processes(), lists:nth(length(L) - rand:uniform(4), L).

collect(1, _) -> erlang:garbage_collect();
collect(2, _) -> erlang:garbage_collect(self(), [{type, minor}]);
collect(_, _) -> ok.

%% Makes and forgets so many words.
grow(N) when N < 64 -> ok;
grow(N) -> same(lists:seq(1, N div 2)), ok.

%% The modules of literals and of steps are loaded anew, each time with their literals at other
%% places. Of the steps no code is purged that somebody runs or has a fun of.
reload(I) when I rem 3 =:= 0 -> reload();
reload(_) -> ok.

reload() ->
    case ets:update_counter(hunt_reload, lock, 1) of
        1 ->
            [case code:soft_purge(M) of
                 true -> {module, M} = code:load_binary(M, File, element(1 + ets:update_counter(hunt_reload, turn, 1) rem 3, Versions));
                 false -> ok
             end || {M, File, Versions} <- persistent_term:get(hunt_versions)],
            ets:insert(hunt_reload, {lock, 0});
        _ -> ok
    end.

%% A module as the generator left it, thrice.
versions(M) ->
    File = code:which(M),
    {M, File, list_to_tuple([begin {ok, B} = file:read_file(filename:rootname(File) ++ E), B end || E <- [".beam", ".1", ".2"]])}.
