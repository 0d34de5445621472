%% Receives in a long queue reject messages by several of their elements. They take the first that
%% matches, whatever the elements are, and the others stay unchanged. @stress @shared @fence
-module(receives_by_several_elements).
-export([main/0]).

main() ->
    Values = values(),
    Shapes = [tagged, pair, down, reply, flipped, two, nested, last, whole, not_equal, arities, many, literal, number, list],
    [begin
        Got = [taken(S, Values, T) || {_, T} <- Values],
        io:format("~p ~p~n", [S, Got])
     end || S <- Shapes],
    small_queue(),
    goes_on().

%% Values of all kinds, some of them equal to others that are made otherwise.
values() ->
    R = make_ref(),
    Alias = alias(),
    Table = ets:new(t, []),
    Counter = atomics:new(1, []),
    Copy = fun(T) -> binary_to_term(term_to_binary(T)) end,
    <<_, Sub/binary>> = list_to_binary([0 | lists:duplicate(100, 7)]),
    Far = binary_to_term(<<131, 90, 0, 3, 119, 5, "a@b_c", 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7>>),
    L = [a, '', 0, -1, 1 bsl 58, 1 bsl 59, 1 bsl 100, 1.0, 1, 1.5, [], [a], "ab", {}, {a}, {a, b}, {sub, x}, {sub, y}, {sub, x, 1}, <<>>, <<"x">>,
         #{}, #{a => 1}, fun erlang:self/0, self(), R, make_ref(), Alias, Copy(Alias), Copy(R), Table, Copy(Table), Counter, Copy(Counter), Far,
         Copy(Far), Sub, list_to_binary(lists:duplicate(100, 7)), binary:copy(<<"x">>), 1 bsl 100 + 1, {sub, <<"x">>}],
    lists:zip(lists:seq(1, length(L)), L).

%% Which message is taken: its number. The queue is checked afterwards.
taken(Shape, Values, Wanted) ->
    self() ! first,
    All = [message(Shape, N, V) || {N, V} <- Values] ++ [message(Shape, 1000 + N, V) || {N, V} <- Values],
    [self() ! M || M <- All],
    Got = take(Shape, Wanted),
    {messages, [first | Rest]} = process_info(self(), messages),
    Expected = case Got of
        none -> All;
        _ -> lists:filter(fun(M) -> number(M) =/= Got end, All)
    end,
    true = Rest =:= Expected,
    flush(),
    Got.

message(tagged, N, V) -> {tag, V, N};
message(pair, N, V) -> {V, N};
message(down, N, V) -> {'DOWN', V, process, N, r};
message(reply, N, V) -> {reply, V, N};
message(flipped, N, V) -> {reply, V, N};
message(two, N, V) -> {N, V, V, x};
message(nested, N, V) -> {N, {data, V}};
message(last, N, V) -> {N, a, b, c, V};
message(whole, N, V) when N rem 2 =:= 0 -> {V, N, N};
message(whole, N, V) -> {tag, V, N};
message(not_equal, N, V) -> {tag, V, N};
message(arities, N, V) when N rem 3 =:= 0 -> {tag, V, N, 1};
message(arities, N, V) -> {tag, V, N};
message(many, N, V) -> {V, V, V, V, V, N};
message(literal, N, V) -> {tag, V, N};
message(number, N, V) -> {n, V, N};
message(list, N, V) -> [tag, V, N].

number({tag, _, N}) -> N;
number({tag, _, N, 1}) -> N;
number({'DOWN', _, process, N, r}) -> N;
number({reply, _, N}) -> N;
number({n, _, N}) -> N;
number([tag, _, N]) -> N;
number({N, _, _, x}) -> N;
number({N, {data, _}}) -> N;
number({N, a, b, c, _}) -> N;
number({_, N, N}) -> N;
number({_, _, _, _, _, N}) -> N;
number({_, N}) -> N.

take(tagged, V) -> receive {tag, V, N} -> N after 0 -> none end;
take(pair, V) -> receive {V, N} -> N after 0 -> none end;
take(down, V) -> receive {'DOWN', V, process, N, _} -> N after 0 -> none end;
take(reply, V) -> receive {reply, Id, N} when Id =:= V -> N after 0 -> none end;
take(flipped, V) -> receive {reply, Id, N} when V =:= Id -> N after 0 -> none end;
take(two, V) -> receive {N, V, V, x} when N > 0 -> N after 0 -> none end;
take(nested, V) -> receive {N, {data, V}} -> N after 0 -> none end;
take(last, V) -> receive {N, a, b, c, V} -> N after 0 -> none end;
take(whole, V) -> receive {tag, V, N} -> N; {V, N, _} -> N after 0 -> none end;
take(not_equal, V) -> receive {tag, X, N} when X =/= V, N > 3 -> N after 0 -> none end;
take(arities, V) -> receive {tag, V, N, 1} -> N; {tag, V, N} when N > 1000 -> N after 0 -> none end;
take(many, V) -> receive {V, V, V, V, V, N} -> N after 0 -> none end;
take(literal, _) -> receive {tag, {sub, x}, N} -> N; {tag, {sub, x, 1}, N} -> N after 0 -> none end;
take(number, V) -> receive {n, X, N} when X == V -> N after 0 -> none end;
take(list, V) -> receive [tag, V, N] -> N after 0 -> none end.

flush() -> receive _ -> flush() after 0 -> ok end.

%% What comes while the process waits is looked at, too; in turn with what it refuses.
small_queue() ->
    R = make_ref(),
    S = self(),
    spawn_link(fun() ->
        [S ! M || M <- [{tag, make_ref(), 1}, {tag, 2}, tag, {tag, R}, {gat, R, 3}, {tag, S, 4}]],
        receive after 20 -> ok end,
        [S ! M || M <- [{tag, make_ref(), 5}, {tag, R, 6}, {tag, R, 7}]]
    end),
    io:format("~p~n", [receive {tag, R, N} -> N end]),
    io:format("~p~n", [receive {tag, R, N2} -> N2 end]),
    io:format("~p~n", [length(element(2, process_info(self(), messages)))]),
    flush().

%% Many are refused: the process gives way in between, and goes on where it was.
goes_on() ->
    R = make_ref(),
    O = make_ref(),
    [self() ! {tag, O, N} || N <- lists:seq(1, 20000)],
    self() ! {tag, R, found},
    [self() ! {tag, O, N} || N <- lists:seq(1, 10)],
    io:format("~p~n", [receive {tag, R, V} -> V end]),
    io:format("~p~n", [receive {tag, R, V2} -> V2 after 10 -> none end]),
    io:format("~p~n", [lists:sum([receive {tag, O, N} -> N end || _ <- lists:seq(1, 20010)])]).
