%% The same, where the order is promised, or does not matter: messages of one sender, its end behind
%% them, and a selective receive.
-module(order_right).
-export([main/0]).

main() ->
    C = self(),
    B = spawn(fun() -> receive go -> C ! from_b end end),
    {A, R} = spawn_monitor(fun() -> C ! from_a, B ! go, C ! from_a_again end),
    Order = [receive from_a -> 1; from_a_again -> 2; {'DOWN', R, process, A, normal} -> 3 end || _ <- [1, 2, 3]],
    receive from_b -> ok end,
    halt(case Order of [1, 2, 3] -> 0; _ -> 1 end).
