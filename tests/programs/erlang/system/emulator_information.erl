%% Checks information about the runtime: the reported error of several in a binary construction,
%% sizes of terms, system profiles, generations of small heaps, processes in long natives, and funs
%% of code that is being purged.
-module(emulator_information).
-export([main/0]).

main() ->
    construct(),
    sizes(),
    profile(),
    tracer(),
    generations(),
    dirty(),
    purged_fun(),
    queue_and_heap_limit().

id(X) -> X.

construct() ->
    A = id(a), B = id(1 bsl 64), N = id(-1), F = id(1.5), Bin = id(<<1, 2>>),
    [failure(X) || X <-
        [fun() -> <<A:A>> end, fun() -> <<A:B>> end, fun() -> <<A:N>> end,
         fun() -> <<A:A/float>> end, fun() -> <<A:B/float>> end, fun() -> <<A:(id(17))/float>> end,
         fun() -> <<A:A/binary>> end, fun() -> <<A:B/binary>> end, fun() -> <<F:A>> end,
         fun() -> <<A:8, 1:A>> end, fun() -> <<A/binary, 1:A>> end, fun() -> <<A/utf8, 1:A>> end,
         fun() -> <<A:64/float, 1:A>> end, fun() -> <<A:8, A/binary>> end, fun() -> <<A:8, A/utf8>> end,
         fun() -> <<A:8, Bin:(id(3))/binary>> end, fun() -> <<A:8, (id(<<1:1>>))/binary>> end,
         fun() -> <<1:8, Bin:(id(3))/binary, A:8>> end]],
    ok.

failure(F) ->
    try io:format("~p~n", [F()])
    catch error:R:S ->
        [{_, _, _, I} | _] = S,
        #{cause := C} = proplists:get_value(error_info, I),
        io:format("~p ~p~n", [R, C])
    end.

sizes() ->
    Ref = fun(Nums) ->
        N = <<100, 0, 3, "a@b">>,
        binary_to_term(<<131, 90, (length(Nums)):16, N/binary, 1:32, << <<X:32>> || X <- Nums >>/binary>>)
    end,
    io:format("~p~n", [[{erts_debug:flat_size(Ref(L)), Ref(L) =:= Ref(L), erlang:phash2(Ref(L))}
                        || L <- [[42, 43, 44], [42, 43], [42], [1, 2, 3, 4, 5]]]]),
    Deep = lists:foldl(fun(_, T) -> [T | T] end, [], lists:seq(1, 100)),
    ok = persistent_term:put({?MODULE, deep}, Deep),
    io:format("~p~n", [erts_debug:size(persistent_term:get({?MODULE, deep}))]),
    ok = persistent_term:put({?MODULE, deep}, {1, Deep}),
    io:format("~p~n", [erts_debug:size(persistent_term:get({?MODULE, deep}))]),
    true = persistent_term:erase({?MODULE, deep}).

profile() ->
    L = spawn(fun() -> collect([]) end),
    S = fun(P, O) -> strip(catch erlang:system_profile(P, O)) end,
    io:format("~p~n", [[S(L, [foo]), S(L, []), S(foo, [scheduler]), S(L, [runnable_procs | x])]]),
    P = spawn(fun() -> receive a -> ok end, receive b -> exit(ended) end end),
    timer:sleep(50),
    io:format("~p~n", [S(L, [runnable_procs, monotonic_timestamp])]),
    P ! a,
    timer:sleep(50),
    P ! b,
    timer:sleep(50),
    io:format("~p~n", [S(L, [exclusive, runnable_ports, runnable_procs, scheduler])]),
    io:format("~p~n", [S(undefined, [])]),
    io:format("~p~n", [erlang:system_profile()]),
    L ! {events, self()},
    receive {told, T} ->
        io:format("~p~n", [[{X, place(Y)} || {profile, Q, X, Y, Z} <- T, Q =:= P, is_integer(Z)]])
    end.

strip({'EXIT', {R, _}}) -> R;
strip({_, O}) -> O;
strip(O) -> O.

place({M, _, _}) -> M;
place(N) -> N.

collect(L) ->
    receive
        {events, To} -> To ! {told, lists:reverse(L)};
        M -> collect([M | L])
    end.

tracer() ->
    Me = self(),
    L = spawn(fun() -> receive never -> ok end end),
    Gone = spawn(fun() -> ok end),
    timer:sleep(20),
    io:format("~p~n", [[erl_tracer:enabled(T, W, Me) || T <- [call, trace_status, 1], W <- [Me, L, Gone, foo]]]),
    C = spawn(fun() -> collect([]) end),
    [ok = erl_tracer:trace(T, C, x, {m, f, 1}, O)
     || T <- [call, seq_trace], O <- [#{}, #{extra => e}, #{scheduler_id => 3, match_spec_result => r},
                                      #{extra => e, match_spec_result => r, scheduler_id => 2}, #{timestamp => t}]],
    ok = erl_tracer:trace(call, Gone, x, y, #{}),
    C ! {events, self()},
    receive {told, T} -> io:format("~p~n", [T]) end,
    io:format("~p~n", [lists:sort(erl_tracer:module_info(nifs))]),
    1 = erlang:trace(L, true, [send, {tracer, erl_tracer, Me}]),
    io:format("~p~n", [erlang:trace_info(L, tracer) =:= {tracer, Me}]).

%% A process with a small heap gets an old generation too, and what was asked to be a minor
%% collection is one.
generations() ->
    Me = self(),
    P = spawn(fun() -> old_heap(), Me ! {self(), found}, loop() end),
    io:format("~p~n", [receive {P, found} -> found after 20000 -> none end]),
    Q = spawn(fun() -> loop() end),
    erlang:garbage_collect(Q),
    1 = erlang:trace(Q, true, [garbage_collection]),
    true = erlang:garbage_collect(Q, [{type, minor}]),
    true = erlang:garbage_collect(Q, [{type, major}]),
    Tags = [receive {trace, Q, T, _} -> T after 2000 -> none end || _ <- [1, 2, 3, 4]],
    io:format("~p~n", [Tags]),
    [exit(X, kill) || X <- [P, Q]].

loop() -> receive stop -> ok end.

old_heap() ->
    case process_info(self(), [heap_size, total_heap_size]) of
        [{_, N}, {_, All}] when N < All -> ok;
        _ -> old_heap()
    end.

dirty() ->
    P = spawn(fun() -> erts_debug:dirty_io(wait, 1500), loop() end),
    timer:sleep(200),
    Ask = fun() -> process_info(P, [current_function, status]) end,
    io:format("~p~n", [Ask()]),
    erlang:suspend_process(P, [asynchronous]),
    io:format("~p~n", [Ask()]),
    io:format("~p~n", [erlang:check_process_code(P, ?MODULE)]),
    io:format("~p~n", [until(fun() -> process_info(P, status) =:= {status, suspended} end)]),
    erlang:resume_process(P),
    io:format("~p~n", [until(fun() -> process_info(P, status) =:= {status, waiting} end)]),
    exit(P, kill).

until(F) -> until(F, 1000).

until(_, 0) -> never;
until(F, N) ->
    case F() of
        true -> true;
        _ -> timer:sleep(10), until(F, N - 1)
    end.

%% Whoever calls a fun of code that is being purged waits for the end of the purge.
purged_fun() ->
    {ok, _, Code} = compile:forms(
        [{attribute, 1, module, s_emulator_fun}, {attribute, 2, export, [{f, 1}]},
         {function, 3, f, 1, [{clause, 3, [{var, 3, 'A'}], [],
            [{'fun', 3, {clauses, [{clause, 3, [{var, 3, 'B'}], [],
                [{op, 3, '+', {var, 3, 'A'}, {var, 3, 'B'}}]}]}}]}]}], []),
    {module, M} = code:load_binary(s_emulator_fun, "s_emulator_fun.erl", Code),
    F = M:f(1),
    true = erlang:delete_module(M),
    %% The code purger can be had to wait before each step.
    Ref = make_ref(),
    erts_code_purger ! {test_purge, M, self(), true, Ref},
    receive {started, Ref} -> ok end,
    {P, R} = spawn_monitor(fun() -> exit({value, F(2)}) end),
    io:format("~p~n", [until(fun() -> process_info(P, status) =:= {status, suspended} end)]),
    io:format("~p~n", [process_info(P, current_function)]),
    erts_code_purger ! {continue, Ref},
    receive {continued, Ref} -> ok end,
    erts_code_purger ! {complete, Ref},
    receive {test_purge, Done, Ref} -> io:format("~p~n", [Done]) end,
    receive {'DOWN', R, process, P, {Error, _}} -> io:format("~p~n", [Error]) end.

%% What lies in shared regions is nobody's heap.
queue_and_heap_limit() ->
    Before = (catch erlang:system_flag(sharing_threshold, infinity)),
    queue_over_limit(),
    is_integer(Before) andalso erlang:system_flag(sharing_threshold, Before).

queue_over_limit() ->
    P = spawn_opt(fun() -> receive never -> ok after 20000 -> ok end end,
                  [{max_heap_size, #{size => 1024, error_logger => false}}, {message_queue_data, on_heap}]),
    R = monitor(process, P),
    [P ! lists:duplicate(I, I) || I <- lists:seq(1, 100)],
    %% A collection of its own may have ended it.
    [erlang:garbage_collect(P) || {messages, _} <- [process_info(P, messages)]],
    io:format("~p~n", [receive {'DOWN', R, _, _, Why} -> Why after 5000 -> alive end]).
