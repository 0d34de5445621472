%% Checks which atoms are valid node names: ASCII letters, digits, `-` and `_` before one `@`,
%% anything after it.
-module(names_that_nodes_may_have).
-export([main/0]).

main() ->
    Names = ["a", "a@b", "@b", "a@", "a@b@c", "a b@h", "a.b@h", "a+b@h", "a_b@h", "a-b@h", "A@h", "1@h", "_@h", "-@h", "a@h.x.y", "a@h h",
             "a@::1", "a@[::1]", "a@-", "a@.", "a@\n", "nonode@nohost", "a@b ", " a@b", "a@" ++ [16#e9], [16#e9 | "@h"], [956 | "@h"],
             "a@" ++ [956], lists:duplicate(253, $a) ++ "@h", "a@" ++ lists:duplicate(253, $h)],
    [io:format("~w ~w~n", [N, may(N)]) || N <- Names],
    Before = ["x" ++ [C] ++ "@h" || C <- lists:seq(0, 255), C =/= $@],
    Behind = ["a@" ++ [C] ++ "x" || C <- lists:seq(0, 255), C =/= $@],
    io:format("~w~n~w~n", [[lists:nth(2, N) || N <- Before, may(N)], [lists:nth(3, N) || N <- Behind, may(N)]]).

%% The node is alive until the process with the name `net_kernel` ends.
may(Name) ->
    {P, M} = spawn_monitor(fun() -> register(net_kernel, self()), exit(named(list_to_atom(Name))) end),
    R = receive {'DOWN', M, _, P, Answer} -> Answer =:= true end,
    gone(),
    R.

named(Name) -> try erlang:setnode(Name, 5) catch error:E -> E end.

gone() ->
    case node() of
        nonode@nohost -> ok;
        _ -> erlang:yield(), gone()
    end.
