%% Checks the external format by release: options of `external_size/2`, and an empty bit string.
%% @stress
-module(external_format_by_release).
-export([main/0]).

main() ->
    Term = {ok, lists:duplicate(50, $A), 'ünt', 1.5, [a, <<1:3>>]},
    Options = [[], [compressed], [{compressed, 0}], [{compressed, 9}], [{compressed, 10}], [deterministic], [deterministic, compressed],
               [{minor_version, 0}], [{minor_version, 1}], [{minor_version, 2}], [{minor_version, 3}], [x], [{x, 1}], x, [compressed | x],
               [{minor_version, 2}, {minor_version, 0}, compressed]],
    [io:format("~w: ~w~n", [O, size_of(Term, O)]) || O <- Options],
    %% As many bytes as are written, where they are not made fewer.
    [io:format("~w: ~w~n", [O, {size_of(Term, O) =:= byte_size(term_to_binary(Term, O)), size_of(Term, [deterministic | O])}])
     || O <- [[], [{minor_version, 0}], [{minor_version, 1}]]],
    local(),
    [io:format("~w: ~w~n", [B, decoded(B)]) || B <- [<<131, 77, 0, 0, 0, N, L, R/binary>> || N <- [0, 1, 2], L <- [0, 1, 3, 8, 9], R <- [<<>>, <<255>>, <<255, 255>>]]],
    io:format("~w~n", [decoded(<<131, 108, 0, 0, 0, 1, 77, 0, 0, 0, 0, 0, 106>>)]).

size_of(T, O) -> try erlang:external_size(T, O) catch C:E -> {C, E} end.

decoded(B) -> try binary_to_term(B) catch C:E -> {C, E} end.

local() ->
    try
        N = byte_size(term_to_binary({a, self()}, [local])),
        io:format("~w~n", [{erlang:external_size({a, self()}, [local]) =:= N, size_of(x, [local, deterministic])}])
    catch error:badarg -> io:format("no local~n") end.
