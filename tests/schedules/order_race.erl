%% Relies on an order that is promised between two processes only: A tells C, then B, which tells C.
-module(order_race).
-export([main/0]).

main() ->
    C = self(),
    B = spawn(fun() -> receive go -> C ! from_b end end),
    spawn(fun() -> C ! from_a, B ! go end),
    First = receive X -> X end,
    Second = receive Y -> Y end,
    halt(case {First, Second} of {from_a, from_b} -> 0; _ -> 1 end).
