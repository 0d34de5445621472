%% Checks natives that changed in later releases: the order of objects in bags, heirs that get no
%% message, signals to oneself, searches in empty subjects, messages of ports, error texts about
%% coverage, printing of large maps, daylight saving time in zones that have none, a process that
%% traces itself, and sizes of terms. @stress @shared @fence
-module(changed_natives).
-export([main/0, traced/1]).

main() ->
    logger:set_primary_config(level, none),
    [io:format("~w: ~0p~n", [F, try t(F) catch C:R -> {C, R} end])
     || F <- [bags, heirs, heir_ends, heir_refused, defaults, signals, trapped, collected, builtin, shown, summer, traced, sizes, debugger, texts, numbers, whole_bytes, patterns, searched, port_sends, dictionary, line_ends, services]].

rel() -> list_to_integer(erlang:system_info(otp_release)).

t(bags) ->
    [begin
         T = ets:new(t, [K]),
         ets:insert(T, [{k, I} || I <- lists:seq(1, 9)]),
         ets:insert(T, [{l, 1}, {k, 2}, {k, 10}, {l, 2}]),
         {K, ets:lookup(T, k), ets:lookup_element(T, l, 2), ets:insert_new(T, [{m, 1}, {m, 2}]), ets:lookup(T, m)}
     end || K <- [bag, duplicate_bag]];
t(heirs) ->
    T = ets:new(t, [{heir, self()}]),
    U = ets:new(t, [{heir, self(), told}, public]),
    {ets:info(T, heir) =:= self(), ets:info(T, memory) > 0, ets:setopts(U, {heir, self()}), ets:info(U, heir) =:= self(), ets:setopts(U, {heir, none}), ets:info(U, heir)};
t(heir_ends) ->
    Me = self(),
    [begin
         {P, R} = spawn_monitor(fun() -> N = ets:new(heritage, [named_table, public, Option(Me)]), ets:insert(N, {large, lists:seq(1, 3000)}), exit(done) end),
         receive {'DOWN', R, process, P, W} -> ok end,
         M = receive {'ETS-TRANSFER', Tab, P, Data} -> {Tab, Data} after 0 -> not_told end,
         Seen = {W, M, ets:info(heritage, owner) =:= Me, catch length(ets:lookup_element(heritage, large, 2))},
         catch ets:delete(heritage),
         Seen
     end || Option <- [fun(H) -> {heir, H} end, fun(H) -> {heir, H, {some, [data]}} end, fun(_) -> {heir, none} end]];
t(heir_refused) ->
    [try ets:new(t, [O]) of T -> ets:info(T, heir) catch error:R -> R end || O <- [{heir}, {heir, x}, {heir, none, 1}, {heir, make_ref()}]];
t(defaults) ->
    T = ets:new(t, [{keypos, 2}]),
    [try ets:F(T, k, Op, D) catch error:R:S -> {R, lists:keyfind(error_info, 1, element(4, hd(S)))} end
     || {F, Op} <- [{update_counter, {3, 1}} | [{update_element, {3, x}} || rel() >= 27]], D <- [x, {a, k, 0} | [S || rel() >= 29, S <- [{}, {a}]]]];
t(signals) ->
    case erlang:function_exported(erlang, exit_signal, 2) of
        true ->
            [begin
                 {P, R} = spawn_monitor(fun() -> F(), exit(went_on) end),
                 receive {'DOWN', R, process, P, W} -> W end
             end || F <- [fun() -> erlang:exit_signal(self(), normal) end, fun() -> erlang:exit_signal(self(), normal, [priority]) end,
                          fun() -> erlang:exit_signal(self(), normal, [x]) end, fun() -> exit(self(), normal) end, fun() -> erlang:exit_signal(list_to_pid("<0.999999.0>"), normal) end]];
        false -> none
    end;
t(trapped) ->
    case erlang:function_exported(erlang, exit_signal, 2) of
        true ->
            process_flag(trap_exit, true),
            R = erlang:exit_signal(self(), normal),
            M = receive {'EXIT', P, W} -> {P =:= self(), W} after 2000 -> none end,
            process_flag(trap_exit, false),
            {R, M};
        false -> none
    end;
t(collected) -> [try erlang:garbage_collect(self(), [{type, T}]) catch error:R -> R end || T <- [major, minor, other, 1]];
t(builtin) -> [erlang:is_builtin(erlang, F, A) || {F, A} <- [{min, 2}, {max, 2}, {min, 1}, {self, 0}, {alias, 0}, {nothing, 0}]];
t(shown) ->
    %% In both orders the same pairs.
    M = maps:from_list([{I, I} || I <- lists:seq(1, 50)]),
    case rel() >= 26 of
        true -> {erts_internal:term_to_string(M, undefined), erts_internal:term_to_string([#{a => 1}, M], undefined)};
        false -> none
    end;
t(summer) -> [try erlang:localtime_to_universaltime({{2020, Mo, 1}, {12, 0, 0}}, D) catch error:R -> R end || Mo <- [1, 7, 13], D <- [true, false, undefined, x]];
t(traced) ->
    erlang:trace(self(), true, [call]),
    erlang:trace_pattern({?MODULE, traced, 1}, [{'_', [], [{return_trace}]}], [local]),
    ?MODULE:traced(1),
    erlang:trace(self(), false, [call]),
    erlang:trace_pattern({?MODULE, traced, 1}, false, [local]),
    {receive M -> M after 0 -> nothing end,
     [try erlang:trace_pattern(A, B, C) catch error:R:S -> {R, lists:keyfind(error_info, 1, element(4, hd(S)))} end
      || {A, B, C} <- [{foo, bar, baz}, {foo, bar, []}, {foo, true, baz}, {{lists, seq, 2}, bar, [x]}, {{lists, seq, 2}, [{x}], [x]}, {send, bar, [x]}]]};
t(sizes) ->
    B = binary:copy(<<"0123456789">>, 100),
    X = id(1),
    [erts_debug:flat_size(T) || T <- [B, {B, B}, binary:part(B, 1, 100), binary:part(B, 1, 10), <<1>>, <<1:3>>, <<0:64/unit:8>>, fun lists:reverse/1, fun() -> X end, fun() -> {X, B} end,
                                      #{a => B}, [binary:part(list_to_binary([B]), 0, 64), binary:part(B, 0, 65)]]]
        ++ [erts_debug:size(T) || T <- [{B, B}, [X, X], fun() -> X end]];
t(debugger) ->
    case code:ensure_loaded(erl_debugger) of
        {module, _} -> [try apply(erl_debugger, F, A) catch C:R:S -> {C, R, element(1, hd(S)), element(2, hd(S))} end || {F, A} <- [{supported, []}, {whereis, []}, {register, [self()]}, {breakpoint, [lists, 1, true]}]];
        _ -> none
    end;
t(texts) ->
    [try apply(code, F, A) of V -> V
     catch error:R:S -> {F, R, try maps:to_list(erl_kernel_errors:format_error(R, S)) catch _:_ -> none end}
     end || rel() >= 27, {F, A} <- [{get_coverage, [function, lists]}, {get_coverage, [x, lists]}, {get_coverage, [line, no_such]}, {set_coverage_mode, [x]}, {set_coverage_mode, [1]},
                                    {reset_coverage, [lists]}, {reset_coverage, [no_such]}, {get_coverage_mode, [1]}, {get_coverage_mode, [no_such]}]];
t(numbers) ->
    Large = [428654966685883400000, 1 bsl 64, (1 bsl 64) - 1, (1 bsl 64) + 1, (1 bsl 117) + (1 bsl 64), (1 bsl 117) + (1 bsl 64) + 1, (1 bsl 117) + (3 bsl 64), (1 bsl 1024) - (1 bsl 970) - 1,
             (1 bsl 1024) - (1 bsl 970), (1 bsl 1023), 3 bsl 900, 12345678901234567890123456789012345678901234567890],
    rand:seed(exsss, {1, 2, 3}),
    Random = [rand:uniform(1 bsl N) || N <- lists:seq(65, 1020, 7)],
    {abs(id(-0.0)), abs(id(-1.5)), [try float(id(S * N)) catch error:R -> R end || N <- Large, S <- [1, -1]], erlang:phash2([float(N) || N <- Random]), id(2.5) * hd(Large)};
t(whole_bytes) ->
    [try F() catch error:R -> R end || F <- [fun() -> binary_part(id(<<1:3>>), 0, 0) end, fun() -> binary_part(id(<<5, 1:3>>), {0, 1}) end, fun() -> binary:part(id(<<1:3>>), 0, 0) end,
                                             fun() -> erlang:decode_packet(1, id(<<1:3>>), []) end, fun() -> erlang:decode_packet(raw, id(<<7, 1:3>>), []) end,
                                             fun() -> {erlang:external_size(fun id/1), byte_size(term_to_binary(fun id/1))} end]];
t(patterns) ->
    {ok, {re_pattern, 0, 0, 0, P}} = re:compile("a"),
    {ok, {re_pattern, 0, 0, 0, Q}} = re:compile("a"),
    T = ets:new(t, []),
    ets:insert(T, {k, {re_pattern, 0, 0, 0, P}}),
    erlang:garbage_collect(),
    Me = self(),
    spawn_link(fun() -> Me ! re:run("bab", ets:lookup_element(T, k, 2)) end),
    {is_reference(P), is_binary(P), P =:= Q, receive R -> R end, re:run("cab", ets:lookup_element(T, k, 2), [{capture, all, list}]), catch re:run("a", {re_pattern, 0, 0, 0, make_ref()}),
     [re:compile(B) || rel() >= 28, B <- [")", "a)", "[z-a]", "*", "a**", "(?<1n>a)", "\\1", "(?z)", "[:alpha:]", "\\x{zz}", "\\o{9}", "(*", "(?P=n)", "\\g{x}", "(?(1)a|b|c)", "(?1)", "\\u0041", "\\N{U+41}", "\\N{name}", "(", "[a", "a{2,1}"]]};
%% Nothing is found in an empty binary, or where the scope is empty; since OTP 27 the pattern must
%% be one all the same.
t(searched) ->
    [try F() catch C:R -> {C, R} end
     || F <- [fun() -> binary:match(<<>>, foobar) end, fun() -> binary:match(<<"abc">>, foobar, [{scope, {0, 0}}]) end,
              fun() -> binary:matches(<<>>, foobar) end, fun() -> binary:match(<<>>, []) end, fun() -> binary:match(<<>>, <<>>) end,
              fun() -> binary:replace(<<>>, foobar, <<>>) end, fun() -> binary:split(<<"abc">>, foobar, [{scope, {0, 0}}]) end,
              fun() -> binary:split(<<>>, <<"a">>) end, fun() -> binary:match(<<>>, {bm, make_ref()}) end,
              fun() -> binary:match(<<>>, binary:compile_pattern(<<"a">>)) end, fun() -> binary:match(<<"abc">>, foobar, [{scope, {1, 0}}]) end]];
%% The checksum of a dictionary, which was signed.
t(dictionary) ->
    Z = zlib:open(),
    ok = zlib:deflateInit(Z),
    S = zlib:deflateSetDictionary(Z, binary:copy(<<255>>, 16)),
    I = zlib:open(),
    ok = zlib:inflateInit(I),
    {S, try zlib:inflate(I, zlib:deflate(Z, "hello", finish)) catch error:R -> R end};
%% Zeros that end lines, since OTP 28.
t(line_ends) ->
    [try re:run(<<"a", 0, "b\nc">>, P, [{newline, nul}, multiline, {capture, all, binary} | O]) catch error:R -> R end
     || P <- ["^b", "a$", "^.*$", "c$", "a.b", "b.c", "\\N+", "\\R"], O <- [[], [global], [dotall], [unicode]]];
%% Whether what a port sends is told where no sending is, and where a specification leaves it out.
t(port_sends) ->
    [begin
         erlang:trace_pattern(send, S, []),
         P = open_port({spawn, "cat"}, [binary]),
         erlang:trace(P, true, [send, 'receive']),
         P ! {self(), {command, "hi"}},
         receive {P, {data, _}} -> ok end,
         P ! {self(), close},
         receive {P, closed} -> ok end,
         R = erlang:trace_delivered(all),
         receive {trace_delivered, all, R} -> ok end,
         erlang:trace_pattern(send, true, []),
         told(P)
     end || S <- [true, false, [{['_', '_'], [], []}], [{[a, b], [], []}]]];
t(services) ->
    {ok, S} = socket:open(inet, dgram, udp),
    R = [begin ok = socket:setopt(S, {ip, tos}, V), socket:getopt(S, {ip, tos}) end || V <- [0, 2, 4, 8, 16, 32, 184, 255, lowdelay, mincost | [P || rel() >= 29, P <- [cs1, ef, le, nqb, af43]]]],
    N = [socket:setopt(S, {ip, tos}, V) || V <- [cs9, {}, "x" | [cs1 || rel() < 29]]],
    socket:close(S),
    {ok, C} = socket:open(inet, stream, tcp),
    {_, K} = {ok, [{O, socket:setopt(C, O, 7), socket:getopt(C, O)} || O <- [{tcp, keepcnt}, {tcp, keepidle}, {tcp, user_timeout}]]},
    O = [{socket:setopt(C, N1, true), socket:getopt(C, N1)} || rel() >= 29, N1 <- [{socket, timestampns}, {otp, select_read}]],
    I = [socket:ioctl(C, A) || rel() >= 27, A <- [nread, atmark]],
    socket:close(C),
    {R, N, K, O, I, [socket:is_supported(options, L, X) || {L, X} <- [{tcp, keepcnt}, {tcp, user_timeout}, {socket, timestampns}], rel() >= 29]}.

told(P) -> receive T when element(2, T) =:= P -> [element(3, T) | told(P)] after 0 -> [] end.

traced(X) -> X + 1.

id(X) -> X.
