%% Only the code purger may take the steps of a purge, since anyone else could free running code.
-module(purge_steps).
-export([main/0]).

main() ->
    code:load_binary(ps_m, "ps_m.erl", comp("f(P) -> P ! up, receive go -> ok end, L = [X * 2 || X <- lists:seq(1, 10)], P ! {sum, lists:sum(L)}, f(P).\n")),
    Me = self(),
    Pid = spawn(fun() -> ps_m:f(Me) end),
    receive up -> ok end,
    code:load_binary(ps_m, "ps_m.erl", comp("g() -> 1.\n")),
    io:format("~p~n", [step(prepare)]),
    io:format("~p~n", [step(complete)]),
    io:format("~p~n", [step(abort)]),
    [code:load_binary(M, "", comp(M, "f(P) -> P ! {other, P, [], 1}.\n")) || I <- lists:seq(1, 20), M <- [list_to_atom("ps_x" ++ integer_to_list(I))]],
    Pid ! go,
    receive {sum, S} -> io:format("~p~n", [S]) end.

step(S) ->
    try erts_internal:purge_module(ps_m, S) catch C:R -> {C, R} end.

comp(S) -> comp(ps_m, S).
comp(M, S) ->
    {ok, Ts, _} = erl_scan:string("-module(" ++ atom_to_list(M) ++ ").\n-compile(export_all).\n" ++ S),
    {ok, _, B} = compile:forms([element(2, erl_parse:parse_form(F)) || F <- split(Ts, [], [])], [binary]),
    B.

split([], _, Acc) -> lists:reverse(Acc);
split([{dot, _} = D | R], Cur, Acc) -> split(R, [], [lists:reverse([D | Cur]) | Acc]);
split([T | R], Cur, Acc) -> split(R, [T | Cur], Acc).
