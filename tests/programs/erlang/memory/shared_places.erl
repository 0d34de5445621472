%% Large terms pass between processes and tables in every possible way, among them terms whose parts
%% are reached repeatedly. @stress @shared
-module(shared_places).
-export([main/0, through/2, init/1, handle_call/3, handle_cast/2]).

main() ->
    process_flag(trap_exit, true),
    [io:format("~p ~p~n", [W, erlang:phash2(through(W, term(3000)))]) || W <- ways()],
    [io:format("~p ~p~n", [W, erlang:phash2(through(W, deep(12)))]) || W <- ways()],
    io:format("~p~n", [[{W, same(W)} || W <- ways()]]),
    io:format("~p~n", [sizes()]),
    %% As a tree this has more words than there are: stock would not end.
    case catch erlang:system_info(sharing) of
        #{} -> [levels(through(W, deep(40)), 0) =:= 40 orelse io:format("~p differs~n", [W]) || W <- ways()];
        _ -> ok
    end,
    io:format("done~n").

term(N) -> {[{I, <<I:64, 0:600>>} || I <- lists:seq(1, N)], maps:from_list([{I, [I]} || I <- lists:seq(1, N)])}.
deep(N) -> lists:foldl(fun(_, A) -> [A | A] end, [], lists:seq(1, N)).
levels([], N) -> N;
levels([A | _], N) -> levels(A, N + 1).

ways() ->
    [send, send_name, alias, captured, argument, spawn_request, exit, crash, exit_signal, link, send_after, start_timer, dictionary,
     messages, call, reply, give_away, heir, insert, update_element, replace, match, fold, persistent, counted_again].

%% The term as it comes out at the other end.
through(send, T) -> P = echo(), P ! {self(), T}, got(P);
through(send_name, T) ->
    P = echo(), register(echo, P),
    {echo, node()} ! {self(), T},
    R = got(P), R;
through(alias, T) ->
    A = alias(),
    P = spawn_link(fun() -> receive go -> ok end, A ! {self(), term, T} end),
    P ! go,
    receive {P, term, R} -> unalias(A), gone(P), R end;
through(captured, T) -> in_process(fun() -> T end);
through(argument, T) ->
    S = self(),
    P = spawn_link(erlang, apply, [fun(X) -> S ! {self(), term, X} end, [T]]),
    got(P);
through(spawn_request, T) ->
    S = self(),
    R = spawn_request(fun() -> S ! {self(), term, T} end, [link]),
    receive {spawn_reply, R, ok, P} -> got(P) end;
through(exit, T) ->
    {_, R} = spawn_monitor(fun() -> exit({why, T}) end),
    receive {'DOWN', R, _, _, {why, X}} -> X end;
through(crash, T) ->
    {_, R} = spawn_monitor(fun() -> catch exit(x), exit(element(1, {T})) end),
    receive {'DOWN', R, _, _, X} -> X end;
through(exit_signal, T) ->
    {P, R} = spawn_monitor(fun() -> receive never -> ok end end),
    exit(P, {why, T}),
    receive {'DOWN', R, _, _, {why, X}} -> X end;
through(link, T) ->
    P = spawn_link(fun() -> exit([T, T]) end),
    receive {'EXIT', P, [X, X]} -> X end;
through(send_after, T) -> erlang:send_after(1, self(), {timer, T}), receive {timer, X} -> X end;
through(start_timer, T) -> R = erlang:start_timer(1, self(), T), receive {timeout, R, X} -> X end;
through(dictionary, T) ->
    S = self(),
    P = spawn_link(fun() -> put(x, T), S ! {self(), ready}, receive stop -> ok end end),
    receive {P, ready} -> ok end,
    {dictionary, D} = process_info(P, dictionary),
    {dictionary, D} = process_info(P, dictionary),
    P ! stop, gone(P),
    proplists:get_value(x, D);
through(messages, T) ->
    P = spawn_link(fun() -> receive stop -> ok end end),
    P ! {x, T},
    {messages, [{x, X}]} = process_info(P, messages),
    P ! stop, gone(P),
    X;
through(call, T) ->
    {ok, P} = gen_server:start_link(?MODULE, none, []),
    ok = gen_server:call(P, {set, T}),
    X = gen_server:call(P, get), X = gen_server:call(P, get),
    gen_server:stop(P), gone(P),
    X;
through(reply, T) ->
    {ok, P} = gen_server:start_link(?MODULE, T, []),
    X = gen_server:call(P, get),
    gen_server:stop(P), gone(P),
    X;
through(give_away, T) ->
    S = self(),
    P = spawn_link(fun() -> receive {'ETS-TRANSFER', _, _, X} -> S ! {self(), term, X} end end),
    ets:give_away(ets:new(t, []), P, {gift, T}),
    {gift, X} = got(P), X;
through(heir, T) ->
    S = self(),
    P = spawn_link(fun() -> ets:new(t, [{heir, S, {data, T}}]) end),
    gone(P),
    receive {'ETS-TRANSFER', Tab, P, {data, X}} -> ets:delete(Tab), X end;
through(insert, T) -> with(fun(Tab) -> ets:insert(Tab, {k, T}), [{k, X}] = ets:lookup(Tab, k), [{k, X}] = ets:lookup(Tab, k), X end);
through(update_element, T) ->
    with(fun(Tab) ->
        ets:insert(Tab, {k, 1, 2}), ets:update_element(Tab, k, [{3, T}]), 2 = ets:update_counter(Tab, k, {2, 1}),
        ets:lookup_element(Tab, k, 3)
    end);
through(replace, T) ->
    with(fun(Tab) ->
        ets:insert(Tab, {k, T, 1}),
        1 = ets:select_replace(Tab, [{{'$1', '$2', '_'}, [], [{{'$1', [x], {{'$2'}}}}]}]),
        [{k, [x], {X}}] = ets:lookup(Tab, k), X
    end);
through(match, T) -> with(fun(Tab) -> ets:insert(Tab, {k, {T}, 1}), [[X]] = ets:match(Tab, {k, {'$1'}, '_'}), X end);
through(fold, T) -> with(fun(Tab) -> ets:insert(Tab, [{1, T}, {2, T}]), ets:foldl(fun({_, X}, _) -> X end, none, Tab) end);
through(persistent, T) ->
    persistent_term:put(?MODULE, T), persistent_term:put({?MODULE, 2}, {x, T}),
    {x, X} = persistent_term:get({?MODULE, 2}),
    persistent_term:erase(?MODULE), persistent_term:erase({?MODULE, 2}),
    X;
%% What came is sent and stored again, with something around it.
through(counted_again, T) ->
    X = through(send, T),
    erlang:garbage_collect(),
    {a, [X]} = Y = through(send, {a, [X]}),
    [Y | b] = through(insert, [Y | b]),
    {X, X} = through(captured, {X, X}),
    X.

%% A thing reached twice is equal to itself wherever it comes out.
same(W) ->
    L = lists:seq(1, 10000),
    {A, [B]} = through(W, {L, [L]}),
    A =:= L andalso B =:= L.

%% As stock counts them. (With `erts_debug:size/1`, parts that are reached twice may count once, or
%% as often as they are reached.)
sizes() ->
    L = lists:seq(1, 20000), D = deep(10),
    F = fun() -> {L, D} end,
    Sent = through(send, {L, D}),
    Fs = through(send, F),
    Ts = [L, D, F, Sent, L, {L, L}, Fs, [Sent | Sent], through(insert, {L, L}), through(captured, tl(L))],
    {[erts_debug:flat_size(T) || T <- Ts], [erts_debug:size(T) || T <- [L, through(captured, L), tl(L), through(send, L), through(insert, L)]]}.

echo() -> spawn_link(fun() -> receive {From, T} -> From ! {self(), term, T} end end).
in_process(F) -> S = self(), got(spawn_link(fun() -> S ! {self(), term, F()} end)).
got(P) -> receive {P, term, T} -> gone(P), T end.
gone(P) -> receive {'EXIT', P, _} -> ok end.
with(F) -> Tab = ets:new(t, []), R = F(Tab), ets:delete(Tab), R.

init(S) -> {ok, S}.
handle_call(get, _, S) -> {reply, S, S};
handle_call({set, T}, _, _) -> {reply, ok, T}.
handle_cast(_, S) -> {noreply, S}.
