%% Checks what later releases report about themselves and about processes, the largest possible
%% integer, and line numbers too large to be recorded. @stress @shared @fence
-module(release_information).
-export([main/0]).

main() ->
    [io:format("~w: ~0P~n", [F, try t(F) catch C:R -> {C, R} end, 60]) || F <- [system, process, async_dist, priority, integers, lines]].

cause(F) -> try F() catch C:R -> {C, R} end.

t(system) -> [{K, cause(fun() -> shape(erlang:system_info(K)) end)} || K <- [async_dist, halt_flush_timeout, max_integer, nobody_knows]];
t(process) -> [cause(fun() -> process_info(self(), K) end) || K <- [async_dist, priority_messages, [async_dist, priority], nobody_knows]];
t(async_dist) ->
    case older(26) of
        true -> none;
        false ->
            P = fun(Options) -> Q = spawn_opt(fun() -> receive stop -> ok end end, Options), V = process_info(Q, async_dist), Q ! stop, V end,
            [P([{async_dist, true}]), P([{async_dist, false}]), P([]), cause(fun() -> P([{async_dist, 1}]) end),
             process_flag(async_dist, true), process_info(self(), async_dist), P([]), process_flag(async_dist, false), process_info(self(), [async_dist, trap_exit]),
             cause(fun() -> process_flag(async_dist, maybe_so) end)]
    end;
t(priority) ->
    case older(28) of
        true -> none;
        false ->
            Told = fun() -> element(2, process_info(self(), priority_messages)) end,
            A = [Told()],
            X = apply(erlang, alias, [[priority]]), B = [Told()], unalias(X), C = [Told()],
            {P, R} = spawn_monitor(fun() -> receive stop -> ok end end),
            D = [Told()],
            M = apply(erlang, monitor, [process, P, [priority]]), E = [Told()],
            erlang:demonitor(M), F = [Told()],
            apply(erlang, link, [P, [priority]]), G = [Told()],
            unlink(P), H = [Told()],
            P ! stop, receive {'DOWN', R, _, _, W} -> ok end,
            {A, B, C, D, E, F, G, H, W}
    end;
t(integers) ->
    Bits = case older(27) of true -> 64 * (1 bsl 19 - 1); false -> 64 * (1 bsl 16 - 1) end,
    Max = ((1 bsl (Bits - 1)) - 1) + (1 bsl (Bits - 1)),
    Limit = fun(F) -> try F() of N when is_integer(N) -> {bits, N < 0}; X -> X catch C:R -> {C, R} end end,
    <<131, 111, Size:32, 0, Digits/binary>> = T = term_to_binary(Max),
    [Size, Max =:= cause(fun() -> erlang:system_info(max_integer) end), binary_to_term(T) =:= Max,
     Limit(fun() -> binary_to_term(<<131, 111, (Size + 8):32, 0, Digits/binary, 1:64/little>>) end),
     [{F, Limit(fun() -> apply(erlang, F, A) end)} || {F, A} <- [{'+', [Max, 1]}, {'-', [-Max, 1]}, {'+', [Max, -1]}, {'-', [Max]}, {'*', [Max, 2]}, {'*', [Max, 1 bsl 64]},
                                                                 {'bnot', [Max]}, {'bnot', [-Max]}, {'bsl', [Max, 1]}, {'bsl', [1, Bits - 1]}, {'bsl', [1, Bits]},
                                                                 {'bsl', [-1, Bits]}, {'bor', [Max, 1]}, {'div', [Max, -1]}]]];
t(lines) ->
    [begin
         Form = {function, 1, f, 1, [{clause, L, [{var, L, 'X'}], [], [{call, L, {atom, L, error}, [{tuple, L, [{var, L, 'X'}]}]}]}]},
         {ok, M, Beam} = compile:forms([{attribute, 1, module, r_asked_line}, {attribute, 1, file, {"far.erl", 1}}, {attribute, 1, export, [{f, 1}]}, Form], []),
         {module, M} = code:load_binary(M, "", Beam),
         Where = try M:f(1) catch error:_:S -> element(4, hd(S)) end,
         code:purge(M), code:delete(M), code:purge(M),
         Where
     end || L <- [16777213, 16777214, 16777215, 16777216, 1000000000]].

older(Release) -> list_to_integer(erlang:system_info(otp_release)) < Release.
shape(N) when is_integer(N) -> {integer, N > 1 bsl 100};
shape(T) -> T.
