%% Receives skip thousands of messages by tests of every kind, and processes send in every way.
%% Machine code handles the frequent cases and leaves the rest to the interpreter. A process that
%% waits, or whose time slice ends, continues in machine code. @stress @shared @fence @seconds 240
-module(receives_past_many_messages).
-export([main/0, keep/1]).

-define(MANY, 6000).

main() ->
    [kind(K) || K <- [tagged, element, map, guard, several, binary, constant, nested, any]],
    meanwhile(),
    timeouts(),
    marked(),
    traced(),
    sends(),
    urgent().

%% In a process of its own: the mailbox is as it was, but for what was received.
alone(F) ->
    {P, M} = spawn_monitor(fun() -> exit({done, F()}) end),
    receive {'DOWN', M, process, P, {done, R}} -> R end.

kind(K) ->
    R = alone(fun() ->
        Junk = [junk(K, I) || I <- lists:seq(1, ?MANY)],
        [self() ! J || J <- Junk],
        Got = [begin self() ! want(K), take(K) end || _ <- lists:seq(1, 4)],
        {messages, Left} = process_info(self(), messages),
        {Got, Left =:= Junk, element(2, process_info(self(), message_queue_len))}
    end),
    io:format("~p: ~p~n", [K, R]).

junk(tagged, I) -> {other, I};
junk(element, I) -> {reply, I, x};
junk(map, I) -> #{a => I};
junk(guard, I) -> I;
junk(several, I) -> {element(1 + I rem 3, {p, q, r}), I};
junk(binary, I) -> <<I:32, "long enough to be counted, which takes more than sixty-four bytes of it">>;
junk(constant, I) -> {I, I};
junk(nested, I) -> {reply, {I, x}};
junk(any, I) when I rem 2 =:= 0 -> [I | lists:duplicate(I rem 40, I)];
junk(any, I) -> {float(I), {I, [I]}}.

want(tagged) -> {mine, 1};
want(element) -> {reply, -1, y};
want(map) -> #{b => 1};
want(guard) -> -5;
want(several) -> {b, 1};
want(binary) -> <<"zz">>;
want(constant) -> {a, b};
want(nested) -> {reply, {-1, x}};
want(any) -> self().

take(tagged) -> receive {mine, X} -> X end;
take(element) -> E = ?MODULE:keep(-1), receive {reply, E, Y} -> Y end;
take(map) -> receive #{b := X} -> X end;
take(guard) -> receive X when is_integer(X), X < 0 -> X end;
take(several) -> receive {a, X} -> X; {b, X} -> X; {c, X, _} -> X; stop -> ok end;
take(binary) -> receive <<"zz">> = B -> B end;
take(constant) -> receive {a, b} -> ok end;
take(nested) -> E = ?MODULE:keep(-1), receive {reply, {E, X}} -> X end;
take(any) -> receive X when is_pid(X) -> X =:= self() end.

keep(X) -> X.

%% Messages come while it waits, and while it walks.
meanwhile() ->
    R = alone(fun() ->
        Me = self(),
        spawn_link(fun() -> feed(Me, ?MANY) end),
        N = receive #{last := L} -> L end,
        {messages, Left} = process_info(Me, messages),
        {N, Left =:= lists:seq(?MANY, 1, -1)}
    end),
    io:format("meanwhile: ~p~n", [R]).

feed(To, 0) -> To ! #{last => 0};
feed(To, N) when N rem 500 =:= 0 -> erlang:yield(), To ! N, feed(To, N - 1);
feed(To, N) -> To ! N, feed(To, N - 1).

%% The time passes while nothing matches; then what is there is received in its order.
timeouts() ->
    R = alone(fun() ->
        [self() ! I || I <- lists:seq(1, 2000)],
        A = receive #{b := X} -> X after 0 -> none end,
        B = receive {b, X1} -> X1 after 20 -> late end,
        C = try receive {b, X2} -> X2 after ?MODULE:keep(bad) -> no end catch E:W -> {E, W} end,
        D = drain([]),
        {A, B, C, D =:= lists:seq(1, 2000)}
    end),
    io:format("timeouts: ~p~n", [R]).

drain(All) -> receive X -> drain([X | All]) after 0 -> lists:reverse(All) end.

%% What is behind a marker comes first; what was before it stays.
marked() ->
    R = alone(fun() ->
        [self() ! {old, I} || I <- lists:seq(1, 3000)],
        Server = spawn_link(fun server/0),
        Answers = [call(Server, I) || I <- lists:seq(1, 50)],
        {lists:sum(Answers), length(drain([]))}
    end),
    io:format("marked: ~p~n", [R]).

server() ->
    receive {call, From, Ref, X} -> From ! {Ref, 2 * X}, server() end.

call(Server, X) ->
    Ref = monitor(process, Server),
    Server ! {call, self(), Ref, X},
    receive
        {Ref, Y} -> demonitor(Ref, [flush]), Y;
        {'DOWN', Ref, _, _, Why} -> exit(Why)
    end.

%% Whoever traces is told of each message once.
traced() ->
    R = alone(fun() ->
        P = spawn_link(fun() -> receive go -> ok end, take_all(20) end),
        erlang:trace(P, true, [send, 'receive']),
        [P ! {n, I} || I <- lists:seq(1, 20)],
        P ! go,
        M = monitor(process, P),
        receive {'DOWN', M, _, _, _} -> ok end,
        Told = [T || T <- drain([]), element(1, T) =:= trace],
        {length([1 || {trace, _, 'receive', {n, _}} <- Told]),
         [X || {trace, _, send, X, _} <- Told, X =/= x],
         length([1 || {trace, _, S, _, _} <- Told, S =:= send])}
    end),
    io:format("traced: ~p~n", [R]).

take_all(0) -> ok;
take_all(N) -> receive {n, N} -> catch (nobody_here ! N), self() ! x, take_all(N - 1) end.

sends() ->
    R = alone(fun() ->
        register(it, self()),
        Dead = spawn(fun() -> ok end),
        M = monitor(process, Dead),
        receive {'DOWN', M, _, _, _} -> ok end,
        Alias = alias(),
        To = [self(), it, {it, node()}, Alias, Dead, {nobody, node()}],
        Large = list_to_tuple(lists:seq(1, 300)),
        Bytes = binary:copy(<<"bytes">>, 100),
        Messages = [x, 1, [], {a, 1}, [1, 2, 3], #{a => b}, 1.5, 1 bsl 80, Bytes, {Bytes, Large}, make_ref(), fun ?MODULE:keep/1],
        Values = [(T ! Msg) =:= Msg || T <- ?MODULE:keep(To), Msg <- ?MODULE:keep(Messages)],
        All = drain([]),
        Bad = [bad(T) || T <- [nobody, 1, "list", {a, b, c}, {}, <<>>]],
        Kept = [caught(T) || T <- [self(), nobody]],
        {lists:usort(Values), length(All), lists:sublist(All, 12) =:= Messages, Bad, Kept, drain([])}
    end),
    io:format("sends: ~p~n", [R]).

bad(T) -> try T ! message catch C:W -> {C, W} end.
caught(T) ->
    X = ?MODULE:keep(y),
    case catch (T ! {X, 1}) of
        {'EXIT', {W, _}} -> {W, X};
        V -> {V, X}
    end.

%% Many senders at once, and a receiver that takes theirs in turn.
urgent() ->
    R = alone(fun() ->
        Me = self(),
        N = 8,
        [spawn_link(fun() -> [Me ! {K, I} || I <- lists:seq(1, 300)] end) || K <- lists:seq(1, N)],
        [begin receive {K, I} -> ok end end || I <- lists:seq(1, 300), K <- lists:seq(N, 1, -1)],
        process_info(Me, message_queue_len)
    end),
    io:format("in turn: ~p~n", [R]).
