%% Identifiers of a node of this node's name and another creation are shown as this node's.
-module(identifiers_of_an_earlier_node).
-export([main/0]).

main() ->
    Node = atom_to_binary(node()),
    L = byte_size(Node),
    Pid = binary_to_term(<<131, 88, 119, L, Node/binary, 1:32, 2:32, 3:32>>),
    Ref = binary_to_term(<<131, 90, 3:16, 119, L, Node/binary, 1:32, 2:32, 3:32, 4:32>>),
    Port = binary_to_term(<<131, 89, 119, L, Node/binary, 7:32, 3:32>>),
    io:format("~w ~p ~w~n", [Pid, Ref, Port]),
    io:format("~s ~s ~s~n", [pid_to_list(Pid), ref_to_list(Ref), port_to_list(Port)]),
    io:format("~w~n", [[node(X) =:= node() || X <- [Pid, Ref, Port]]]),
    io:format("~w~n", [[Pid =:= list_to_pid(pid_to_list(Pid)), Port =:= list_to_port(port_to_list(Port))]]),
    io:format("~w~n", [Pid ! message]).
