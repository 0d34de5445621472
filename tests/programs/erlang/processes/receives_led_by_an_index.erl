%% Receives wait for one value of an element in a mailbox with hundreds of messages: by references,
%% tags, pids and numbers, with guards, several clauses, and messages that arrive meanwhile. The
%% other messages stay in order of arrival. @stress @shared @fence
-module(receives_led_by_an_index).
-export([main/0]).

main() ->
    io:format("~p~n", [by_reference(300)]),
    io:format("~p~n", [by_pid(200)]),
    io:format("~p~n", [by_tag(200)]),
    io:format("~p~n", [by_number(200)]),
    io:format("~p~n", [by_guard(150)]),
    io:format("~p~n", [two_values(200)]),
    io:format("~p~n", [several_clauses(200)]),
    io:format("~p~n", [missing(200)]),
    io:format("~p~n", [come_meanwhile(150)]),
    io:format("~p~n", [odd_references(150)]),
    io:format("~p~n", [exits_and_monitors(150)]),
    io:format("~p~n", [kept_terms(150)]),
    io:format("~p~n", [traced(150)]),
    io:format("~p~n", [emptied_and_filled(120)]).

%% The numbers below N in another order, each once; N is no multiple of 13.
mixed(N) -> [I * 13 rem N || I <- lists:seq(0, N - 1)].
noise(I) -> element(I rem 6 + 1, {I, {noise, I}, {reply, I}, [reply, I], <<I:32>>, #{reply => I}}).

by_reference(N0) ->
    N = N0 + 1,
    Refs = list_to_tuple([make_ref() || _ <- lists:seq(1, N)]),
    [begin self() ! noise(I), self() ! {reply, element(I, Refs), I} end || I <- lists:seq(1, N)],
    Got = [begin R = element(I + 1, Refs), receive {reply, R, V} -> V - I end end || I <- mixed(N)],
    {lists:usort(Got), erlang:phash2(flush())}.

by_pid(N) ->
    Pids = [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, N)],
    [self() ! {P, I} || {P, I} <- lists:zip(Pids, lists:seq(1, N))],
    Got = [receive {P, V} -> V end || P <- lists:reverse(Pids)],
    [P ! stop || P <- Pids],
    {Got =:= lists:seq(N, 1, -1), flush()}.

by_tag(N) ->
    [self() ! {item, I, I} || I <- lists:seq(1, N)],
    [begin
        self() ! {last, I, N},
        receive {last, I, _} -> ok end
    end || I <- lists:seq(1, 50)],
    [self() ! {last, I, N} || I <- [1, 2, 3]],
    {[receive {last, X, _} -> X end || _ <- [1, 2, 3]], [element(2, M) || M <- flush()] =:= lists:seq(1, N)}.

by_number(N0) ->
    N = N0 + 1,
    [self() ! {I, I rem 10} || I <- lists:seq(0, N - 1)],
    Got = [receive {I, V} -> V end || I <- mixed(N)],
    {Got =:= [I rem 10 || I <- mixed(N)], flush()}.

%% Each message with the tag is a candidate; most are refused behind that.
by_guard(N) ->
    [begin self() ! {other, I, I}, self() ! {item, I, -I} end || I <- lists:seq(1, N)],
    Got = [receive {item, I, V} when I + V =:= 0, I > N - K -> I end || K <- lists:seq(1, N)],
    {Got =:= lists:seq(N, 1, -1), [I || {other, I, _} <- flush()] =:= lists:seq(1, N)}.

%% Alternately by one element and by the other.
two_values(N) ->
    [self() ! {I, N - I, x} || I <- lists:seq(1, N)],
    Got = [case K rem 2 of
        0 -> receive {K, V, _} -> V end;
        1 -> receive {V, K, _} -> V end
    end || K <- lists:seq(N - 1, N div 2 + 1, -1)],
    {lists:sum(Got), erlang:phash2(flush())}.

several_clauses(N) ->
    Refs = [make_ref() || _ <- lists:seq(1, N)],
    [self() ! {reply, R, K} || {R, K} <- lists:zip(Refs, lists:seq(1, N))],
    [self() ! {'DOWN', R, process, self(), K} || {R, K} <- lists:zip(Refs, lists:seq(1, N)), K rem 3 =:= 0],
    Got = [receive
        {'DOWN', R, _, _, K} -> {down, K};
        {reply, R, K} when K rem 2 =:= 0 -> K
    after 0 -> none
    end || R <- lists:reverse(Refs)],
    {erlang:phash2(Got), erlang:phash2([element(size(M), M) || M <- flush()])}.

missing(N) ->
    [self() ! {reply, make_ref(), I} || I <- lists:seq(1, N)],
    Got = [begin R = make_ref(), receive {reply, R, _} -> found after 0 -> none end end || _ <- lists:seq(1, 20)],
    {messages, All} = process_info(self(), messages),
    R = make_ref(),
    Me = self(),
    spawn(fun() -> timer:sleep(10), Me ! {reply, R, late} end),
    Late = receive {reply, R, V} -> V end,
    {lists:usort(Got), Late, [I || {_, _, I} <- All] =:= lists:seq(1, N), flush() =:= All}.

%% Others send while the receiver waits.
come_meanwhile(N) ->
    Me = self(),
    Refs = [make_ref() || _ <- lists:seq(1, N)],
    [self() ! {old, I} || I <- lists:seq(1, N)],
    spawn(fun() -> [begin Me ! noise(I), Me ! {reply, R, I} end || {R, I} <- lists:zip(Refs, lists:seq(1, N))] end),
    Got = [receive {reply, R, I} -> I end || R <- lists:reverse(Refs)],
    {Got =:= lists:seq(N, 1, -1), length(flush())}.

%% References with other words in them than those made here: of tables, and of another node.
odd_references(N) ->
    T = ets:new(t, []),
    Far = binary_to_term(<<131, 90, 0, 3, 100, 0, 3, "a@b", 1:32, 1:32, 2:32, 3:32>>),
    Refs = [make_ref() || _ <- lists:seq(1, N)],
    [self() ! {reply, R, I} || {R, I} <- lists:zip(Refs, lists:seq(1, N))],
    First = receive {reply, Far, _} -> found after 0 -> none end,
    L = lists:last(Refs),
    Last = receive {reply, L, V} -> V end,
    self() ! {reply, T, table},
    self() ! {reply, Far, far},
    H = lists:nth(N - 1, Refs),
    Both = [receive {reply, H, V1} -> V1 end, receive {reply, T, V2} -> V2 end, receive {reply, Far, V3} -> V3 end],
    G = lists:nth(N - 2, Refs),
    Again = receive {reply, G, V4} -> V4 end,
    ets:delete(T),
    {First, Last, Both, Again, length(flush())}.

exits_and_monitors(N) ->
    process_flag(trap_exit, true),
    Refs = [make_ref() || _ <- lists:seq(1, N)],
    [self() ! {reply, R, x, x, I} || {R, I} <- lists:zip(Refs, lists:seq(1, N))],
    L = lists:last(Refs),
    receive {reply, L, _, _, _} -> ok end,
    All = [spawn_monitor(fun() -> exit({ended, I}) end) || I <- lists:seq(1, 5)],
    Links = [spawn_link(fun() -> exit({linked, I}) end) || I <- lists:seq(1, 5)],
    Downs = [receive {'DOWN', M, process, P, Why} -> Why end || {P, M} <- lists:reverse(All)],
    Exits = [receive {'EXIT', P, Why} -> Why end || P <- lists:reverse(Links)],
    process_flag(trap_exit, false),
    {Downs, Exits, [I || {_, _, _, _, I} <- flush()] =:= lists:seq(1, N - 1)}.

%% What is received outlives its message.
kept_terms(N) ->
    Refs = [make_ref() || _ <- lists:seq(1, N)],
    [self() ! {reply, R, {I, lists:seq(1, I rem 20), <<I:64>>}} || {R, I} <- lists:zip(Refs, lists:seq(1, N))],
    Got = [begin
        receive {reply, R, V} ->
            case element(1, V) rem 10 of 0 -> erlang:garbage_collect(); _ -> ok end,
            V
        end
    end || R <- lists:reverse(Refs)],
    erlang:garbage_collect(),
    {erlang:phash2(Got), flush()}.

traced(N) ->
    Me = self(),
    Tracer = spawn(fun() -> traces([]) end),
    [self() ! {reply, I, I} || I <- lists:seq(1, N)],
    receive {reply, N, _} -> ok end,
    erlang:trace(Me, true, ['receive', {tracer, Tracer}]),
    [self() ! {reply, {I}, I} || I <- lists:seq(1, 3)],
    receive {reply, {3}, _} -> ok end,
    K = N - 1,
    receive {reply, K, _} -> ok end,
    erlang:trace(Me, false, ['receive']),
    Ref = erlang:trace_delivered(Me),
    receive {trace_delivered, Me, Ref} -> ok end,
    Tracer ! {tell, Me},
    Seen = receive {seen, L} -> L end,
    {[M || {trace, _, 'receive', {reply, _, _} = M} <- Seen], length(flush())}.
traces(L) -> receive {tell, P} -> P ! {seen, lists:reverse(L)}; T -> traces([T | L]) end.

%% The mailbox becomes short and long again.
emptied_and_filled(N) ->
    [begin
        [self() ! {reply, I, K} || I <- lists:seq(1, N)],
        Got = [receive {reply, I, V} -> V end || I <- lists:seq(N, 1, -1)],
        self() ! {K, x},
        {lists:sum(Got), flush()}
    end || K <- lists:seq(1, 4)].

flush() -> receive M -> [M | flush()] after 0 -> [] end.
