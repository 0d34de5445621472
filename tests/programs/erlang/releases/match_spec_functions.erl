%% Checks functions of match specifications that are new in OTP 26 and 29: those that guards already
%% had, and the caller's stack. Also checks hosts in brackets in HTTP requests, since OTP 26.
%% @stress @shared @fence
-module(match_spec_functions).
-export([main/0, called/1, called/2, called/3]).

main() ->
    [functions(F, N, Kind) || {F, N} <- functions(), Kind <- [table, trace]],
    [refused(Body) || Body <- bodies()],
    [messages(What, Body) || What <- [send, 'receive'], Body <- [{current_stacktrace}, {current_stacktrace, 1}, {ceil, 1.5}]],
    stacks(),
    [prefix(Args, Head) || Args <- arguments(), Head <- heads()],
    traced_prefixes(),
    [request(H) || H <- hosts()],
    ok.

%% Heads that name the first arguments alone (OTP 29).
arguments() -> [[], [a], [a, b], [a, b, c], [{a, 1}], [[a | b]], [a, a], {a, b}].
heads() ->
    [['$1' | '_'], ['$1', '$2' | '_'], [a | '_'], ['$1', '$1' | '_'], [{'$1', '_'} | '_'], ['_' | '_'], ['$1' | '$2'], ['$1' | a], ['$1' | []],
     [['$1' | '_']], [['$1' | '_'] | '_']].

prefix(Args, Head) ->
    io:format("~w ~w: ~p~n", [Args, Head, [tried(fun() -> erlang:match_spec_test(Args, [{Head, G, [{message, B}]}], trace) end)
                                           || G <- [[], [{'==', '$1', a}]], B <- ['$1', '$_', '$$']]]).

traced_prefixes() ->
    Me = self(),
    {T, M} = spawn_monitor(fun() -> tell(Me) end),
    erlang:trace(self(), true, [call, {tracer, T}]),
    R = [try erlang:trace_pattern({?MODULE, called, '_'}, [{H, G, [{message, '$_'}]}], [global]) catch C:E -> {C, E} end
         || {H, G} <- [{[1 | '_'], []}, {['$1', '$2' | '_'], [{'<', '$1', '$2'}]}]],
    io:format("~p~n", [R]),
    [?MODULE:called(A) || A <- [1, 2]],
    [?MODULE:called(A, B) || A <- [1, 2], B <- [1, 3]],
    ?MODULE:called(1, 2, 3),
    ?MODULE:called(3, 2, 1),
    erlang:trace(self(), false, [call]),
    erlang:trace_pattern({?MODULE, called, '_'}, false, [global]),
    D = erlang:trace_delivered(self()),
    receive {trace_delivered, _, D} -> ok end,
    T ! stop,
    receive {'DOWN', M, process, T, Told} -> io:format("~p~n", [Told]) end.

tell(To) -> tell(To, []).
tell(To, L) ->
    receive
        stop -> exit(lists:reverse(L));
        {trace, To, call, {_, F, As}, What} -> tell(To, [{F, As, What} | L]);
        Other -> tell(To, [Other | L])
    end.

called(_, _) -> ok.
called(_, _, _) -> ok.

functions() ->
    [{ceil, 1}, {floor, 1}, {is_bitstring, 1}, {tuple_size, 1}, {is_boolean, 1}, {is_function, 2}, {min, 2}, {max, 2}, {is_integer, 3},
     {is_record, 1}, {is_record, 2}, {tuple_size, 2}].

values() ->
    [1, 1.5, -2.5, 2.5, -0.4, 1.0e22, foo, true, "ab", <<1, 2>>, <<1:3>>, {a, b}, {}, [], #{a => 1}, fun lists:map/2, 1 bsl 70].

functions(F, N, Kind) ->
    io:format("~p/~p ~p: ~p~n", [F, N, Kind, [value(F, N, Kind, V) || V <- values()]]).

value(F, N, Kind, V) ->
    Call = list_to_tuple([F | lists:sublist(['$1', 2, 5], N)]),
    tried(fun() -> case Kind of
        table -> erlang:match_spec_test({V}, [{{'$1'}, [], [Call]}], table);
        trace -> erlang:match_spec_test([V], [{['$1'], [], [{message, Call}]}], trace)
    end end).

tried(F) ->
    try F() of
        {ok, Result, _, _} -> {Result};
        {error, Texts} -> Texts;
        Other -> Other
    catch _:Reason -> Reason end.

bodies() ->
    [{current_stacktrace, 1, 2}, {current_stacktrace, -1}, {current_stacktrace, 1 bsl 70}, {current_stacktrace, '$1'}, {current_stacktrace, []},
     {is_function, fun lists:map/2, -1}, {is_function, 1, -1}, {is_function, fun lists:map/2, 1 bsl 70}, {is_function, fun lists:map/2, a},
     {is_function, fun lists:map/2, 258}, {is_integer, 1 bsl 70, 0, 1 bsl 71}, {is_integer, 1, 0, a}, {is_integer, a, 0.0, 5},
     {is_integer, a, 9, 5}, {is_integer, 5, 5, 5}, {is_integer, 6, 5, 5}, {max, 1, 1.0}, {min, 1, 1.0}, {max, 1.0, 1}, {min, 1.0, 1}].

refused(Body) ->
    io:format("~p: ~p~n", [Body, [
        tried(fun() -> erlang:match_spec_test([1, 2], [{'_', [], [{message, Body}]}], trace) end),
        tried(fun() -> erlang:match_spec_test([1, 2], [{'_', [Body], []}], trace) end),
        tried(fun() -> erlang:match_spec_test({1, 2}, [{'_', [], [Body]}], table) end)]]).

messages(What, Body) ->
    io:format("~p ~p ~p~n", [What, Body, tried(fun() -> erlang:trace_pattern(What, [{'_', [], [{message, Body}]}], []) end)]),
    erlang:trace_pattern(What, true, []).

%% Stacks of a call that is traced, and of a trial.
stacks() ->
    Me = self(),
    {Pid, Ref} = spawn_monitor(fun() -> receive go -> calls() end, Me ! done end),
    erlang:trace(Pid, true, [call]),
    Pid ! go,
    drain(Ref),
    io:format("~p~n", [in(erlang:match_spec_test([1], [{'_', [], [{message, {current_stacktrace}}]}], trace))]),
    io:format("~p~n", [1 + deep(5, fun() -> in(erlang:match_spec_test([1], [{'_', [], [{message, {current_stacktrace, 2}}]}], trace)) end)]).

calls() ->
    [begin
         T = tried(fun() -> erlang:trace_pattern({?MODULE, called, 1}, [{'_', [], [{message, S}]}], [local]) end),
         io:format("~p ~p~n", [S, T]),
         _ = {1, outer(3)},
         _ = {1, deep(20000, fun() -> called(S) end)}
     end || S <- [{current_stacktrace}, {current_stacktrace, 0}, {current_stacktrace, 1}, {current_stacktrace, 2}, {current_stacktrace, 9999}]].

outer(0) -> called(1) + 0;
outer(N) -> 1 + odd(N - 1).
odd(0) -> called(2) + 0;
odd(N) -> 1 + outer(N - 1).

deep(0, F) -> io:format("~p~n", [F()]), 0;
deep(N, F) -> 1 + deep(N - 1, F).

called(X) -> X.

drain(Ref) ->
    receive
        {trace, _, call, {_, called, _}, Stack} -> io:format("~p~n", [in({ok, Stack, [], []})]), drain(Ref);
        {trace, _, call, Call} -> io:format("~p~n", [Call]), drain(Ref);
        {'DOWN', Ref, _, _, Why} when is_atom(Why) -> io:format("~p~n", [Why]);
        {'DOWN', Ref, _, _, {Why, _}} -> io:format("~p~n", [Why]);
        done -> drain(Ref)
    end.

%% Entries of this module, with their lines.
in({ok, Stack, _, _}) when is_list(Stack) -> [{F, N, proplists:get_value(line, L)} || {?MODULE, F, N, L} <- Stack, F =/= main, F =/= stacks];
in(Other) -> Other.

hosts() ->
    ["http://[::1]/", "http://[::1]:80/a", "http://[::1", "http://[::1]x/y", "http://[::1]:/y", "https://[2001:db8::1]", "https://[2001:db8::1]:99",
     "http://a:b:80/x", "http://[]:1/", "http://[a]b:1/", "http://a]:1/", "http://[::1]:1x/", "http://:1/", "http://[/]:1/", "http://x[::1]:1/",
     "HTTP://[::1]:8/", "http://[::1]:-5/q", "http://[", "http://]", "http://[]"].

request(Host) ->
    io:format("~s ~p~n", [Host, tried(fun() -> erlang:decode_packet(http_bin, iolist_to_binary(["GET ", Host, " HTTP/1.1\r\n"]), []) end)]).
