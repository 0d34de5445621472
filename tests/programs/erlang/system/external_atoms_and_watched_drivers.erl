%% Checks rarely used natives: external terms that refer to atoms of a tuple, and monitors of
%% drivers that are removed.
-module(external_atoms_and_watched_drivers).
-export([main/0]).

main() ->
    [io:format("~p: ~p~n", [{A, B}, try erts_debug:dist_ext_to_term(A, B) catch C:E -> {C, E} end]) ||
        {A, B} <- [{{a, b}, <<131, 104, 2, 82, 0, 82, 1>>}, {{a, b}, <<104, 2, 82, 0, 82, 1>>}, {{a}, <<131, 82, 1>>},
                   {{}, <<131, 97, 7>>}, {x, <<131, 97, 7>>}, {{a}, x}, {{1}, <<131, 82, 0>>}, {{a}, <<131, 104>>},
                   {{long}, <<131, 108, 0, 0, 0, 2, 82, 0, 82, 0, 106>>}]],
    io:format("~p ~p~n", [erl_ddll:demonitor(make_ref()), try erl_ddll:demonitor(x) catch C:E -> {C, E} end]),
    M = erl_ddll:monitor(driver, {no_such_driver, loaded}),
    io:format("~p ~p~n", [receive {'DOWN', M, driver, N, W} -> {N, W} after 5000 -> none end, erl_ddll:demonitor(M)]).
