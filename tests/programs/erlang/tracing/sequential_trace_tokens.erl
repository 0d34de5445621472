%% Checks sequential tracing: tokens, their components, and the messages that carry them.
-module(sequential_trace_tokens).
-export([main/0]).

main() ->
    T = spawn(fun() -> collect([]) end),
    Echo = spawn(fun() -> echo() end),
    Plain = spawn(fun() -> receive {P, go} -> P ! plain end end),
    Held = spawn(fun() -> receive {P, token} -> P ! {held, token()} end end),
    Quiet = spawn(fun() -> process_flag(sensitive, true), echo() end),
    R0 = [catch seq_trace:get_token(I) || I <- [label, serial, send, 'receive', print, timestamp]],
    R1 = [tag(fun() -> erlang:seq_trace_info(sequential_trace_token) end),
          tag(fun() -> erlang:seq_trace(send, 'maybe') end), tag(fun() -> erlang:seq_trace(foo, true) end),
          tag(fun() -> erlang:seq_trace(serial, 1) end),
          tag(fun() -> erlang:seq_trace(sequential_trace_token, 1) end),
          erlang:seq_trace_print(nothing), erlang:seq_trace_print(1, nothing),
          seq_trace:get_system_tracer(), seq_trace:set_system_tracer(T)],
    R2 = [seq_trace:set_token(label, {17, "x"}), seq_trace:get_token(label), seq_trace:get_token(serial), token(),
          [seq_trace:set_token(F, true) || F <- [send, 'receive', print]], token()],
    _ = [seq_trace:print(first), erlang:seq_trace_print({17, "x"}, second), erlang:seq_trace_print(18, never)],
    Echo ! {self(), m1},
    receive {Echo, m1} -> ok end,
    R3 = token(),
    Held ! {self(), token},
    R4 = receive {held, H} -> H end,
    self() ! own,
    receive own -> ok end,
    erlang:send_after(1, self(), timed),
    receive timed -> ok end,
    A = alias(),
    A ! through,
    receive through -> ok end,
    register(sequential_trace_tokens, self()),
    sequential_trace_tokens ! named,
    {sequential_trace_tokens, node()} ! named_too,
    receive named -> ok end,
    receive named_too -> ok end,
    Quiet ! {self(), hidden},
    receive {Quiet, hidden} -> ok end,
    R5 = [token(), seq_trace:get_token(serial)],
    %% A message that is sent without a token takes it away.
    Old = seq_trace:set_token([]),
    Plain ! {self(), go},
    seq_trace:set_token(label, lost),
    receive plain -> ok end,
    R6 = [token(), seq_trace:set_token(Old), token(), strip(seq_trace:set_token([])), token()],
    seq_trace:set_token(serial, {5, 9}),
    R7 = [token(), seq_trace:set_token(serial, {1, 2})],
    seq_trace:set_token(send, true),
    Echo ! {self(), last},
    receive {Echo, last} -> ok end,
    R8 = token(),
    seq_trace:set_token(label, timed),
    seq_trace:set_token(monotonic_timestamp, true),
    self() ! with_time,
    receive with_time -> ok end,
    seq_trace:reset_trace(),
    R9 = token(),
    [io:format("~p~n", [R]) || R <- [R0, R1, R2, R3, R4, R5, R6, R7, R8, R9]],
    T ! {events, self()},
    receive {told, L} -> ok end,
    Names = [{self(), me}, {Echo, echo}, {Held, held}, {Quiet, quiet}],
    [io:format("~p~n", [named(E, Names)]) || E <- L],
    io:format("~p~n", [seq_trace:set_system_tracer(false) =:= T]).

tag(F) -> try F() catch C:R -> {C, R} end.

token() -> strip(seq_trace:get_token()).
strip({F, L, S, P, N}) when is_pid(P) -> {F, L, S, N};
strip(X) -> X.

echo() -> receive {P, X} -> P ! {self(), X}, echo() end.

collect(L) ->
    receive
        {events, To} -> To ! {told, lists:reverse(L)};
        M -> collect([M | L])
    end.

named({seq_trace, L, I, Time}, N) when is_integer(Time) -> {named({seq_trace, L, I}, N), time};
named(T, N) when is_pid(T) -> proplists:get_value(T, N, other);
named(T, _) when is_reference(T) -> ref;
named(T, N) when is_tuple(T) -> list_to_tuple([named(E, N) || E <- tuple_to_list(T)]);
named(T, _) -> T.
