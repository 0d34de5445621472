%% Programs of many processes: starting, sending, waiting, and queues that grow long.
-module(processes).
-export([names/0, expected/1, element_in_own_process/2]).
-export([spawn_exit/0, ping_pong/0, ring/0, senders_1/0, senders_4/0, senders_16/0, senders_16_off_heap/0, parallel_map/0,
         parallel_map_off_heap/0, gen_server_call/0, spawn_while_waiting/0, selective_receive/0, large_messages/0, timers/0]).
-export([init/1, handle_call/3, handle_cast/2]).

names() ->
    [spawn_exit, ping_pong, ring, senders_1, senders_4, senders_16, senders_16_off_heap, parallel_map,
     parallel_map_off_heap, gen_server_call, spawn_while_waiting, selective_receive, large_messages, timers].

expected(spawn_exit) -> 200000;
expected(ping_pong) -> 200000;
expected(ring) -> 1000000;
expected(senders_1) -> 200000;
expected(senders_4) -> 800000;
expected(senders_16) -> 3200000;
expected(senders_16_off_heap) -> 3200000;
expected(parallel_map) -> 5000050000;
expected(parallel_map_off_heap) -> 5000050000;
expected(gen_server_call) -> 200000;
expected(spawn_while_waiting) -> 60000;
expected(selective_receive) -> 300000;
expected(large_messages) -> 20000000;
expected(timers) -> 200000.

%% One after another, each waited for by its monitor, a hundred at a time.
spawn_exit() -> spawn_exit(200000, 0).
spawn_exit(0, N) -> N;
spawn_exit(K, N) ->
    Rs = [element(2, spawn_monitor(fun() -> ok end)) || _ <- lists:seq(1, 100)],
    spawn_exit(K - 100, N + length([receive {'DOWN', R, _, _, normal} -> ok end || R <- Rs])).

ping_pong() ->
    P = spawn_link(fun pong/0),
    N = ping(P, 200000, 0),
    unlink(P), exit(P, kill),
    N.
pong() -> receive {From, X} -> From ! X, pong() end.
ping(_, 0, N) -> N;
ping(P, K, N) -> P ! {self(), ping}, receive ping -> ping(P, K - 1, N + 1) end.

%% A thousand processes; a number goes around until it has been passed on a million times.
ring() ->
    First = self(),
    Next = lists:foldl(fun(_, To) -> spawn_link(fun() -> pass(To) end) end, First, lists:seq(1, 999)),
    Next ! 1,
    around(Next).
around(Next) -> receive N when N >= 1000000 -> Next ! stop, 1000000; N -> Next ! N + 1, around(Next) end.
pass(To) -> receive stop -> To ! stop; N -> To ! N + 1, pass(To) end.

senders_1() -> senders(1, on_heap).
senders_4() -> senders(4, on_heap).
senders_16() -> senders(16, on_heap).
senders_16_off_heap() -> senders(16, off_heap).
senders(S, Where) ->
    process_flag(message_queue_data, Where),
    Self = self(),
    [spawn_link(fun() -> send(Self, 200000) end) || _ <- lists:seq(1, S)],
    count(S * 200000, 0).
send(_, 0) -> ok;
send(To, N) -> To ! {message, N, self()}, send(To, N - 1).
count(N, N) -> N;
count(N, K) -> receive {message, _, _} -> count(N, K + 1) end.

parallel_map() -> parallel_map(on_heap).
parallel_map_off_heap() -> parallel_map(off_heap).
parallel_map(Where) ->
    process_flag(message_queue_data, Where),
    Self = self(),
    Tasks = [spawn_monitor(?MODULE, element_in_own_process, [Self, I]) || I <- lists:seq(1, 100000)],
    lists:sum([receive {P, V} -> demonitor(R, [flush]), V end || {P, R} <- Tasks]).
element_in_own_process(To, I) -> To ! {self(), I}.

init(N) -> {ok, N}.
handle_call(next, _, N) -> {reply, N, N + 1}.
handle_cast(_, N) -> {noreply, N}.
gen_server_call() ->
    {ok, P} = gen_server:start_link(?MODULE, 1, []),
    N = lists:foldl(fun(_, _) -> gen_server:call(P, next) end, 0, lists:seq(1, 200000)),
    gen_server:stop(P),
    N.

%% Starting processes while forty thousand messages wait.
spawn_while_waiting() ->
    Self = self(),
    [Self ! {waiting, I} || I <- lists:seq(1, 40000)],
    spawned(60000, 0).
spawned(0, N) -> N;
spawned(K, N) ->
    {P, R} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', R, process, P, normal} -> spawned(K - 1, N + 1) end.

%% Answers to fresh references, behind ten thousand messages that nobody wants.
selective_receive() ->
    [self() ! {noise, I} || I <- lists:seq(1, 10000)],
    P = spawn_link(fun answer/0),
    N = ask(P, 300000, 0),
    unlink(P), exit(P, kill),
    N.
answer() -> receive {From, R} -> From ! {R, ok}, answer() end.
ask(_, 0, N) -> N;
ask(P, K, N) -> R = make_ref(), P ! {self(), R}, receive {R, ok} -> ask(P, K - 1, N + 1) end.

%% A list of a hundred thousand integers sent two hundred times.
large_messages() ->
    L = lists:seq(1, 100000),
    P = spawn_link(fun measure/0),
    lists:sum([begin P ! {self(), L}, receive {P, N} -> N end end || _ <- lists:seq(1, 200)]).
measure() -> receive {From, L} -> From ! {self(), length(L)}, measure() end.

timers() ->
    Self = self(),
    [erlang:start_timer(1 + I rem 50, Self, I) || I <- lists:seq(1, 200000)],
    length([receive {timeout, _, I} -> I end || _ <- lists:seq(1, 200000)]).
