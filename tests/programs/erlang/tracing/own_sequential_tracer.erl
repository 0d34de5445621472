%% A process that is its own sequential tracer is not sent what it does itself, and its messages
%% take no serial numbers. What others do with its token is traced.
-module(own_sequential_tracer).
-export([main/0]).

main() ->
    Echo = spawn(fun Loop() -> receive {P, X} -> P ! {answer, X}, Loop(); _ -> Loop() end end),
    Me = self(),
    traced("sent", fun() -> Echo ! a, erlang:send(Echo, b, []) end),
    traced("answered", fun() -> Echo ! {Me, x}, receive {answer, x} -> ok end, Echo ! {Me, y}, receive {answer, y} -> ok end end),
    traced("printed", fun() -> seq_trace:print(hello), Echo ! {Me, x}, receive {answer, x} -> ok end, seq_trace:print(again) end),
    traced("to itself", fun() -> self() ! m, receive m -> ok end end),
    ok.

traced(Name, F) ->
    Me = self(),
    seq_trace:reset_trace(),
    seq_trace:set_system_tracer(Me),
    [seq_trace:set_token(I, V) || {I, V} <- [{label, 7}, {send, true}, {'receive', true}, {print, true}]],
    F(),
    Token = seq_trace:get_token(),
    seq_trace:set_token([]),
    receive after 30 -> ok end,
    seq_trace:set_system_tracer(false),
    io:format("~s: ~0p, token ~0p~n", [Name, [plain(E, Me) || E <- events()], plain(Token, Me)]).

events() -> receive {seq_trace, _, _} = E -> [E | events()] after 0 -> [] end.

plain(P, P) -> me;
plain(P, _) when is_pid(P) -> pid;
plain(P, _) when is_port(P) -> port;
plain(R, _) when is_reference(R) -> ref;
plain(F, _) when is_function(F) -> function;
plain(T, Me) when is_tuple(T) -> list_to_tuple(plain(tuple_to_list(T), Me));
plain([H | T], Me) -> [plain(H, Me) | plain(T, Me)];
plain(X, _) -> X.
