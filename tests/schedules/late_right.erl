-module(late_right).
-export([main/0]).

%% A payment is asked for again if no answer comes within 60 ms; the bank takes 20.
main() ->
    Paid = counters:new(1, []),
    Bank = spawn_link(fun() -> bank(Paid, #{}) end),
    pay(Bank, make_ref(), 3),
    timer:sleep(500),
    halt(case counters:get(Paid, 1) of 1 -> 0; _ -> 1 end).

pay(_, _, 0) -> halt(2);
pay(Bank, Order, Tries) ->
    Bank ! {pay, self(), Order},
    receive {paid, Order} -> ok
    after 60 -> pay(Bank, Order, Tries - 1)
    end.

bank(Paid, Done) ->
    receive {pay, From, Order} ->
        timer:sleep(20),
        is_map_key(Order, Done) orelse counters:add(Paid, 1, 1),
        From ! {paid, Order},
        bank(Paid, Done#{Order => true})
    end.
