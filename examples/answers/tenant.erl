-module(tenant).
-export([main/0]).

main() ->
    {ok, B} = purlin:budget(#{name => tenant, memory => 16 bsl 20, cpu => 10,
                              processes => 100, messages => 1000, atoms => 500}),
    Run = fun(F) ->
        {_, R} = spawn_opt(F, [{budget, B}, monitor]),
        receive {'DOWN', R, _, _, Why} -> io:format("ended: ~p~n", [Why])
        after 5000 -> io:format("still there~n") end
    end,
    Run(fun() -> exit(lists:sum(lists:seq(1, 1000))) end),
    Run(fun() -> grow([]) end),
    Run(fun() -> fork(0) end),
    Run(fun() -> busy() end),
    #{use := Use, peak := Peak, reached := Reached} = purlin:budget_info(B),
    io:format("use ~p~npeak ~p~nreached ~p~n", [Use, Peak, Reached]),
    purlin:end_budget(B).

grow(L) -> grow([L, make_ref() | L]).
fork(N) ->
    try spawn(fun() -> timer:sleep(infinity) end) of _ -> fork(N + 1)
    catch error:system_limit -> exit({made, N}) end.
busy() -> busy().
