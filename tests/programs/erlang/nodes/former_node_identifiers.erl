%% Monitors processes and references of other nodes, and of an earlier node that had this node's
%% name.
-module(former_node_identifiers).
-export([main/0]).

main() ->
    [show(N) || N <- ['other@nowhere', node()]],
    ok.

show(N) ->
    P = erl(N, pid),
    R = erl(N, ref),
    M = monitor(process, P),
    io:format("~0p~n", [{N, node(P) =:= N, P =:= self(), down(M, P)}]),
    [io:format("~0p~n", [try apply(erlang, demonitor, [R | O]) catch C:E -> {C, E} end]) || O <- [[], [[info]], [[flush]], [[flush, info]]]].

down(M, P) -> receive {'DOWN', M, process, P, X} -> X after 5000 -> none end.

%% In the external format, with a creation that nobody has.
erl(N, pid) -> binary_to_term(<<131, 88, (name(N))/binary, 77:32, 0:32, 999999:32>>);
erl(N, ref) -> binary_to_term(<<131, 90, 3:16, (name(N))/binary, 999999:32, 1:32, 2:32, 3:32>>).
name(N) -> B = atom_to_binary(N), <<119, (byte_size(B)), B/binary>>.
