%% A program explains its own costs again and again while its processes build, send, store and end.
%% Each answer comes from a look at what they hold. On stock, which cannot be asked, the same work
%% is done without requests. @stress @shared @fence @seconds 200
-module(explained_program).
-export([main/0, holder/1, loop/2]).

main() ->
    process_flag(trap_exit, true),
    Large = binary:copy(<<"0123456789">>, 3000),
    Parts = [binary:part(Large, N * 50, 90) || N <- lists:seq(1, 100)],
    T = ets:new(cache, [ordered_set, public]),
    U = ets:new(other, [set, public, named_table, {write_concurrency, true}]),
    ets:insert(T, [{N, P, #{part => P}} || {N, P} <- lists:enumerate(Parts)]),
    ets:insert(U, [{N, [P | tail]} || {N, P} <- lists:enumerate(Parts)]),
    persistent_term:put({?MODULE, key}, {Parts, maps:from_list(lists:enumerate(Parts))}),
    Holders = [spawn_link(?MODULE, holder, [binary:part(Large, 7, 100)]) || _ <- lists:seq(1, 8)],
    [H ! {keep, fun() -> {N, P, Large} end} || {N, P, H} <- lists:zip3(lists:seq(1, 8), lists:sublist(Parts, 8), Holders)],
    [hd(Holders) ! {later, P, Large} || P <- Parts],
    Busy = [spawn_link(?MODULE, loop, [N, Parts]) || N <- lists:seq(1, 4)],
    Topics = ["binaries top=1000", "memory", "latency", "writes", "copies", "allocation", "collections", "work", "mailbox",
              "profile top=1000", "run", "nonsense", "binaries"],
    Found = socket(),
    Asked = [ask(Found, Topic) || Topic <- Topics],
    io:format("asked: ~p~n", [lists:usort([sound(Found, A) || A <- Asked])]),
    io:format("holder told: ~p~n", [told(Found, hd(Asked))]),
    Sums = [begin H ! {sum, self()}, receive {H, S} -> S end end || H <- Holders],
    io:format("sums: ~p~n", [Sums]),
    io:format("tables: ~p ~p~n", [sum(T), sum(U)]),
    [exit(P, kill) || P <- Busy ++ Holders],
    [receive {'EXIT', P, R} -> R end || P <- Busy ++ Holders],
    persistent_term:erase({?MODULE, key}),
    io:format("done~n"),
    init:stop().

%% Keeps a part, a fun, and in its dictionary a map.
holder(Part) ->
    put(kept, #{part => Part, deep => [{x, [Part]}]}),
    holder(Part, none).

holder(Part, Fun) ->
    receive
        {keep, F} -> holder(Part, F);
        {sum, From} ->
            {N, P, L} = Fun(),
            From ! {self(), {N, byte_size(P), erlang:crc32(L), erlang:crc32(Part)}},
            holder(Part, Fun)
    end.

%% Makes garbage, copies and waits.
loop(N, Parts) ->
    L = [{N, P, binary:copy(P, 9)} || P <- Parts],
    S = self(),
    X = spawn(fun() -> S ! {self(), length(L)} end),
    receive {X, 100} -> ok end,
    loop(N, Parts).

sum(T) ->
    ets:foldl(fun(O, S) -> S bxor erlang:crc32(term_to_binary(O)) end, 0, T).

socket() ->
    case string:find(erlang:system_info(system_version), "purlin") of
        nomatch -> stock;
        _ ->
            Run = case os:getenv("XDG_RUNTIME_DIR") of false -> []; D -> [D] end,
            User = string:trim(os:cmd("id -u")),
            Folders = [filename:join(D, "purlin") || D <- Run ++ ["/run/user/" ++ User]] ++ ["/tmp/purlin-" ++ User],
            Files = [filename:join(F, os:getpid()) || F <- Folders],
            case [F || F <- Files, filelib:is_file(F) orelse element(1, file:read_file_info(F)) =:= ok] of
                [File | _] -> File;
                [] -> missing
            end
    end.

ask(File, Topic) when is_list(File) ->
    {ok, S} = gen_tcp:connect({local, File}, 0, [local, binary, {active, false}]),
    ok = gen_tcp:send(S, [Topic, "\n"]),
    all(S, []);
ask(Other, _) -> Other.

all(S, Acc) ->
    case gen_tcp:recv(S, 0) of
        {ok, B} -> all(S, [Acc, B]);
        {error, closed} -> iolist_to_binary(Acc)
    end.

sound(File, Answer) when is_list(File) ->
    Ends = binary:match(Answer, <<"}\n">>, [{scope, {byte_size(Answer), -2}}]),
    case {binary:match(Answer, <<"\"purlin-explain/1\"">>), Ends} of
        {{_, _}, {_, _}} -> ok;
        _ -> {bad, Answer}
    end;
sound(stock, stock) -> ok;
sound(_, Other) -> Other.

%% The way to a part is told for some holder. What lies in regions in this mode may be held in other
%% ways.
told(File, Answer) when is_list(File) ->
    Ways = [<<"state">>, <<"key part">>, <<"element 2 of a tuple">>, <<"captured variable">>, <<"item ">>, <<"object with key">>,
            <<"value of ">>, <<"a variable of ">>],
    lists:any(fun(W) -> binary:match(Answer, W) =/= nomatch end, Ways);
told(stock, _) -> true;
told(_, _) -> missing.
