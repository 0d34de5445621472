%% Traces a port from its opening, with a name longer than any atom.
-module(port_traced_from_opening).
-export([main/0]).

main() ->
    erlang:trace(new_ports, true, [ports]),
    P = open_port({spawn, "true " ++ lists:duplicate(300, $x)}, []),
    receive
        {trace, P, open, By, Name} -> io:format("~p ~p~n", [By =:= self(), atom_to_list(Name)])
    after 5000 -> io:format("nothing~n")
    end,
    erlang:trace(new_ports, false, [ports]).
