%% Large terms that go from process to process, or to tables and back. The first half is where
%% sharing pays; the second, from `stream_100` on, is where it could cost: terms that are used once,
%% and copies that would have been cheap.
-module(sharing).
-export([names/0, expected/1]).
-export([three_in_sequence/0, three_tasks/0, closures/0, state_to_callers/0, ets_large_object/0, persistent_large/0,
         persistent_replaced/0, many_receivers/0, shared_inside/0]).
-export([stream_100/0, stream_1000/0, stream_10000/0, stream_100000/0, small_from_large_heap/0,
         quarter_of_heap_each_time/0, growing_ping_pong/0, sender_dies/0, never_read/0, tasks_10k/0]).
-export([init/1, handle_call/3, handle_cast/2]).

names() ->
    [three_in_sequence, three_tasks, closures, state_to_callers, ets_large_object, persistent_large, persistent_replaced,
     many_receivers, shared_inside,
     stream_100, stream_1000, stream_10000, stream_100000, small_from_large_heap, quarter_of_heap_each_time,
     growing_ping_pong, sender_dies, never_read, tasks_10k].

expected(three_in_sequence) -> 3;
expected(three_tasks) -> 3;
expected(closures) -> 100000000;
expected(state_to_callers) -> 1000;
expected(ets_large_object) -> 2000;
expected(persistent_large) -> 2000;
expected(persistent_replaced) -> 20;
expected(many_receivers) -> 20000000;
expected(shared_inside) -> 20;
expected(stream_100) -> 200000;
expected(stream_1000) -> 40000;
expected(stream_10000) -> 4000;
expected(stream_100000) -> 400;
expected(small_from_large_heap) -> 200000;
expected(quarter_of_heap_each_time) -> 60;
expected(growing_ping_pong) -> 4000;
expected(sender_dies) -> 1000;
expected(never_read) -> 4000;
expected(tasks_10k) -> 300.

%% What differs in a list of a million integers, how often each is there, and the list in another
%% order: one after another, and in three processes that each get the list and send their results
%% back.
three_in_sequence() -> length([F() || F <- three(1000000)]).
three_tasks() -> in_processes(three(1000000)).
tasks_10k() -> lists:sum([in_processes(three(10000)) || _ <- lists:seq(1, 100)]).
three(N) ->
    L = numbers(N, 1, []),
    [fun() -> sets:to_list(sets:from_list(L, [{version, 2}])) end,
     fun() -> lists:foldl(fun(X, M) -> maps:update_with(X, fun(K) -> K + 1 end, 1, M) end, #{}, L) end,
     fun() -> [X || {_, X} <- lists:keysort(1, [{erlang:phash2(X), X} || X <- L])] end].
in_processes(Fs) ->
    Self = self(),
    Ps = [spawn_link(fun() -> Self ! {self(), F()} end) || F <- Fs],
    length([receive {P, R} -> R end || P <- Ps]).

%% A hundred processes whose closure has a list of a million in it.
closures() ->
    L = lists:seq(1, 1000000),
    Self = self(),
    [spawn(fun() -> Self ! length(L) end) || _ <- lists:seq(1, 100)],
    lists:sum([receive N -> N end || _ <- lists:seq(1, 100)]).

%% A server that gives its state, a map of 50,000 pairs, to a thousand callers.
init(State) -> {ok, State}.
handle_call(state, _, S) -> {reply, S, S}.
handle_cast(_, S) -> {noreply, S}.
state_to_callers() ->
    {ok, P} = gen_server:start_link(?MODULE, maps:from_list([{I, {I, value}} || I <- lists:seq(1, 50000)]), []),
    N = callers(1000, 0, P),
    gen_server:stop(P),
    N.
callers(0, N, _) -> N;
callers(K, N, P) ->
    {_, R} = spawn_monitor(fun() -> #{7 := {7, value}} = gen_server:call(P, state) end),
    receive {'DOWN', R, _, _, normal} -> callers(K - 1, N + 1, P) end.

%% An object of 100,000 words looked up two thousand times.
ets_large_object() ->
    T = ets:new(t, []),
    ets:insert(T, {key, lists:seq(1, 50000)}),
    N = lists:foldl(fun(_, A) -> [{key, [F | _]}] = ets:lookup(T, key), A + F end, 0, lists:seq(1, 2000)),
    ets:delete(T),
    N.

persistent_large() ->
    persistent_term:put(?MODULE, lists:seq(1, 50000)),
    N = lists:foldl(fun(_, A) -> [F | _] = persistent_term:get(?MODULE), A + F end, 0, lists:seq(1, 2000)),
    persistent_term:erase(?MODULE),
    N.

%% Twenty values one after another, while a thousand processes are there.
persistent_replaced() ->
    Ps = [spawn_link(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 1000)],
    N = length([begin persistent_term:put(?MODULE, {I, lists:seq(1, 50000)}), {I, _} = persistent_term:get(?MODULE) end
                || I <- lists:seq(1, 20)]),
    persistent_term:erase(?MODULE),
    [P ! stop || P <- Ps],
    N.

%% One list to two hundred processes.
many_receivers() ->
    L = numbers(100000, 1, []),
    Self = self(),
    Ps = [spawn_link(fun() -> receive {x, M} -> Self ! length(M) end end) || _ <- lists:seq(1, 200)],
    [P ! {x, L} || P <- Ps],
    lists:sum([receive N -> N end || _ <- Ps]).

%% A term of 20 levels, each of which refers to the next one twice: a million words if copied
%% without care.
shared_inside() ->
    T = lists:foldl(fun(_, A) -> [A | A] end, [], lists:seq(1, 20)),
    P = spawn_link(fun() -> receive {From, X} -> From ! depth(X, 0) end end),
    P ! {self(), T},
    receive N -> N end.
depth([], N) -> N;
depth([_ | T], N) -> depth(T, N + 1).

%% Messages of so many words each, made anew, to a process that looks at their first element.
stream_100() -> stream(200000, 50).
stream_1000() -> stream(40000, 500).
stream_10000() -> stream(4000, 5000).
stream_100000() -> stream(400, 50000).
stream(Times, Length) ->
    P = spawn_link(fun() -> first_elements(0) end),
    streamed(Times, Length, P),
    P ! {self(), stop},
    receive {P, N} -> N end.
streamed(0, _, _) -> ok;
%% Waits for the other now and then: otherwise it is the queue that is measured.
streamed(K, Length, P) when K rem 16 =:= 0 ->
    P ! {self(), wait}, receive go -> ok end,
    P ! lists:seq(1, Length), streamed(K - 1, Length, P);
streamed(K, Length, P) -> P ! lists:seq(1, Length), streamed(K - 1, Length, P).
first_elements(N) ->
    receive
        [F | _] -> first_elements(N + F);
        {From, wait} -> From ! go, first_elements(N);
        {From, stop} -> From ! {self(), N}
    end.

%% A process with a million words of its own that sends 200,000 messages of ten words.
small_from_large_heap() ->
    L = numbers(500000, 1, []),
    P = spawn_link(fun() -> first_elements(0) end),
    streamed(200000, 5, P),
    P ! {self(), stop},
    receive {P, N} -> _ = hd(L), N end.

%% The worst case of freezing: fresh terms that are just large enough a part of the heap to be moved
%% out of it, so that the rest is collected each time.
quarter_of_heap_each_time() ->
    L = numbers(500000, 1, []),
    P = spawn_link(fun() -> first_elements(0) end),
    streamed(60, 200000, P),
    P ! {self(), stop},
    receive {P, N} -> _ = hd(L), N end.

%% A list that goes back and forth and is longer by ten each time.
growing_ping_pong() ->
    P = spawn_link(fun longer/0),
    N = length(grow(P, 200, [])),
    unlink(P), exit(P, kill),
    N.
grow(_, 0, L) -> L;
grow(P, K, L) -> P ! {self(), L}, receive {P, M} -> grow(P, K - 1, lists:map(fun(X) -> X + 1 end, lists:seq(1, 10) ++ M)) end.
longer() -> receive {From, L} -> From ! {self(), lists:map(fun(X) -> X + 1 end, lists:seq(1, 10) ++ L)}, longer() end.

%% A thousand processes that each send a list of 10,000 and end.
sender_dies() ->
    Self = self(),
    one_by_one(1000, 0, fun() -> Self ! lists:seq(1, 10000) end).
one_by_one(0, N, _) -> N;
one_by_one(K, N, F) -> spawn(F), receive [1 | _] -> one_by_one(K - 1, N + 1, F) end.

%% Four thousand messages of 10,000 words to a process that receives none of them.
never_read() ->
    P = spawn_link(fun() -> receive stop -> ok end end),
    send_all(4000, P),
    {message_queue_len, N} = process_info(P, message_queue_len),
    unlink(P), exit(P, kill),
    N.
send_all(0, _) -> ok;
send_all(K, P) -> P ! lists:seq(1, 5000), send_all(K - 1, P).

numbers(0, _, L) -> L;
numbers(N, X, L) -> numbers(N - 1, (X * 1103515245 + 12345) band 16#7fffffff, [X rem 1000000 | L]).
