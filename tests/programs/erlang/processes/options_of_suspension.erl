%% Checks the options of `suspend_process`, alone and together, for processes in each state, by a
%% caller that has or has not suspended them: result, message and counts.
-module(options_of_suspension).
-export([main/0]).

main() ->
    [one(V, Before, O) || V <- [busy, waiting, suspended, dead], Before <- [none, once, twice, asynchronously], O <- options()],
    [io:format("~0p ~0p: ~0p~n", [X, O, attempt(fun() -> erlang:suspend_process(X, O) end)]) || X <- [name, 1], O <- [[], [bad]]],
    ok.

options() ->
    [[], [asynchronous], [{asynchronous, tag}], [unless_suspending], [asynchronous, unless_suspending], [{asynchronous, tag}, unless_suspending],
     [unless_suspending, {asynchronous, {a, <<"tuple">>}}], [unless_suspending, {asynchronous, first}, {asynchronous, second}],
     [unless_suspending, {asynchronous, tag}, asynchronous], [bad], [{asynchronous}], [asynchronous | x]].

one(V, Before, O) ->
    Me = self(),
    P = victim(V),
    {C, R} = spawn_monitor(fun() ->
        case Before of
            none -> ok;
            once -> attempt(fun() -> erlang:suspend_process(P) end);
            twice -> [attempt(fun() -> erlang:suspend_process(P) end) || _ <- [1, 2]];
            asynchronously -> attempt(fun() -> erlang:suspend_process(P, [asynchronous]) end)
        end,
        First = attempt(fun() -> erlang:suspend_process(P, O) end),
        Told = told(First, O),
        Second = attempt(fun() -> erlang:suspend_process(P, O) end),
        Again = told(Second, O),
        attempt(fun() -> erlang:suspend_process(P, [unless_suspending]) end),
        {suspending, L} = process_info(self(), suspending),
        Resumed = [attempt(fun() -> erlang:resume_process(P) end) || _ <- [1, 2, 3, 4, 5]],
        Me ! {self(), {First, Told, Second, Again, [{A, B} || {_, A, B} <- L], Resumed, flush()}}
    end),
    X = receive {C, Y} -> Y; {'DOWN', R, process, C, Why} -> Why end,
    demonitor(R, [flush]),
    exit(P, kill),
    io:format("~w, suspended ~w, ~0p: ~0p~n", [V, Before, O, X]).

victim(busy) -> spawn(fun busy/0);
victim(waiting) -> spawn(fun() -> receive stop -> ok end end);
victim(suspended) ->
    P = victim(waiting),
    Me = self(),
    spawn(fun() -> erlang:suspend_process(P), Me ! ready, receive stop -> ok end end),
    receive ready -> P end;
victim(dead) ->
    {P, R} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', R, process, P, normal} -> P end.

busy() -> erlang:yield(), busy().

%% The message about a suspension that has one.
told(Answer, O) ->
    case is_boolean(Answer) andalso [T || {asynchronous, T} <- O] of
        [_ | _] -> receive {_, _} = M -> M after 5000 -> nothing end;
        _ -> none
    end.

attempt(F) -> try F() catch _:E -> {'EXIT', E} end.

flush() -> receive M -> [M | flush()] after 0 -> [] end.
