%% Multiplies and divides integers so large that the process yields meanwhile: in bodies, guards and
%% receives, by apply and as funs, with live registers around them, with errors, and while other
%% processes inspect the process or kill it. @stress @shared @fence @seconds 120
-module(large_products).
-export([main/0, by_name/3, registers/4, guard/2, caught/2, multiply/2, divide/2]).

main() ->
    A = dense(4300, 1),
    B = dense(4300, 2),
    C = dense(2400, 3),
    say(products, [hash(A * B), hash(B * -A), hash(-A * -B), hash(A * A)]),
    say(quotients, [hash(X div Y) || X <- [A, -B], Y <- [C, -C]]),
    say(remainders, [hash(X rem Y) || X <- [A, -B], Y <- [C, -C]]),
    Q = A div C,
    R = A rem C,
    say(whole, Q * C + R =:= A),
    say(applied, [hash(by_name(F, A, C)) || F <- ['*', 'div', 'rem']]),
    say(funs, [hash(F(A, C)) || F <- [fun erlang:'*'/2, fun erlang:'div'/2, fun erlang:'rem'/2]]),
    say(registers, [hash(V) || V <- registers(A, [1, 2], C, {x})]),
    say(guards, [guard(X, Y) || {X, Y} <- [{A, B}, {B, A}, {A, C}, {C, x}]]),
    self() ! {pair, A, B},
    receive {pair, X, Y} when X * Y > X, X rem Y =/= 0 -> say(received, hash(X * Y)) end,
    say(sums, hash(lists:foldl(fun(N, S) -> S + A * (B + N) end, 0, lists:seq(1, 5)))),
    say(failed, [caught(fun() -> multiply(largest(), largest()) end, A),
                 caught(fun() -> A div zero(B) end, A),
                 caught(fun() -> apply(erlang, '*', [A, x]) end, A)]),
    say(reductions, spends(A, B)),
    looked_at(A, B),
    ended(A, B),
    suspended(A, C),
    say(exit, exits(A, B)),
    say(traced, traced(A, B)).

%% A function that begins with such an operation is called once.
traced(A, B) ->
    [begin
         erlang:trace_pattern({?MODULE, F, 2}, true, [local, call_count]),
         erlang:trace_pattern({?MODULE, F, 2}, [{'_', [], [{return_trace}]}], [local]),
         P = spawn(fun() -> receive go -> ok end, ?MODULE:F(A, B) end),
         Ref = monitor(process, P),
         erlang:trace(P, true, [call]),
         P ! go,
         receive {'DOWN', Ref, _, _, Why} -> ok end,
         Told = erlang:trace_delivered(P),
         Seen = seen(P, Told),
         {call_count, N} = erlang:trace_info({?MODULE, F, 2}, call_count),
         erlang:trace_pattern({?MODULE, F, 2}, false, [local, call_count]),
         erlang:trace_pattern({?MODULE, F, 2}, false, [local]),
         {F, Why, Seen, N}
     end || F <- [multiply, divide]].
seen(P, Ref) ->
    receive
        {trace, P, What, {_, F, _}} -> [{What, F} | seen(P, Ref)];
        {trace, P, What, {_, F, _}, _} -> [{What, F} | seen(P, Ref)];
        {trace_delivered, P, Ref} -> []
    end.
divide(X, Y) -> X div Y.

say(What, Value) -> io:format("~p: ~p~n", [What, Value]).
hash(X) when is_integer(X) -> {X > 0, erlang:phash2(X)};
hash(X) -> X.

%% An integer of so many digits of 64 bits, none of which is zero.
dense(Digits, Seed) ->
    Next = fun(_, {S, L}) -> D = erlang:md5(<<S/binary>>), {D, [D | L]} end,
    {_, Parts} = lists:foldl(Next, {<<Seed:32>>, []}, lists:seq(1, Digits div 2)),
    binary:decode_unsigned(iolist_to_binary([1 | Parts])).

by_name(F, X, Y) -> apply(erlang, F, [X, Y]).

%% What is live around them stays, wherever the result goes.
registers(A, L, C, T) ->
    P = A * C,
    U = {P, L, T, A},
    Q = P div A,
    V = [Q =:= C, L, T, element(1, U) rem (C + 1)],
    [P rem A, Q, length(V) | V].

guard(X, Y) when X div Y > 0, X rem Y > 1 -> {more, hash(X rem Y)};
guard(X, Y) when X * Y > 0 -> {less, hash(X * Y)};
guard(_, _) -> neither.

multiply(X, Y) -> X * Y.
zero(X) -> X - X.
%% Nearly as large as there may be, which differs by release.
largest() ->
    try shifted(33000000) catch error:system_limit -> shifted(4190000) end.
shifted(N) -> 1 bsl N.

caught(F, Live) ->
    try F() of V -> hash(V) catch C:R:S -> {C, R, [{M, N} || {M, N, _, _} <- lists:sublist(S, 1)], hash(Live)} end.

%% Others have a turn, however long a process multiplies.
spends(A, B) ->
    {P, M} = spawn_monitor(fun() -> true = lists:all(fun(_) -> A * B > A end, lists:seq(1, 5)), exit(done) end),
    receive {'DOWN', M, process, P, Why} -> Why end.

looked_at(A, B) ->
    {P, M} = spawn_monitor(fun() -> multiplies(A, B) end),
    Seen = [element(2, process_info(P, What)) || _ <- lists:seq(1, 5), What <- [trap_exit, priority, message_queue_len]],
    say(seen, lists:usort(Seen)),
    _ = [begin P ! {self(), N}, receive N -> ok end end || N <- lists:seq(1, 3)],
    erlang:garbage_collect(P),
    P ! {self(), last},
    receive last -> ok end,
    exit(P, stop),
    receive {'DOWN', M, process, P, Why} -> say(stopped, Why) end.

multiplies(A, B) ->
    true = A * B > A,
    %% OTP 25 counts no reductions for it.
    receive {From, N} -> From ! N after 1 -> ok end,
    multiplies(A, B).

ended(A, B) ->
    Why = [begin
               {P, M} = spawn_monitor(fun() -> multiplies(A, B) end),
               receive after N rem 7 -> ok end,
               exit(P, kill),
               receive {'DOWN', M, process, P, W} -> W end
           end || N <- lists:seq(1, 5)],
    say(ended, lists:usort(Why)).

suspended(A, C) ->
    {P, M} = spawn_monitor(fun() -> divides(A, C, 10), exit(done) end),
    _ = [catch begin erlang:suspend_process(P), erlang:resume_process(P) end || _ <- lists:seq(1, 10)],
    receive {'DOWN', M, process, P, Why} -> say(suspended, Why) end.

divides(_, _, 0) -> ok;
divides(A, C, N) -> true = (A div C) * C + A rem C =:= A, erlang:yield(), divides(A, C, N - 1).

%% One that ends by an error in the midst.
exits(A, B) ->
    {P, M} = spawn_monitor(fun() -> exit({hash(A * B), catch (A * B) div (B - B)}) end),
    receive {'DOWN', M, process, P, {H, {'EXIT', {badarith, _}}}} -> H end.
