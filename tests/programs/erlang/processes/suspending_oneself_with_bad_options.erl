%% Calls `erlang:suspend_process/2` with two wrong arguments. The process is checked before the
%% options.
-module(suspending_oneself_with_bad_options).
-export([main/0]).

main() ->
    Dead = spawn(fun() -> ok end),
    M = monitor(process, Dead),
    receive {'DOWN', M, _, _, _} -> ok end,
    Far = binary_to_term(<<131, 88, 119, 3, "a@b", 1:32, 0:32, 1:32>>),
    Lives = spawn(fun() -> receive x -> ok end end),
    [io:format("~p ~p ~p~n", [N, O, suspended(P, O)])
     || {N, P} <- [{self, self()}, {dead, Dead}, {lives, Lives}, {far, Far}, {atom, a}],
        O <- [[x], [], x, [asynchronous | x], [asynchronous], [unless_suspending, asynchronous], [{asynchronous, t}]],
        %% A process of another node may be looked for.
        N =/= far orelse O =/= []],
    io:format("~p~n", [[suspended(P) || P <- [self(), Dead, a]]]).

suspended(P, O) -> told(fun() -> erlang:suspend_process(P, O) end).
suspended(P) -> told(fun() -> erlang:suspend_process(P) end).

told(F) ->
    try F()
    catch error:E:S ->
        [{erlang, suspend_process, _, I} | _] = S,
        {E, proplists:get_value(error_info, I), erl_erts_errors:format_error(E, S)}
    end.
