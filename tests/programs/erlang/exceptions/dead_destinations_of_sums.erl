%% Sums of large integers overwrite a register whose dead value an earlier collection has not
%% updated. If the sum collects, the collection must not follow that value. The sum comes right
%% before a call or a return. @stress @fence
-module(dead_destinations_of_sums).
-export([main/0, called/3, returned/2, taken/3, framed/2, made/2, spin/1]).

-define(LARGE, 16#FFFFFFFFFFFFFFFFFF).

%% The third register holds a tuple that is dead when room for the fun is made.
called(A, T, U) when is_tuple(T), is_tuple(U) ->
    F = fun() -> A end,
    three(A, F, A + ?LARGE).

taken(A, T, U) when is_tuple(T), is_tuple(U) ->
    F = fun() -> A end,
    three(A, F, A - ?LARGE).

three(A, F, B) -> A = F(), B.

%% So does the first one, behind the call.
made(A, T) ->
    B = id(A),
    id(T),
    C = {B},
    id(C),
    B + ?LARGE.

%% The third register is dead most of the time, and holds what collections have left behind when a
%% sum goes there at last.
spin(0) -> done;
spin(N) when N rem 200 =:= 0 ->
    F = fun() -> N end,
    last(N, F, N + ?LARGE);
spin(N) -> spent({N, N, N}).

spent({N, _, _}) -> spin(N - 1).

last(_, F, B) when is_integer(B) -> spin(F() - 1).

%% The argument is dead behind the call, and the result goes to the register where it was.
returned(A, T) when is_tuple(T) ->
    S = id(A) + ?LARGE,
    id({S}),
    S + 1.

framed(A, T) when is_tuple(T) ->
    B = id(A),
    C = id(T),
    garbage(element(1, C)),
    B + ?LARGE.

id(X) -> X.

garbage(N) -> length(lists:seq(1, N)).

main() ->
    Sum = lists:foldl(fun(N, Acc) ->
        T = {N rem 7, [N], integer_to_list(N)},
        B = called(N, T, {[N]}),
        C = taken(N, T, {[N]}),
        D = returned(N, T),
        E = framed(N, T),
        F = made(N, T),
        (Acc + B + C + D + E + F) band ?LARGE
    end, 0, lists:seq(1, 3000)),
    done = spin(3000),
    [receive {'DOWN', R, process, P, Reason} -> normal = Reason end
     || {P, R} <- [spawn_monitor(fun() -> done = spin(1000 + K) end) || K <- lists:seq(1, 20)]],
    io:format("~p~n", [Sum]).
