%% A message refers to another one. The receiver keeps little of each directly, but all of the other
%% through it. Collections must decide which parts stay in shared memory and which are copied out.
-module(leave_shared_regions).
-export([main/0]).

main() ->
    Me = self(),
    Receiver = spawn_link(fun() -> receiver(Me) end),
    A = spawn_link(fun() -> forwarder(Receiver) end),
    A ! {list, [{I, I * I} || I <- lists:seq(1, 200000)]},
    receive {done, R} -> io:format("~p~n", [R]) end.

forwarder(Receiver) ->
    receive
        {list, L} ->
            Tuples = [{tuple, I, if I =:= 777 -> L; true -> none end} || I <- lists:seq(1, 100000)],
            Receiver ! {tuples, Tuples, length(L)}
    end.

receiver(Main) ->
    {Kept, Fifth} = take(),
    collect(3),
    {tuple, N, L} = Kept,
    Sum = lists:sum([A + B || {A, B} <- L]),
    Main ! {done, {N, length(L), Sum, Fifth, hd(L), lists:last(L)}}.

take() ->
    receive
        {tuples, Tuples, 200000} ->
            T = {tuple, _, L} = lists:nth(777, Tuples),
            {T, lists:nth(5, L)}
    end.

collect(0) -> ok;
collect(N) ->
    erlang:garbage_collect(),
    collect(N - 1).
