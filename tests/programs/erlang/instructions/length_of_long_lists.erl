%% Measures lists so long that `length/1` yields: in guards, bodies and receives, and by apply,
%% while others inspect, collect, suspend and kill the process. @stress @shared @fence
-module(length_of_long_lists).
-export([main/0, id/1]).

%% More than what is counted within a time slice.
-define(MANY, 300000).

main() ->
    L = long(?MANY),
    Improper = id([1 | id([2 | improper(L)])]),
    io:format("~p~n", [[length(L), length(tl(L)), length([a, b | L]), length(id([x | L])) + length(id(L))]]),
    io:format("~p~n", [[guard(L), guard(Improper), guard([]), either(Improper, L), either(L, Improper), both(L, L)]]),
    io:format("~p~n", [live(id(1), id(2.5), L, id(<<"abc">>), id([d]), id({e}))]),
    F = fun erlang:length/1,
    io:format("~p~n", [[F(L), apply(id(erlang), id(length), [L]), applied_last(L), called_last(L), lists:map(F, [L, [a]])]]),
    [failure(G) || G <- [fun() -> length(Improper) end,
                         fun() -> F(Improper) end,
                         fun() -> apply(id(erlang), id(length), [Improper]) end,
                         fun() -> called_last(Improper) end,
                         fun() -> {length(Improper), L} end]],
    io:format("~p~n", [[receives(L, after_none), receives(L, after_some), receives(L, after_long)]]),
    io:format("~p~n", [[saved(L), in_message(L), kept(L)]]),
    watched(L, fun(X) -> length(X) end),
    watched(L, fun(X) -> case guard(X) of {long, N} -> N end end),
    watched(L, fun(X) -> apply(id(erlang), id(length), [X]) end),
    turns(),
    io:format("~p~n", [ended(L)]).

id(X) -> X.

%% A list by one allocation.
long(N) -> binary_to_list(binary:copy(<<7>>, N)).
improper(L) -> L ++ id(tail).

guard(X) when length(X) > 100000 -> {long, length(X)};
guard(X) when is_list(X), length(X) >= 0 -> short;
guard(_) -> other.

either(X, Y) when length(X) > 5; length(Y) > 5 -> {true, is_list(X), hd(Y)};
either(_, _) -> false.

both(X, Y) when length(X) =:= length(Y), length(tl(X)) < length(Y) -> {same, hd(X), hd(Y)};
both(_, _) -> false.

%% What lives across it, in registers and on the stack.
live(A, B, L, C, D, E) when length(L) > A ->
    N = length(L),
    R = {A, B, C, D, E, N},
    M = length(id(L)),
    {R, M - N, length([A, B | L])}.

applied_last(L) -> apply(id(erlang), id(length), [L]).
called_last(L) -> erlang:length(L).

failure(F) ->
    try F() of
        V -> io:format("~p~n", [V])
    catch
        C:R:Trace ->
            {M, N, A, Info} = hd(Trace),
            io:format("~p~n", [{C, R, M, N, is_list(A) andalso [hd(X) || X <- A], Info}])
    end.

%% Messages that are looked at while it counts: some are refused, some come meanwhile, and time runs
%% out.
receives(L, What) ->
    Self = self(),
    [Self ! X || X <- [0, ?MANY + 5, {a, ?MANY + 6}, ?MANY - 1, {b, list_to_tuple(lists:seq(1, 300))}]],
    spawn(fun() -> [Self ! {later, N} || N <- lists:seq(1, 50)], Self ! last end),
    R = case What of
        after_none -> receive X when is_integer(X), length(L) < X -> X; {a, X} when length(L) < X -> {a, X} end;
        after_some -> receive X when is_integer(X), length(L) < X -> X after 100000 -> none end;
        after_long -> receive X when is_integer(X), X > 0, length(L) =:= X -> X after 1 -> none end
    end,
    receive last -> ok end,
    {R, lists:sort(flush())}.

flush() ->
    receive
        {later, _} -> flush();
        {b, T} -> [{b, tuple_size(T)} | flush()];
        X -> [X | flush()]
    after 0 -> []
    end.

%% A process that saves its calls has a reduction at a time.
saved(L) ->
    other(fun() -> process_flag(save_calls, 10), {length(L), guard(L)} end).

%% The list comes with the message that is matched.
in_message(L) ->
    Q = spawn_monitor(fun() -> receive {list, X} when length(X) > 10 -> exit({got, length(X), hd(X)}) end end),
    element(1, Q) ! {list, [a]},
    element(1, Q) ! {list, L},
    receive {'DOWN', _, _, _, R} -> R end.

%% Literals and persistent terms: regions remember how long lists are.
kept(L) ->
    persistent_term:put(?MODULE, L),
    other(fun() -> K = persistent_term:get(?MODULE), [length(K), length([x | K]), length(tl(K)), length(K)] end).

other(F) ->
    {_, Ref} = spawn_monitor(fun() -> exit({value, F()}) end),
    receive {'DOWN', Ref, process, _, {value, V}} -> V; {'DOWN', Ref, process, _, R} -> R end.

%% Others look at it, collect it, and suspend it.
watched(L, F) ->
    Self = self(),
    P = spawn_link(fun() -> receive go -> ok end, Self ! {self(), [F(L) || _ <- lists:seq(1, 20)]}, receive stop -> ok end end),
    P ! go,
    R = watch(P, 0),
    P ! stop,
    io:format("~p~n", [lists:usort(R)]).

watch(P, 40) ->
    receive {P, R} -> R end;
watch(P, N) ->
    erlang:suspend_process(P),
    {message_queue_len, _} = process_info(P, message_queue_len),
    case N rem 8 of
        0 -> erlang:garbage_collect(P);
        4 -> process_info(P, [current_stacktrace, memory, dictionary]);
        _ -> ok
    end,
    erlang:resume_process(P),
    erlang:yield(),
    receive {P, R} -> R after 0 -> watch(P, N + 1) end.

%% On one scheduler another process has turns before a list is counted.
turns() ->
    Long = long(4000000),
    Opts = [link, {scheduler, 1}],
    Self = self(),
    spawn_opt(fun() ->
        Me = self(),
        Other = spawn_opt(fun() -> Me ! ready, beat(0) end, Opts),
        receive ready -> ok end,
        Before = beats(Other),
        id([length(Long), guard(Long), apply(id(erlang), id(length), [Long])]),
        After = beats(Other),
        Other ! stop,
        Self ! {turns, After - Before > 10}
    end, Opts),
    receive {turns, T} -> io:format("~p~n", [T]) end.

beat(N) ->
    receive stop -> ok; {beats, From} -> From ! {beats, N}, beat(N)
    after 0 -> erlang:yield(), beat(N + 1)
    end.

beats(P) ->
    P ! {beats, self()},
    receive {beats, N} -> N end.

%% It is ended while it counts.
ended(L) ->
    [begin
         {P, Ref} = spawn_monitor(fun() -> forever(L) end),
         erlang:yield(),
         exit(P, kill),
         receive {'DOWN', Ref, process, P, R} -> R end
     end || _ <- lists:seq(1, 10)].

forever(L) when length(L) > 5 -> id(length(L)), forever(L).
