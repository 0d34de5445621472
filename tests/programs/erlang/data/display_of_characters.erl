%% Checks the output of `erlang:display/1` for each character in strings, binaries and atoms, and
%% trace messages about collections.
-module(display_of_characters).
-export([main/0]).
main() ->
    [[erlang:display({C, X}) || X <- [[C], <<C>>, [$a, C], <<C, $a>>, list_to_atom([C]), list_to_atom([$a, C])]]
     || C <- lists:seq(0, 255)],
    [erlang:display(X) || X <- [list_to_atom([8364]), "a" ++ [300], [$a, $b | c], <<1:3>>, <<"a", 1:3>>, <<>>, #{<<10>> => "\n"}]],
    S = self(),
    P = spawn(fun() -> receive go -> ok end, erlang:garbage_collect(), S ! done end),
    erlang:trace(P, true, [garbage_collection]),
    P ! go,
    receive done -> ok end,
    receive {trace, P, gc_major_start, L} -> io:format("~p~n", [{hd(L), [K || {K, _} <- L]}]) after 5000 -> io:format("none~n") end,
    receive {trace, P, gc_major_end, [{wordsize, N} | _]} -> io:format("~p~n", [is_integer(N)]) after 5000 -> io:format("none~n") end,
    erlang:trace_pattern({lists, seq, 2}, true, [local]),
    io:format("~p ~p~n", [erlang:trace_info({lists, seq, 2}, meta), erlang:trace_info({lists, seq, 2}, all)]).
