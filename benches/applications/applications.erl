%% Pieces of whole applications: `erl -noshell -pa DIR -run applications main NAME` runs one and
%% prints the processor time of the whole runtime in milliseconds, start included, a hash of its
%% result, and the largest resident size in kilobytes. `scripts/bench-applications.sh`
%% runs them on both runtimes in turn. No program of `training/` is made from these.
-module(applications).
-export([main/1, names/0]).
-export([compile_modules/0, lint_and_print/0, json_replies/0, xml/0, pipeline/0, mnesia/0, timers/0, cache/0, registries/0, regex/0, formatting/0,
         logging/0, dialyzer/0, dialect/0, accounts/0, validation/0, text/0]).
-export([request/3, log/2]).

names() ->
    [compile_modules, lint_and_print, json_replies, xml, pipeline, mnesia, timers, cache, registries, regex, formatting, logging, dialyzer,
     dialect, accounts, validation, text].

main([Name]) ->
    Result = ?MODULE:(list_to_atom(Name))(),
    io:format("~b ~b ~b~n", [used_ms(), erlang:phash2(Result), most_kb()]),
    erlang:halt(0, [{flush, true}]).

%% User and system time of the process in milliseconds, as the system counts it.
used_ms() ->
    {ok, Text} = file:read_file("/proc/self/stat"),
    [_, Rest] = binary:split(Text, <<") ">>),
    Fields = binary:split(Rest, <<" ">>, [global]),
    [User, System] = [binary_to_integer(lists:nth(N, Fields)) || N <- [12, 13]],
    (User + System) * 10.

most_kb() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [N]} = re:run(Text, "VmHWM:\\s+([0-9]+)", [{capture, all_but_first, binary}]),
    binary_to_integer(N).

%% Runs F(X) for each X in a process of its own, at most Width at a time, and returns the results in
%% order.
each(F, Xs, Width) ->
    {Now, Later} = lists:split(min(Width, length(Xs)), Xs),
    each_wait([begun(F, X) || X <- Now], Later, F).

begun(F, X) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> Self ! {self(), F(X)} end),
    {Pid, Ref}.

each_wait([], [], _) -> [];
each_wait([{Pid, Ref} | Rest], Later, F) ->
    receive
        {Pid, R} -> erlang:demonitor(Ref, [flush]);
        {'DOWN', Ref, process, Pid, R} -> error(R)
    end,
    case Later of
        [X | More] -> [R | each_wait(Rest ++ [begun(F, X)], More, F)];
        [] -> [R | each_wait(Rest, [], F)]
    end.

%% Sources of OTP's stdlib, in order of their names. Some need headers of other applications.
sources(From, Count) ->
    Dir = filename:join(code:lib_dir(stdlib), "src"),
    All = lists:sort(filelib:wildcard(filename:join(Dir, "*.erl"))),
    {Dir, lists:sublist([F || F <- All, filelib:file_size(F) < 40_000], From, Count)}.

%% --- compiling and other work on sources

compile_modules() ->
    {Dir, Files} = sources(1, 60),
    Options = [binary, return_errors, {i, filename:join(Dir, "../include")}, {i, filename:join(code:lib_dir(kernel), "include")},
               {i, filename:join(code:lib_dir(kernel), "src")}],
    length([ok || F <- Files, {ok, _, _} <- [compile:file(F, Options)]]).

lint_and_print() ->
    {Dir, Files} = sources(20, 60),
    Path = [filename:join(Dir, "../include"), filename:join(code:lib_dir(kernel), "include"), Dir],
    One = fun(F) ->
        {ok, Forms} = epp:parse_file(F, [{includes, Path}]),
        Good = [X || X <- Forms, element(1, X) =/= error],
        erl_lint:module(Good, F),
        _ = iolist_size([erl_pp:form(X) || X <- Good, element(1, X) =:= function]),
        length(Good)
    end,
    {each(One, Files, 64), each(One, Files, 64)}.

dialyzer() ->
    Names = [dict, orddict, ordsets, sets, gb_sets, gb_trees, queue, proplists, string, array],
    Beams = [filename:join([code:lib_dir(stdlib), "ebin", atom_to_list(N) ++ ".beam"]) || N <- Names],
    Plt = "/tmp/applications-" ++ os:getpid() ++ ".plt",
    Warnings = dialyzer:run([{analysis_type, plt_build}, {files, Beams}, {output_plt, Plt}, {get_warnings, true}]),
    file:delete(Plt),
    length(Warnings).

%% --- documents

document(N) ->
    #{<<"id">> => N, <<"name">> => <<"item ", (integer_to_binary(N))/binary, " caf\303\251">>, <<"price">> => N / 4,
      <<"tags">> => [<<"a">>, <<"b\"c">>, null, true], <<"nested">> => #{<<"x">> => [1, 2, 3, N], <<"y">> => #{}},
      <<"customer">> => #{<<"first">> => <<"Ada">>, <<"last">> => <<"Lovelace">>, <<"age">> => N rem 90, <<"active">> => N rem 2 =:= 0}}.

json_replies() ->
    Encode = fun json:encode/1,
    Texts = [iolist_to_binary(Encode([document(N * 10 + I) || I <- lists:seq(1, 8)])) || N <- lists:seq(1, 200)],
    Serve = fun(Text) ->
        Documents = json:decode(Text),
        Changed = [D#{<<"price">> := 2 * P, <<"seen">> => true} || D = #{<<"price">> := P} <- Documents],
        iolist_to_binary(Encode(Changed))
    end,
    Self = self(),
    Round = fun() ->
        Refs = [begin Ref = make_ref(), spawn_link(fun() -> Self ! {Ref, Serve(T)} end), Ref end || T <- Texts ++ Texts ++ Texts ++ Texts],
        lists:sum([receive {Ref, R} -> byte_size(R) end || Ref <- Refs])
    end,
    [Round() || _ <- lists:seq(1, 12)].

xml() ->
    Items = [io_lib:format("<item id=\"~b\" kind=\"k~b\"><name>thing ~b</name><price currency='EUR'>~.2f</price>"
                           "<note>some &lt;text&gt; &amp; more ~b</note></item>", [N, N rem 7, N, N / 3, N * N]) || N <- lists:seq(1, 400)],
    Text = lists:flatten(["<?xml version=\"1.0\"?><list>", Items, "</list>"]),
    Binary = unicode:characters_to_binary(Text),
    Count = fun({startElement, _, _, _, As}, _, {N, M}) -> {N + 1, M + length(As)};
               (_, _, S) -> S
            end,
    [begin
         {Doc, []} = xmerl_scan:string(Text, [{quiet, true}]),
         Found = length(xmerl_xpath:string("/list/item[@kind='k3']/name", Doc)),
         Out = iolist_size(xmerl:export_simple([Doc], xmerl_xml)),
         {ok, S, _} = xmerl_sax_parser:stream(Binary, [{event_fun, Count}, {event_state, {0, 0}}]),
         {Out, S, Found}
     end || _ <- lists:seq(1, 30)].

%% --- processes

pipeline() ->
    Stages = [fun(L) -> [string:trim(X) || X <- L] end,
              fun(L) -> [binary:split(X, <<",">>, [global]) || X <- L] end,
              fun(L) -> [#{name => A, amount => binary_to_integer(B), city => C} || [A, B, C] <- L] end,
              fun(L) -> [M || M = #{amount := A} <- L, A rem 3 =/= 0] end,
              fun(L) -> maps:to_list(lists:foldl(fun(#{city := C, amount := A}, Acc) -> maps:update_with(C, fun(X) -> X + A end, A, Acc) end, #{}, L)) end],
    Self = self(),
    First = lists:foldr(fun(F, Next) -> spawn_link(fun() -> stage(F, Next) end) end, Self, Stages),
    Batches = [[iolist_to_binary([" name", integer_to_list(N), ",", integer_to_list(N * B), ",city", integer_to_list(N rem 17), " "])
                || N <- lists:seq(1, 50)] || B <- lists:seq(1, 40)],
    [begin
         [First ! {data, B} || B <- Batches],
         [receive {data, R} -> lists:sum([X || {_, X} <- R]) end || _ <- Batches]
     end || _ <- lists:seq(1, 100)].

stage(F, Next) ->
    receive {data, L} -> Next ! {data, F(L)}, stage(F, Next) end.

timers() ->
    Self = self(),
    Round = fun(Count) ->
        Refs = [begin
                    Ref = make_ref(),
                    spawn_link(fun() ->
                        T = erlang:send_after(60_000, self(), never),
                        receive go -> ok after N rem 20 -> ok end,
                        Left = erlang:cancel_timer(T),
                        Self ! {Ref, is_integer(Left)}
                    end),
                    Ref
                end || N <- lists:seq(1, Count)],
        length([ok || Ref <- Refs, receive {Ref, true} -> true end])
    end,
    [Round(3000) || _ <- lists:seq(1, 16)].

%% Thousands of processes that find each other by names in a table and call one after the other.
registries() ->
    T = ets:new(names, [set, public, {read_concurrency, true}]),
    Count = 3000,
    [ets:insert(T, {{worker, N}, spawn_link(fun() -> worker(#{}) end)}) || N <- lists:seq(1, Count)],
    Clients = fun(C) ->
        lists:foldl(fun(I, Sum) ->
            [{_, Pid}] = ets:lookup(T, {worker, (I * 7 + C * 31) rem Count + 1}),
            Sum + call(Pid, {add, I rem 10, C})
        end, 0, lists:seq(1, 4000))
    end,
    length(each(Clients, lists:seq(1, 40), 20)).

worker(State) ->
    receive
        {call, From, Ref, {add, K, V}} ->
            New = maps:update_with(K, fun(X) -> X + V end, V, State),
            From ! {Ref, map_size(New)},
            worker(New)
    end.

call(Pid, What) ->
    Ref = monitor(process, Pid),
    Pid ! {call, self(), Ref, What},
    receive
        {Ref, R} -> demonitor(Ref, [flush]), R;
        {'DOWN', Ref, process, _, R} -> error(R)
    end.

%% Accounts as gen_servers' loops do them: each holds a map, transfers between two.
accounts() ->
    Count = 400,
    Pids = list_to_tuple([spawn_link(fun() -> account(#{balance => 1000, log => []}) end) || _ <- lists:seq(1, Count)]),
    Transfer = fun(C) ->
        lists:foldl(fun(I, Ok) ->
            A = element((I * 13 + C) rem Count + 1, Pids),
            B = element((I * 29 + C * 3) rem Count + 1, Pids),
            case call(A, {withdraw, I rem 50}) of
                ok -> ok = call(B, {deposit, I rem 50}), Ok + 1;
                refused -> Ok
            end
        end, 0, lists:seq(1, 2500))
    end,
    each(Transfer, lists:seq(1, 30), 10),
    lists:sum([call(P, balance) || P <- tuple_to_list(Pids)]).

account(#{balance := B, log := L} = S) ->
    receive
        {call, From, Ref, {withdraw, N}} when N > B -> From ! {Ref, refused}, account(S);
        {call, From, Ref, {withdraw, N}} -> From ! {Ref, ok}, account(S#{balance := B - N, log := lists:sublist([{out, N} | L], 20)});
        {call, From, Ref, {deposit, N}} -> From ! {Ref, ok}, account(S#{balance := B + N, log := lists:sublist([{in, N} | L], 20)});
        {call, From, Ref, balance} -> From ! {Ref, B}, account(S)
    end.

%% --- tables

mnesia() ->
    application:set_env(mnesia, dump_log_write_threshold, 100_000),
    ok = mnesia:start(),
    {atomic, ok} = mnesia:create_table(stock, [{attributes, [id, amount, place]}, {index, [place]}]),
    {atomic, ok} = mnesia:create_table(orders, [{attributes, [id, item, count]}]),
    ok = mnesia:wait_for_tables([stock, orders], 5000),
    {atomic, _} = mnesia:transaction(fun() -> [mnesia:write({stock, I, 1_000_000, I rem 10}) || I <- lists:seq(1, 500)] end),
    Client = fun(C) ->
        [begin
             Id = (C * 37 + N * 11) rem 500 + 1,
             {atomic, ok} = mnesia:transaction(fun() ->
                 [{stock, Id, A, P}] = mnesia:read(stock, Id, write),
                 mnesia:write({stock, Id, A - 1, P}),
                 mnesia:write({orders, {C, N}, Id, 1})
             end),
             N rem 40 =:= 0 andalso mnesia:transaction(fun() ->
                 Here = mnesia:index_read(stock, Id rem 10, 4),
                 Mine = mnesia:match_object({orders, {C, '_'}, Id, '_'}),
                 length(Here) + length(Mine)
             end)
         end || N <- lists:seq(1, 700)],
        ok
    end,
    each(Client, lists:seq(1, 12), 6),
    {atomic, Sum} = mnesia:transaction(fun() -> mnesia:foldl(fun({_, _, A, _}, S) -> S + A end, 0, stock) end),
    {Sum, mnesia:table_info(orders, size)}.

cache() ->
    T = ets:new(cache, [set, public, {write_concurrency, true}]),
    Ages = ets:new(ages, [ordered_set, public]),
    Client = fun(C) ->
        lists:foldl(fun(N, Hits) ->
            Key = {user, (N * N + C * 7) rem 3001},
            Hit = case ets:lookup(T, Key) of
                [{_, _, Value}] -> _ = map_size(Value), 1;
                [] ->
                    Stamp = {N, C},
                    ets:insert(T, {Key, Stamp, #{name => <<"a name">>, mail => [<<"x@y.example">>], number => N}}),
                    ets:insert(Ages, {Stamp, Key}),
                    0
            end,
            ets:update_counter(T, hits, {2, Hit}, {hits, 0}),
            case N rem 500 of
                0 ->
                    Old = ets:select(Ages, [{{{'$1', '_'}, '$2'}, [{'<', '$1', N - 400}], ['$_']}], 100),
                    case Old of
                        {L, _} -> [begin ets:delete(Ages, S), ets:delete(T, K) end || {S, K} <- L];
                        '$end_of_table' -> ok
                    end;
                _ -> ok
            end,
            Hits + Hit
        end, 0, lists:seq(1, 25_000))
    end,
    length(each(Client, lists:seq(1, 30), 6)).

%% --- text

lines() ->
    [iolist_to_binary(io_lib:format("10.0.~b.~b - user~b [29/Nov/2026:11:~2..0b:~2..0b +0000] \"GET /path/~b?q=~b HTTP/1.1\" ~b ~b \"agent ~b\"",
                                    [N rem 250, N rem 99, N rem 31, N rem 60, N rem 59, N, N * 3, 200 + N rem 5, N * 17, N rem 4]))
     || N <- lists:seq(1, 2000)].

regex() ->
    {ok, Line} = re:compile("^(\\S+) \\S+ (\\S+) \\[([^\\]]+)\\] \"(\\w+) ([^ \"]+)[^\"]*\" (\\d+) (\\d+)"),
    Lines = lines(),
    One = fun(L) ->
        {match, [Host, User, _, Method, Path, Status, _]} = re:run(L, Line, [{capture, all_but_first, binary}]),
        Masked = re:replace(Path, "[0-9]+", "N", [global, {return, binary}]),
        Parts = re:split(Host, "\\.", [{return, list}]),
        {User, Method, Masked, Status, length(Parts)}
    end,
    [lists:foldl(fun(L, Acc) -> maps:update_with(One(L), fun(X) -> X + 1 end, 1, Acc) end, #{}, Lines) || _ <- lists:seq(1, 40)].

formatting() ->
    Terms = [{person, "name " ++ integer_to_list(N), <<"binary">>, [{age, N}, {weight, N / 7}, {tags, [a, 'B c', "str"]}], #{k => N, <<"l">> => [1, 2]}}
             || N <- lists:seq(1, 60)],
    [begin
         A = [io_lib:format("~p~n", [T]) || T <- Terms],
         B = [io_lib:format("~-20s|~8b|~10.3f|~w|~ts~n", [lists:sublist(element(2, T), 15), N, N / 3, T, [1080, 1081]])
              || {N, T} <- lists:zip(lists:seq(1, 60), Terms)],
         iolist_size(A) + length(lists:flatten(B))
     end || _ <- lists:seq(1, 250)].

logging() ->
    T = ets:new(sink, [public]),
    ets:insert(T, {bytes, 0}),
    ok = logger:remove_handler(default),
    ok = logger:add_handler(sink, ?MODULE, #{config => T, formatter => {logger_formatter, #{template => [time, " ", level, " ", pid, " ", msg, "\n"]}}}),
    ok = logger:set_primary_config(level, info),
    Client = fun(C) ->
        [begin
             logger:info("request ~p from ~s took ~.3f ms", [{C, N}, "10.0.0.1", N / 7], #{request => N}),
             logger:debug("nobody sees ~p", [N]),
             logger:warning(#{what => slow, id => N, path => <<"/a/b">>})
         end || N <- lists:seq(1, 1500)]
    end,
    each(Client, lists:seq(1, 10), 5),
    ok.

log(Event, #{config := T, formatter := {M, C}}) ->
    ets:update_counter(T, bytes, iolist_size(unicode:characters_to_binary(M:format(Event, C)))).

text() ->
    Lines = lines(),
    [begin
         Words = lists:append([string:lexemes(L, " \"[]/?=") || L <- Lines]),
         Counts = lists:foldl(fun(W, M) -> maps:update_with(W, fun(X) -> X + 1 end, 1, M) end, #{}, Words),
         Sorted = lists:sublist(lists:sort(fun({_, A}, {_, B}) -> A >= B end, maps:to_list(Counts)), 20),
         Upper = [string:uppercase(W) || {W, _} <- Sorted],
         iolist_size(lists:join(<<", ">>, Upper))
     end || _ <- lists:seq(1, 20)].

%% --- computation as programs do it

%% An evaluator of a small Lisp, with environments in maps whose keys are strings.
dialect() ->
    Source = "(let (fib (fn (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) "
             "      sum (fn (n acc) (if (= n 0) acc (sum (- n 1) (+ acc n))))) "
             "  (+ (fib 18) (sum 3000 0)))",
    Tokens = tokens(Source, []),
    {Tree, []} = parsed(Tokens),
    [value(Tree, #{}) || _ <- lists:seq(1, 80)].

tokens([], Acc) -> lists:reverse(Acc);
tokens([C | T], Acc) when C =:= $(; C =:= $) -> tokens(T, [[C] | Acc]);
tokens([$\s | T], Acc) -> tokens(T, Acc);
tokens(T, Acc) ->
    {Word, Rest} = lists:splitwith(fun(C) -> not lists:member(C, " ()") end, T),
    tokens(Rest, [Word | Acc]).

parsed(["(" | T]) -> parsed_list(T, []);
parsed([W | T]) ->
    try {list_to_integer(W), T} catch error:badarg -> {{name, W}, T} end.

parsed_list([")" | T], Acc) -> {lists:reverse(Acc), T};
parsed_list(T, Acc) -> {X, Rest} = parsed(T), parsed_list(Rest, [X | Acc]).

value(N, _) when is_integer(N) -> N;
value({name, W}, Env) ->
    case Env of
        #{W := V} -> V;
        _ -> throw({unbound, W})
    end;
value([{name, "let"}, Bindings, Body], Env) -> value(Body, bound(Bindings, Env));
value([{name, "fn"}, Names, Body], Env) -> {closure, [N || {name, N} <- Names], Body, Env};
value([{name, "if"}, C, A, B], Env) ->
    case value(C, Env) of
        true -> value(A, Env);
        false -> value(B, Env)
    end;
value([{name, Op}, A, B], Env) when Op =:= "+"; Op =:= "-"; Op =:= "<"; Op =:= "=" ->
    X = value(A, Env), Y = value(B, Env),
    case Op of "+" -> X + Y; "-" -> X - Y; "<" -> X < Y; "=" -> X =:= Y end;
value([F | Args], Env) ->
    {closure, Names, Body, Outer} = value(F, Env),
    Values = [value(A, Env) || A <- Args],
    Inner = lists:foldl(fun({N, V}, E) -> E#{N => V} end, maps:merge(Env, Outer), lists:zip(Names, Values)),
    value(Body, Inner).

bound([{name, N}, X | Rest], Env) -> bound(Rest, Env#{N => value(X, Env)});
bound([], Env) -> Env.

%% Requests with fields that are checked, half of which fail by exceptions.
validation() ->
    Requests = [#{"name" => "user" ++ integer_to_list(N), "age" => case N rem 4 of 0 -> "x"; _ -> integer_to_list(N rem 120) end,
                  "mail" => case N rem 6 of 0 -> "nobody"; _ -> "a@b.example" end} || N <- lists:seq(1, 500)],
    Check = fun(R) ->
        try request(R, [name, age, mail], #{}) of
            M -> {ok, map_size(M)}
        catch
            error:badarg -> {error, age};
            throw:{invalid, What} -> {error, What};
            Class:Reason:_ -> {Class, Reason}
        end
    end,
    [lists:foldl(fun(R, A) -> maps:update_with(Check(R), fun(X) -> X + 1 end, 1, A) end, #{}, Requests) || _ <- lists:seq(1, 1500)].

request(_, [], Acc) -> Acc;
request(R, [name | T], Acc) ->
    #{"name" := N} = R,
    length(N) > 4 orelse throw({invalid, name}),
    request(R, T, Acc#{name => list_to_binary(N)});
request(R, [age | T], Acc) -> request(R, T, Acc#{age => list_to_integer(maps:get("age", R))});
request(R, [mail | T], Acc) ->
    Mail = maps:get("mail", R),
    lists:member($@, Mail) orelse throw({invalid, mail}),
    request(R, T, Acc#{mail => Mail}).
