%% `erts_debug:unaligned_bitstring/2` (OTP 29) returns the same bits at another offset. Earlier
%% releases do not have it. @stress @shared @fence
-module(unaligned_bitstrings).
-export([main/0]).

main() ->
    {module, erts_debug} = code:ensure_loaded(erts_debug),
    case erlang:function_exported(erts_debug, unaligned_bitstring, 2) of
        true -> [io:format("~0p~n", [R]) || R <- [same(), parts(), kept(), refused()]];
        false -> io:format("none~n")
    end.

at(B, N) -> erts_debug:unaligned_bitstring(B, N).
bits(N) -> list_to_bitstring([<<(I * 7):8>> || I <- lists:seq(1, N div 8)] ++ [<<5:(N rem 8)>>]).
sizes() -> [0, 1, 5, 7, 8, 9, 63, 64, 65, 500, 511, 512, 513, 600, 4096, 80001].

same() ->
    [{N, lists:usort([begin
                          U = at(bits(N), O),
                          {U =:= bits(N), bit_size(U), is_binary(U), erlang:phash2(U) =:= erlang:phash2(bits(N))}
                      end || O <- lists:seq(1, 7)])} || N <- sizes()].
%% Of one that is unaligned already, and what is matched out of it.
parts() ->
    B = bits(700),
    L = [begin
             U = at(at(B, O), 8 - O),
             <<X:13, Rest/bits>> = U,
             <<Y:29/little, Z:16/bits, _/bits>> = at(Rest, O),
             {X, Y, Z}
         end || O <- lists:seq(1, 7)],
    {length(lists:usort(L)), hd(L), [at(<<"abc">>, 3), at(<<"abc", 2:3>>, 5), at(<<>>, 1)]}.
%% Through collections, messages and tables.
kept() ->
    L = [{N, at(bits(N), 1 + N rem 7)} || N <- sizes()],
    P = spawn(fun() -> receive {From, X} -> erlang:garbage_collect(), From ! {self(), X} end end),
    erlang:garbage_collect(),
    P ! {self(), L},
    L1 = receive {P, X1} -> X1 end,
    T = ets:new(t, []),
    ets:insert(T, L1),
    erlang:garbage_collect(),
    lists:all(fun({N, B}) -> B =:= bits(N) andalso ets:lookup(T, N) =:= [{N, bits(N)}]
                                 andalso binary_to_term(term_to_binary(B)) =:= B end, L1).
refused() -> [try at(B, O) catch C:R -> {C, R} end || {B, O} <- [{<<1>>, 0}, {<<1>>, 8}, {<<1>>, -1}, {<<1>>, 1 bsl 70}, {<<1>>, a}, {foo, 1}, {[1], 2}]].
