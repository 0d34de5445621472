%% Frequent operations, each made by two processes at the same time that share nothing of their own
%% unless said: what both schedulers write then, all schedulers write. See scripts/shared_writes.sh.
-module(writes).
-export([main/1]).

-define(OPERATIONS, 2000).

main(Names) ->
    Chosen = [N || N <- names(), Names =:= ["all"] orelse lists:member(atom_to_list(N), Names)],
    [begin
         ets:new(T, [named_table, public, {read_concurrency, true} | Type]),
         ets:insert(T, [{K, K} || K <- lists:seq(0, 63)])
     end || {T, Type} <- [{one_for_both, []}, {ordered_for_both, [ordered_set]}]],
    %% The first count has what the start leaves to do: nobody reads it.
    counted(message),
    [begin counted(N), io:format("~s ~b~n", [N, 2 * ?OPERATIONS]) end || N <- Chosen],
    halt(0).

names() ->
    [message, large_message, named_message, whereis, call, spawn, monitor, timer, reference, binary,
     ets_read, ets_write, ets_read_ordered, ets_write_ordered, ets_read_both,
     ets_read_ordered_both].

%% Two processes make the operation while writes are counted.
counted(Name) ->
    Me = self(),
    Workers = [spawn_link(fun() -> work(Name, W, Me) end) || W <- [1, 2]],
    [receive {ready, W} -> ok end || W <- Workers],
    {ok, _} = file:get_cwd(),
    [W ! go || W <- Workers],
    [receive {done, W} -> ok end || W <- Workers],
    ok = file:set_cwd("."),
    [begin unlink(W), exit(W, kill) end || W <- Workers].

%% Code is compiled and blocks are found before anything is counted.
work(Name, W, Main) ->
    Do = operation(Name, W),
    times(3 * ?OPERATIONS, Do),
    Main ! {ready, self()},
    receive go -> ok end,
    times(?OPERATIONS, Do),
    Main ! {done, self()},
    receive never -> ok end.

times(0, _) -> ok;
times(N, Do) -> Do(N), times(N - 1, Do).

operation(message, _) ->
    fun(N) -> self() ! {x, N}, receive {x, N} -> ok end end;
operation(large_message, _) ->
    fun(N) -> self() ! {x, N, lists:seq(1, 500)}, receive {x, N, _} -> ok end end;
operation(named_message, W) ->
    Name = name(W),
    register(Name, self()),
    fun(N) -> Name ! {x, N}, receive {x, N} -> ok end end;
operation(whereis, W) ->
    Name = name(W),
    register(Name, self()),
    fun(_) -> true = is_pid(whereis(Name)) end;
operation(call, _) ->
    P = spawn_link(fun served/0),
    fun(N) -> R = monitor(process, P), P ! {call, self(), R, N}, receive {R, N} -> demonitor(R, [flush]) end end;
operation(spawn, _) ->
    fun(_) -> Me = self(), P = spawn(fun() -> Me ! {up, self()} end), receive {up, P} -> ok end end;
operation(monitor, _) ->
    P = spawn_link(fun() -> receive never -> ok end end),
    fun(_) -> demonitor(monitor(process, P)) end;
operation(timer, _) ->
    fun(_) -> R = erlang:start_timer(100000, self(), x), erlang:cancel_timer(R) end;
operation(reference, _) ->
    fun(_) -> make_ref() end;
operation(binary, _) ->
    fun(_) -> binary:copy(<<1>>, 200) end;
operation(ets_read, _) ->
    T = ets:new(t, []),
    ets:insert(T, [{K, K} || K <- lists:seq(0, 63)]),
    fun(N) -> [_] = ets:lookup(T, N band 63) end;
operation(ets_write, _) ->
    T = ets:new(t, []),
    fun(N) -> ets:insert(T, {N band 63, N}) end;
operation(ets_read_ordered, _) ->
    T = ets:new(t, [ordered_set]),
    ets:insert(T, [{K, K} || K <- lists:seq(0, 63)]),
    fun(N) -> [_] = ets:lookup(T, N band 63) end;
%% The only operations on one object: a table with `read_concurrency` that both read.
operation(ets_read_both, _) ->
    fun(N) -> [_] = ets:lookup(one_for_both, N band 63) end;
operation(ets_read_ordered_both, _) ->
    fun(N) -> [_] = ets:lookup(ordered_for_both, N band 63) end;
operation(ets_write_ordered, _) ->
    T = ets:new(t, [ordered_set]),
    fun(N) -> ets:insert(T, {N band 63, N}) end.

name(1) -> writes_one;
name(2) -> writes_two.

served() ->
    receive {call, From, R, N} -> From ! {R, N}, served() end.
