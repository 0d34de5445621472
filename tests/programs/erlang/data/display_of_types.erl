%% Checks `erlang:display/1` for terms of each type. @stress
-module(display_of_types).
-export([main/0]).

main() ->
    [erlang:display(T) || T <- [atom, 'A b', "string", "", [], [1, 2], [1 | 2], {display, {}}, 1.5, -0.0, 1.0e100, 1 bsl 100,
                                <<1, 2>>, <<"text">>, <<5:3>>, #{a => b}, #{}, fun lists:map/2, lists:seq(1, 200), true,
                                list_to_atom([228, 26085]), [[[["deep"]]]], "tab\tnewline\n"]].
