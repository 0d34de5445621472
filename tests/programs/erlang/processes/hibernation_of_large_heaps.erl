%% Processes with large heaps hibernate repeatedly. They keep live data and free the rest.
%% @stress @fence @seconds 120
-module(hibernation_of_large_heaps).
-export([main/0, loop/2, init/1, handle_call/3, handle_cast/2]).

main() ->
    {ok, P} = gen_server:start(?MODULE, 300000, []),
    io:format("~w~n", [lists:usort([gen_server:call(P, sum) || _ <- lists:seq(1, 50)])]),
    %% With a pause in which it does hibernate.
    io:format("~w~n", [lists:usort([begin receive after 2 -> ok end, gen_server:call(P, sum) end || _ <- lists:seq(1, 50)])]),
    io:format("~w~n", [[begin receive after 2 -> ok end, gen_server:call(P, {add, N}) end || N <- lists:seq(1, 20)]]),
    io:format("~w~n", [gen_server:call(P, sum)]),
    {total_heap_size, Large} = process_info(P, total_heap_size),
    io:format("~w~n", [Large > 500000]),
    ok = gen_server:call(P, drop),
    small(P, 1000),
    io:format("~w ~w~n", [gen_server:call(P, sum), process_info(P, message_queue_len)]),
    dictionary(),
    garbage(),
    collected().

%% Its words are no more than that soon.
small(P, Most) -> small(P, Most, 3000).
small(P, _, 0) -> exit({never, process_info(P, total_heap_size)});
small(P, Most, N) ->
    case process_info(P, total_heap_size) of
        {total_heap_size, W} when W =< Most -> ok;
        _ -> receive after 10 -> small(P, Most, N - 1) end
    end.

dictionary() ->
    Me = self(),
    Q = spawn(fun() ->
        [put(I, {I, [I], <<I:32>>}) || I <- lists:seq(1, 50000)],
        loop(Me, 0)
    end),
    L = [begin Q ! {add, I}, receive {Q, Sum} -> Sum end end || I <- lists:seq(1, 100)],
    L2 = [begin receive after 2 -> ok end, Q ! {add, I}, receive {Q, Sum} -> Sum end end || I <- lists:seq(1, 50)],
    Q ! check,
    io:format("~w ~w ~w~n", [lists:last(L), lists:last(L2), receive {Q, T} -> T end]).

loop(Me, Sum) ->
    receive
        {add, N} -> Me ! {self(), Sum + N}, erlang:hibernate(?MODULE, loop, [Me, Sum + N]);
        check -> Me ! {self(), lists:sum([I || {I, {I, [I], <<I:32>>}} <- get()])}
    after 0 -> erlang:hibernate(?MODULE, loop, [Me, Sum])
    end.

%% What is garbage when it hibernates, though the heap has not grown, is given back soon.
garbage() ->
    P = spawn(fun() -> held(lists:seq(1, 200000)) end),
    receive after 50 -> ok end,
    P ! {self(), drop},
    receive {P, dropped} -> ok end,
    small(P, 1000),
    io:format("given back~n").

held(L) ->
    receive {From, drop} -> From ! {self(), dropped}, held([]) after 0 -> ok end,
    case L of
        [] -> erlang:hibernate(erlang, apply, [fun() -> receive never -> ok end end, []]);
        _ -> erlang:hibernate(erlang, apply, [fun held/1, [L]])
    end.

%% Others that have one collected which hibernates leave it as small as it is, and what it dropped
%% before is gone.
collected() ->
    Me = self(),
    P = spawn(fun() -> kept(Me, [{N, [N]} || N <- lists:seq(1, 50000)]) end),
    receive {P, Sum} -> ok end,
    wait_hibernated(P),
    [true = erlang:garbage_collect(P) || _ <- lists:seq(1, 3)],
    [begin
        true = erlang:garbage_collect(P),
        P ! {sum, Me},
        receive {P, Again} -> Sum = Again end
    end || _ <- lists:seq(1, 20)],
    wait_hibernated(P),
    true = erlang:garbage_collect(P),
    true = erlang:garbage_collect(P, [{type, minor}]),
    true = erlang:garbage_collect(P),
    %% 50,000 times a cons, a tuple and a list of one.
    {total_heap_size, After} = process_info(P, total_heap_size),
    P ! {drop, Me},
    receive {P, 0} -> ok end,
    wait_hibernated(P),
    true = erlang:garbage_collect(P),
    {total_heap_size, Least} = process_info(P, total_heap_size),
    io:format("~w ~w ~w~n", [Sum, After < 400000, Least < 1000]).

wait_hibernated(P) ->
    case process_info(P, [current_function, status]) of
        [{current_function, {erlang, hibernate, 3}}, {status, waiting}] -> ok;
        _ -> receive after 1 -> wait_hibernated(P) end
    end.

kept(To, L) ->
    To ! {self(), lists:sum([N || {N, [N]} <- L])},
    erlang:hibernate(erlang, apply, [fun asked/1, [L]]).

asked(L) -> receive {sum, From} -> kept(From, L); {drop, From} -> kept(From, []) end.

init(N) -> {ok, lists:seq(1, N)}.
handle_call(sum, _, S) -> {reply, lists:sum(S), S, hibernate};
handle_call({add, N}, _, S) -> {reply, N + hd(S), [N | S], hibernate};
handle_call(drop, _, _) -> {reply, ok, [1, 2, 3], hibernate}.
handle_cast(_, S) -> {noreply, S}.
