%% An alias that was encoded and decoded is the same alias, and messages to it arrive while it is
%% active. @stress
-module(aliases_as_external_terms).
-export([main/0]).

main() ->
    {_, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    io:format("~p~n", [[words(R) || R <- [alias(), alias([reply]), erlang:monitor(process, self(), [{alias, explicit_unalias}]), Monitor]]]),
    A = alias(),
    io:format("again: ~p~n", [sent(again(A))]),
    unalias(A),
    io:format("ended: ~p~n", [sent(again(A))]),
    B = alias([reply]),
    io:format("reply: ~p ~p~n", [sent(again(B)), sent(again(B))]),
    {Pid, C} = spawn_monitor(fun() -> receive stop -> ok end end),
    io:format("no alias: ~p~n", [sent(again(C))]),
    Pid ! stop,
    receive {'DOWN', C, _, _, _} -> ok end,
    Self = self(),
    D = erlang:monitor(process, spawn(fun() -> receive after infinity -> ok end end), [{alias, demonitor}]),
    D2 = again(D),
    io:format("monitor: ~p~n", [sent(D2)]),
    %% Another process can't take it away.
    spawn_link(fun() -> Self ! {unalias, unalias(D2)} end),
    io:format("~p~n", [receive {unalias, U} -> U end]),
    io:format("still: ~p~n", [sent(again(D))]),
    demonitor(D2),
    io:format("demonitored: ~p~n", [sent(again(D))]),
    %% From another process, and after its own has ended.
    {P3, M3} = spawn_monitor(fun() -> E = alias(), Self ! {alias, term_to_binary(E)}, receive {hello, E} -> Self ! got end end),
    {alias, T} = receive {alias, _} = X -> X end,
    E = binary_to_term(T),
    E ! {hello, E},
    io:format("~p~n", [receive got -> got after 1000 -> lost end]),
    receive {'DOWN', M3, _, P3, Why} -> io:format("~p~n", [Why]) end,
    io:format("~p~n", [binary_to_term(T) ! nobody]).

words(R) ->
    <<131, 90, N:16, _/binary>> = B = term_to_binary(R),
    {N, byte_size(B), binary_to_term(B) =:= R}.

again(R) -> binary_to_term(term_to_binary(R)).

sent(R) ->
    R ! {sent, R},
    receive {sent, R} -> arrived after 50 -> lost end.
