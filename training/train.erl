%% The programs that train a build of `make dist`: what the compiler is to find frequent in the
%% runtime. No figure of this project is taken from them, and they share no code with the programs
%% of benches/.
%%
%%   erl -noshell -pa DIR -run train main [NAME ...]
%%
%% Each kind of work runs in a process of its own for about a second of a build that counts. A wrong
%% result ends the run with status 1, so that a broken build trains nothing.
-module(train).
-export([main/0, main/1, names/0]).
-export([tokens/0, documents/0, accounts/0, routes/0, ledger/0, shapes/0, words/0, packets/0, numbers/0,
         queues/0, servers/0, watchers/0, alarms/0, selective/0, tables/0, rankings/0, patterns/0, reports/0,
         failures/0, terms/0, closures/0, sets/0, streams/0, files/0, replies/0, digits/0, pages/0]).

names() ->
    [tokens, documents, accounts, routes, ledger, shapes, words, packets, numbers, queues, servers, watchers,
     alarms, selective, tables, rankings, patterns, reports, failures, terms, closures, sets, streams, files,
     replies, digits, pages].

main() -> main([]).

main(Given) ->
    Names = case Given of [] -> names(); _ -> [list_to_atom(N) || N <- Given] end,
    Failed = [N || N <- Names, run(N) =/= ok],
    [io:format(standard_error, "train: ~w failed~n", [Failed]) || Failed =/= []],
    halt(case Failed of [] -> 0; _ -> 1 end).

run(Name) ->
    {Pid, Ref} = spawn_monitor(fun() -> true = ?MODULE:Name(), exit(ok) end),
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason end.

%% Twenty times as often as is written: enough to be seen beside a start.
repeat(N, F) -> again(20 * N, F).
again(0, _) -> true;
again(N, F) -> F(N), again(N - 1, F).

%% A small language: its scanner, parser and evaluator over environments in maps.
tokens() ->
    Text = <<"let total = price * (amount + 3) - discount / 2 in total * total + 17">>,
    Env = #{<<"price">> => 12, <<"amount">> => 9, <<"discount">> => 40},
    repeat(6000, fun(_) ->
        {Tree, []} = statement(scan(Text, [])),
        15393 = evaluate(Tree, Env)
    end).

scan(<<C, Rest/binary>>, Acc) when C =:= $\s; C =:= $\n -> scan(Rest, Acc);
scan(<<C, _/binary>> = Text, Acc) when C >= $a, C =< $z -> word(Text, 0, Text, Acc);
scan(<<C, _/binary>> = Text, Acc) when C >= $0, C =< $9 -> number(Text, 0, Acc);
scan(<<C, Rest/binary>>, Acc) -> scan(Rest, [{op, C} | Acc]);
scan(<<>>, Acc) -> lists:reverse(Acc).
word(<<C, Rest/binary>>, N, Text, Acc) when C >= $a, C =< $z -> word(Rest, N + 1, Text, Acc);
word(Rest, N, Text, Acc) ->
    Token = case binary:part(Text, 0, N) of
        <<"let">> -> 'let';
        <<"in">> -> in;
        Name -> {name, Name}
    end,
    scan(Rest, [Token | Acc]).
number(<<C, Rest/binary>>, N, Acc) when C >= $0, C =< $9 -> number(Rest, N * 10 + C - $0, Acc);
number(Rest, N, Acc) -> scan(Rest, [{number, N} | Acc]).

statement(['let', {name, N}, {op, $=} | Rest]) ->
    {Value, [in | More]} = sum(Rest),
    {Body, Left} = statement(More),
    {{'let', N, Value, Body}, Left};
statement(Tokens) -> sum(Tokens).
sum(Tokens) -> {A, Rest} = product(Tokens), sum(A, Rest).
sum(A, [{op, Op} | Rest]) when Op =:= $+; Op =:= $- -> {B, More} = product(Rest), sum({Op, A, B}, More);
sum(A, Rest) -> {A, Rest}.
product(Tokens) -> {A, Rest} = factor(Tokens), product(A, Rest).
product(A, [{op, Op} | Rest]) when Op =:= $*; Op =:= $/ -> {B, More} = factor(Rest), product({Op, A, B}, More);
product(A, Rest) -> {A, Rest}.
factor([{op, $(} | Rest]) -> {A, [{op, $)} | More]} = sum(Rest), {A, More};
factor([{number, _} = N | Rest]) -> {N, Rest};
factor([{name, _} = N | Rest]) -> {N, Rest}.

evaluate({number, N}, _) -> N;
evaluate({name, N}, Env) -> maps:get(N, Env);
evaluate({'let', N, Value, Body}, Env) -> evaluate(Body, Env#{N => evaluate(Value, Env)});
evaluate({$+, A, B}, Env) -> evaluate(A, Env) + evaluate(B, Env);
evaluate({$-, A, B}, Env) -> evaluate(A, Env) - evaluate(B, Env);
evaluate({$*, A, B}, Env) -> evaluate(A, Env) * evaluate(B, Env);
evaluate({$/, A, B}, Env) -> evaluate(A, Env) div evaluate(B, Env).

%% Nested documents written as text with marks, and read again.
documents() ->
    Doc = {book, [{lang, <<"en">>}], [{chapter, [{n, integer_to_binary(I)}],
        [{para, [], [<<"Some \"quoted\" & <marked> text ", (integer_to_binary(I * J))/binary>>]} || J <- lists:seq(1, 12)]}
        || I <- lists:seq(1, 20)]},
    repeat(60, fun(_) ->
        Text = iolist_to_binary(write(Doc)),
        {Doc, <<>>} = read(Text)
    end).
write({Tag, Attributes, Inner}) ->
    Name = atom_to_binary(Tag),
    [$<, Name, [[$\s, atom_to_binary(K), $=, $", escape(V), $"] || {K, V} <- Attributes], $>,
     [write(I) || I <- Inner], <<"</">>, Name, $>];
write(Text) -> escape(Text).
escape(Text) -> << <<(mark(C))/binary>> || <<C>> <= Text >>.
mark($<) -> <<"&lt;">>;
mark($>) -> <<"&gt;">>;
mark($&) -> <<"&amp;">>;
mark($") -> <<"&quot;">>;
mark(C) -> <<C>>.
read(<<$<, Rest/binary>>) ->
    [Head, More] = binary:split(Rest, <<">">>),
    [Name | Parts] = binary:split(Head, <<" ">>, [global]),
    Attributes = [begin [K, V] = binary:split(P, <<"=">>), {binary_to_existing_atom(K), plain(binary:part(V, 1, byte_size(V) - 2), <<>>)} end || P <- Parts],
    {Inner, After} = inner(More, []),
    {{binary_to_existing_atom(Name), Attributes, Inner}, After}.
inner(<<"</", Rest/binary>>, Acc) -> [_, After] = binary:split(Rest, <<">">>), {lists:reverse(Acc), After};
inner(<<"<", _/binary>> = Text, Acc) -> {Node, Rest} = read(Text), inner(Rest, [Node | Acc]);
inner(Text, Acc) ->
    {At, _} = binary:match(Text, <<"<">>),
    <<Here:At/binary, Rest/binary>> = Text,
    inner(Rest, [plain(Here, <<>>) | Acc]).
plain(<<"&lt;", R/binary>>, B) -> plain(R, <<B/binary, $<>>);
plain(<<"&gt;", R/binary>>, B) -> plain(R, <<B/binary, $>>>);
plain(<<"&amp;", R/binary>>, B) -> plain(R, <<B/binary, $&>>);
plain(<<"&quot;", R/binary>>, B) -> plain(R, <<B/binary, $">>);
plain(<<C, R/binary>>, B) -> plain(R, <<B/binary, C>>);
plain(<<>>, B) -> B.

%% Records and maps with atoms as keys, updated many times.
-record(account, {id, owner, balance = 0, history = [], limits = #{}}).
accounts() ->
    Start = maps:from_list([{I, #account{id = I, owner = {user, I}, limits = #{day => 500, week => 2000}}} || I <- lists:seq(1, 400)]),
    End = lists:foldl(fun(N, As) ->
        Id = N rem 400 + 1,
        #{Id := #account{balance = B, history = H, limits = #{day := D} = L} = A} = As,
        As#{Id := A#account{balance = B + N rem 7, history = lists:sublist([{N, in} | H], 6), limits = L#{day := D - 1, last => N}}}
    end, Start, lists:seq(1, 80000)),
    400 = map_size(End),
    lists:sum([B || #account{balance = B} <- maps:values(End)]) =:= lists:sum([N rem 7 || N <- lists:seq(1, 80000)]).

%% Shortest ways through a grid: sets and queues of pairs.
routes() -> repeat(12, fun(_) -> 98 = steps(queue:from_list([{{0, 0}, 0}]), #{{0, 0} => true}, {49, 49}) end).
steps(Q, Seen, Goal) ->
    case queue:out(Q) of
        {{value, {Goal, N}}, _} -> N;
        {{value, {{X, Y}, N}}, Rest} ->
            Next = [P || {A, B} = P <- [{X + 1, Y}, {X - 1, Y}, {X, Y + 1}, {X, Y - 1}],
                    A >= 0, B >= 0, A < 50, B < 50, (A * 7 + B * 3) rem 11 =/= 0 orelse P =:= Goal, not is_map_key(P, Seen)],
            steps(lists:foldl(fun(P, Acc) -> queue:in({P, N + 1}, Acc) end, Rest, Next),
                  lists:foldl(fun(P, Acc) -> Acc#{P => true} end, Seen, Next), Goal)
    end.

%% Balanced trees, ordered dictionaries, sorted lists.
ledger() ->
    repeat(8, fun(K) ->
        T = lists:foldl(fun(I, A) -> gb_trees:enter((I * 7919 + K) rem 10007, {entry, I}, A) end, gb_trees:empty(), lists:seq(1, 4000)),
        4000 = gb_trees:size(T),
        L = gb_trees:to_list(T),
        L = lists:keysort(1, lists:reverse(L)),
        D = orddict:from_list(L),
        {ok, _} = orddict:find(element(1, hd(L)), D),
        4000 = length(lists:usort(L ++ L))
    end).

%% Floats and tuples.
shapes() ->
    Points = [{float(I), math:sin(I / 10.0)} || I <- lists:seq(1, 1000)],
    repeat(200, fun(_) ->
        {SX, SY, SXY, SXX} = lists:foldl(fun({X, Y}, {A, B, C, D}) -> {A + X, B + Y, C + X * Y, D + X * X} end, {0.0, 0.0, 0.0, 0.0}, Points),
        Slope = (1000 * SXY - SX * SY) / (1000 * SXX - SX * SX),
        true = abs(Slope) < 1.0,
        1000 = tuple_size(list_to_tuple([round(X * 3) || {X, _} <- Points]))
    end).

%% Text in lists and in binaries, with characters beyond Latin-1.
words() ->
    Text = unicode:characters_to_binary(lists:append(lists:duplicate(60, "Gr\x{fc}\x{df}e aus K\x{f6}ln: \x{65e5}\x{672c}, the lazy dog jumps; "))),
    repeat(20, fun(_) ->
        Ws = string:lexemes(Text, " ,;:"),
        Counts = lists:foldl(fun(W, M) -> maps:update_with(string:lowercase(W), fun(N) -> N + 1 end, 1, M) end, #{}, Ws),
        60 = maps:get(<<"lazy">>, Counts),
        _ = string:pad(string:titlecase(lists:last(Ws)), 20, leading),
        _ = lists:flatten(lists:join("-", [string:uppercase(unicode:characters_to_list(W)) || W <- lists:sublist(Ws, 60)])),
        true = string:find(Text, "dog") =/= nomatch
    end).

%% Binary protocols: frames with lengths, flags in bits, check sums.
packets() ->
    Frames = [<<(I rem 4):2, 1:1, 0:5, (byte_size(B)):16, I:32/little, B/binary>> || I <- lists:seq(1, 300), B <- [binary:copy(<<I>>, I rem 40)]],
    Stream = iolist_to_binary([[F, <<(erlang:crc32(F)):32>>] || F <- Frames]),
    repeat(250, fun(_) -> 300 = frames(Stream, 0) end).
frames(<<_:2, 1:1, _:5, Size:16, I:32/little, Body:Size/binary, _Sum:32, Rest/binary>>, N) when I =:= N + 1 ->
    Size = byte_size(Body),
    frames(Rest, N + 1);
frames(<<>>, N) -> N.

%% Integers of several words, bits, division.
numbers() ->
    repeat(150, fun(K) ->
        P = lists:foldl(fun(I, A) -> (A * (I + K)) rem 1000000007 end, 1, lists:seq(1, 2000)),
        true = P >= 0,
        F = lists:foldl(fun(I, A) -> A * I end, 1, lists:seq(1, 60)),
        0 = F rem 61 + 1 - (F rem 61 + 1),
        _ = (F bsr 100) band 16#FFFF bxor (F bsl 3),
        true = gcd(1071 + K, 462) >= 1
    end).
gcd(A, 0) -> A;
gcd(A, B) -> gcd(B, A rem B).

%% Producers and consumers with a bounded number of messages under way.
queues() ->
    Me = self(),
    C = spawn_link(fun() -> consume(Me, 0, 40000 * 4) end),
    [spawn_link(fun() -> produce(C, 40000, 0) end) || _ <- lists:seq(1, 4)],
    receive {done, 160000} -> true end.
produce(_, 0, _) -> ok;
produce(C, N, W) when W >= 50 -> receive ack -> produce(C, N, W - 50) end;
produce(C, N, W) ->
    C ! {item, self(), N, #{n => N}},
    produce(C, N - 1, W + 1).
consume(Me, N, N) -> Me ! {done, N};
consume(Me, N, All) ->
    receive {item, From, I, #{n := I}} ->
        case I rem 50 of 0 -> From ! ack; _ -> ok end,
        consume(Me, N + 1, All)
    end.

%% Servers that call one another, as those of `gen_server` do.
servers() ->
    Store = spawn_link(fun() -> server(fun({put, K, V}, M) -> {ok, M#{K => V}}; ({get, K}, M) -> {maps:get(K, M, none), M} end, #{}) end),
    Front = spawn_link(fun() -> server(fun(R, N) -> {call(Store, R), N + 1} end, 0) end),
    Ps = [spawn_monitor(fun() -> repeat(2500, fun(N) -> ok = call(Front, {put, {K, N rem 50}, N}), N = call(Front, {get, {K, N rem 50}}) end) end) || K <- lists:seq(1, 8)],
    [receive {'DOWN', R, process, P, normal} -> ok end || {P, R} <- Ps],
    true.
server(F, S) -> receive {call, {From, Tag}, Request} -> {Reply, S2} = F(Request, S), From ! {Tag, Reply}, server(F, S2) end.
call(Pid, Request) ->
    Ref = monitor(process, Pid),
    Pid ! {call, {self(), Ref}, Request},
    receive
        {Ref, Reply} -> demonitor(Ref, [flush]), Reply;
        {'DOWN', Ref, _, _, Reason} -> exit(Reason)
    end.

%% Short processes, monitored, linked and trapped.
watchers() ->
    process_flag(trap_exit, true),
    repeat(200, fun(_) ->
        Ps = [spawn_link(fun() -> exit({shutdown, I * I}) end) || I <- lists:seq(1, 50)],
        [receive {'EXIT', P, {shutdown, _}} -> ok end || P <- Ps],
        Ms = [spawn_monitor(fun() -> receive stop -> ok after 0 -> lists:seq(1, 20) end end) || _ <- lists:seq(1, 50)],
        [receive {'DOWN', M, process, _, normal} -> ok end || {_, M} <- Ms]
    end).

%% Timers that fire and timers that are taken back.
alarms() ->
    repeat(20, fun(_) ->
        Rs = [erlang:start_timer(I rem 4, self(), I) || I <- lists:seq(1, 300)],
        Ts = [erlang:send_after(60000, self(), never) || _ <- lists:seq(1, 300)],
        [receive {timeout, R, _} -> ok end || R <- Rs],
        [begin Left = erlang:cancel_timer(T), true = is_integer(Left) end || T <- Ts]
    end).

%% Messages that others have to pass.
selective() ->
    repeat(40, fun(_) ->
        [self() ! {other, I, lists:seq(1, 5)} || I <- lists:seq(1, 300)],
        [begin self() ! {wanted, I}, receive {wanted, I} -> ok end end || I <- lists:seq(1, 300)],
        [receive {other, I, _} -> ok end || I <- lists:seq(300, 1, -1)]
    end).

%% Tables: sets, bags, ordered sets, match specifications, counters, many readers.
tables() ->
    S = ets:new(s, [public, {read_concurrency, true}]), O = ets:new(o, [ordered_set, public]), B = ets:new(b, [bag]),
    [begin
         ets:insert(S, {{k, I}, I, <<"value">>, [I]}), ets:insert(O, {I * 31 rem 4001, I}), ets:insert(B, {I rem 100, I})
     end || I <- lists:seq(1, 4000)],
    repeat(10, fun(_) ->
        [[{{k, I}, I, _, _}] = ets:lookup(S, {k, I}) || I <- lists:seq(1, 4000)],
        [ets:update_counter(S, {k, I}, {2, 0}) || I <- lists:seq(1, 1000)],
        200 = length(ets:select(S, [{{{k, '$1'}, '_', '_', '_'}, [{'=<', '$1', 200}], ['$1']}])),
        40 = length(ets:lookup(B, 7)),
        _ = ets:foldl(fun({_, V}, A) -> A + V end, 0, O),
        walk(O, ets:first(O), 0)
    end),
    Me = self(),
    Ps = [spawn_link(fun() -> repeat(20000, fun(N) -> [_] = ets:lookup(S, {k, N rem 4000 + 1}) end), Me ! {read, self()} end) || _ <- lists:seq(1, 4)],
    [receive {read, P} -> ok end || P <- Ps],
    [ets:delete(T) || T <- [S, O, B]],
    true.
walk(_, '$end_of_table', N) -> N;
walk(T, K, N) -> walk(T, ets:next(T, K), N + 1).

%% Sorting by several orders; comparison of deep terms.
rankings() ->
    L = [{I * 7919 rem 1009, integer_to_binary(I rem 17), [I rem 5, {x, I}]} || I <- lists:seq(1, 3000)],
    repeat(30, fun(_) ->
        A = lists:sort(L), B = lists:sort(fun(X, Y) -> element(2, X) =< element(2, Y) end, L),
        A = lists:usort(A ++ A), 3000 = length(B),
        C = lists:keysort(3, L), 3000 = length(C),
        true = lists:member(lists:last(L), L), false = lists:member({0, none}, L)
    end).

%% Regular expressions.
patterns() ->
    Text = iolist_to_binary([["2024-0", integer_to_list(I rem 9 + 1), "-1", integer_to_list(I rem 10), " GET /page/", integer_to_list(I), " 200\n"] || I <- lists:seq(1, 300)]),
    {ok, P} = re:compile("(\\d+)-(\\d+)-(\\d+) (GET|POST) (\\S+)"),
    repeat(60, fun(_) ->
        {match, Ms} = re:run(Text, P, [global, {capture, all_but_first, binary}]), 300 = length(Ms),
        _ = re:replace(Text, "page", "site", [global]),
        301 = length(re:split(Text, "\n"))
    end).

%% Formatted output and terms as text.
reports() ->
    repeat(120, fun(K) ->
        [begin
             _ = iolist_to_binary(io_lib:format("~s: ~p at ~.3f (~w), ~ts ~b~n", ["name", {I, [a, "text", <<"b">>]}, I / 7, #{k => I}, <<"x">>, K])),
             _ = io_lib:format("~10.2e ~4..0B ~c", [1.5 * I, I, $x])
         end || I <- lists:seq(1, 20)],
        Text = lists:flatten(io_lib:format("~p.", [[{K, "abc", #{x => 1.5}}, <<"bytes">>, 'Quoted atom']])),
        {ok, Ts, _} = erl_scan:string(Text), {ok, _} = erl_parse:parse_term(Ts)
    end).

%% Exceptions of all classes, through several frames.
failures() -> repeat(40000, fun(N) -> caught = try deep(N rem 8, N rem 3) catch throw:t -> caught; error:{e, _} -> caught; exit:x:_ -> caught end, {'EXIT', _} = (catch hd(id([]))) end).
deep(0, 0) -> throw(t);
deep(0, 1) -> error({e, 1});
deep(0, 2) -> exit(x);
deep(N, K) -> [deep(N - 1, K)].
id(X) -> X.

%% The external format, hashes, copies.
terms() ->
    T = [{I, #{a => I, <<"b">> => [I, I + 1]}, "text", 1.5 * I, self(), make_ref()} || I <- lists:seq(1, 200)],
    repeat(150, fun(_) -> T = binary_to_term(term_to_binary(T)), true = erlang:phash2(T) >= 0, true = erts_debug:flat_size(T) > 200 end).

%% Funs that hold funs.
closures() ->
    Add = fun(N) -> fun(X) -> X + N end end,
    Compose = fun(Fs) -> fun(X) -> lists:foldl(fun(F, A) -> F(A) end, X, Fs) end end,
    repeat(3000, fun(K) ->
        F = Compose([Add(I) || I <- lists:seq(1, 20)]),
        V = F(K), V = K + 210,
        _ = lists:zipwith(fun(A, B) -> {A, B} end, lists:map(F, [1, 2, 3]), lists:filter(fun(X) -> X > 0 end, [1, 2, 3]))
    end).

%% Maps of all sizes: union, removal, iteration.
sets() ->
    repeat(60, fun(K) ->
        A = maps:from_list([{I, I * K} || I <- lists:seq(1, 500)]), B = maps:from_keys([{I, x} || I <- lists:seq(1, 200)], true),
        M = maps:merge(A, B), 700 = map_size(M),
        L = maps:fold(fun(_, _, N) -> N + 1 end, 0, maps:without(lists:seq(1, 100), M)), 600 = L,
        S = lists:foldl(fun(I, Acc) -> maps:remove(I, Acc) end, A, lists:seq(1, 490)), 10 = map_size(S),
        10 = length(maps:keys(maps:map(fun(_, V) -> V + 1 end, S)))
    end).

%% Bytes to and from a connected socket.
streams() ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {packet, 2}]),
    {ok, Port} = inet:port(L),
    spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), echo(S) end),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, true}, {packet, 2}]),
    repeat(1500, fun(N) ->
        ok = gen_tcp:send(C, [<<N:32>>, "request", <<0:800>>]),
        receive {tcp, C, <<N:32, "request", _/binary>>} -> ok end
    end),
    gen_tcp:close(C), gen_tcp:close(L), true.
echo(S) ->
    case gen_tcp:recv(S, 0) of
        {ok, B} -> ok = gen_tcp:send(S, B), echo(S);
        {error, closed} -> ok
    end.

%% Files in lines, whole, and in pieces.
files() ->
    Name = filename:join(os:getenv("TMPDIR", "/tmp"), "train-" ++ os:getpid()),
    Data = [["line ", integer_to_list(I), $\n] || I <- lists:seq(1, 2000)],
    repeat(25, fun(_) ->
        ok = file:write_file(Name, Data), {ok, B} = file:read_file(Name), B = iolist_to_binary(Data),
        {ok, F} = file:open(Name, [read, raw, binary, {read_ahead, 4096}]), 2000 = lines(F, 0), ok = file:close(F),
        {ok, G} = file:open(Name, [read]), {ok, "line 1\n"} = file:read_line(G), ok = file:close(G),
        {ok, _} = file:read_file_info(Name)
    end),
    ok = file:delete(Name), true.
lines(F, N) -> case file:read_line(F) of {ok, _} -> lines(F, N + 1); eof -> N end.

%% Many requests under way, whose replies come in any order.
replies() ->
    W = spawn_link(fun() -> work([]) end),
    repeat(60, fun(_) ->
        Rs = [begin R = make_ref(), W ! {ask, self(), R, I}, R end || I <- lists:seq(1, 200)],
        W ! flush,
        [receive {R, {ok, V}} when is_integer(V) -> ok end || R <- Rs]
    end).
work(Acc) ->
    receive
        {ask, P, R, I} -> work([{P, R, I} | Acc]);
        flush -> [P ! {R, {ok, I * I}} || {P, R, I} <- Acc], work([])
    end.

%% Numbers as text and back.
digits() ->
    repeat(40, fun(K) ->
        [begin
             I = binary_to_integer(integer_to_binary(I)), I = list_to_integer(integer_to_list(I, 16), 16),
             F = I / 3, F = binary_to_float(float_to_binary(F, [short])), _ = float_to_list(F, [{decimals, 3}])
         end || I <- lists:seq(K, K + 500)],
        B = base64:encode(<<0:4096>>), <<0:4096>> = base64:decode(B)
    end).

%% A web server: a process for each connection, a page of rows for each request, connections that
%% are kept.
pages() ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}, {packet, http_bin}, {backlog, 64}, {nodelay, true}]),
    {ok, Port} = inet:port(L),
    spawn_link(fun() -> accept(L) end),
    Cs = [spawn_monitor(fun() -> client(Port, 150) end) || _ <- lists:seq(1, 32)],
    [receive {'DOWN', R, process, P, normal} -> ok end || {P, R} <- Cs],
    gen_tcp:close(L),
    true.
accept(L) ->
    case gen_tcp:accept(L) of
        {ok, S} ->
            P = spawn(fun() -> receive go -> requests(S) end end),
            ok = gen_tcp:controlling_process(S, P), P ! go, accept(L);
        {error, closed} -> ok
    end.
requests(S) ->
    case gen_tcp:recv(S, 0) of
        {ok, {http_request, 'GET', {abs_path, Path}, _}} ->
            Headers = headers(S, #{}),
            Body = render(Path, maps:get('Host', Headers, <<>>)),
            ok = gen_tcp:send(S, [<<"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: ">>, integer_to_binary(iolist_size(Body)), <<"\r\n\r\n">>, Body]),
            requests(S);
        {error, closed} -> ok
    end.
headers(S, M) ->
    case gen_tcp:recv(S, 0) of
        {ok, {http_header, _, Name, _, Value}} -> headers(S, M#{Name => Value});
        {ok, http_eoh} -> M
    end.
render(<<"/", N/binary>>, Host) ->
    [<<"<html><body><h1>">>, escape(Host), <<"</h1><table>">>,
     [[<<"<tr><td>">>, integer_to_binary(I), <<"</td><td>">>, escape(<<"a <row> of \"text\"">>), <<"</td></tr>\n">>] || I <- lists:seq(1, binary_to_integer(N))],
     <<"</table></body></html>">>].
client(Port, N) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, raw}, {nodelay, true}]),
    [get(S, integer_to_binary(I rem 60)) || I <- lists:seq(1, N)],
    gen_tcp:close(S).
get(S, N) ->
    ok = gen_tcp:send(S, [<<"GET /">>, N, <<" HTTP/1.1\r\nHost: example\r\nAccept: */*\r\nUser-Agent: train\r\n\r\n">>]),
    answer(S, <<>>).
answer(S, B) ->
    case binary:split(B, <<"\r\n\r\n">>) of
        [Head, Body] ->
            [_, L] = binary:split(Head, <<"content-length: ">>),
            case binary_to_integer(L) - byte_size(Body) of
                0 -> ok;
                Left -> {ok, _} = gen_tcp:recv(S, Left), ok
            end;
        [_] -> {ok, More} = gen_tcp:recv(S, 0), answer(S, <<B/binary, More/binary>>)
    end.
