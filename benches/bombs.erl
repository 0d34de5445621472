%% Programs that exceed a budget, each beside a server that answers every millisecond. Only Purlin
%% has budgets.
%%
%% `purlin erl -noshell -run bombs main [Name...]` prints, for each bomb, its end, the peak by the
%% bill and by the resident set above what there was before, the time beyond the limit, and the
%% server's p99 alone and beside the bomb.
-module(bombs).
-export([main/0, main/1, init/1, start_child/0]).

-define(LIMIT, (32 bsl 20)).

all() ->
    [fork, binary, binaries, heap, message, binary_message, region_message, table, binary_table,
     large_table, update_table, timer, atom, busy, native, port, persistent, dictionary, iolist,
     logger, links, names, code, re, unicode, supervisor, catching, writable, outside].

main() -> main([]).
main(Names) ->
    logger:set_primary_config(level, none),
    Run = case Names of
        [] -> all();
        _ -> [list_to_atom(N) || N <- Names]
    end,
    [one(N) || N <- Run],
    halt().

one(Name) ->
    erlang:garbage_collect(),
    {Alone, _} = server(700, fun() -> ok end),
    Base = rss(),
    {ok, B} = purlin:budget(limits(Name)),
    Sampler = sampler(B),
    {Beside, End} = server(1500, fun() ->
        {_, R} = spawn_opt(fun() -> bomb(Name) end, [{budget, B}, monitor]),
        R
    end),
    Sampler ! {stop, self()},
    {Peak, Over} = receive {sampled, P, O} -> {P, O} end,
    #{peak := #{memory := Billed}, reached := Reached} = Info = purlin:budget_info(B),
    Held = rss() - Base,
    #{use := #{memory := Use, processes := N, cpu_ms := Ms}} = Info,
    purlin:end_budget(B),
    gone(B, 300),
    io:format("~-15s ~-28s billed ~7.2f rss ~7.2f held ~7.2f use ~7.2f MB over ~4w ms"
              " p99 ~8w ~8w us max ~8w n ~w cpu ~w reached ~w~n",
              [Name, brief(End), mb(Billed), mb(Peak - Base), mb(Held), mb(Use), Over,
               p99(Alone), p99(Beside), lists:max(Beside), N, Ms,
               [{K, V} || {K, V} <- maps:to_list(Reached), V > 0]]).

gone(_, 0) -> io:format("  still there~n");
gone(B, N) ->
    try purlin:budget_info(B) of _ -> timer:sleep(10), gone(B, N - 1)
    catch error:badarg -> ok end.

brief(T) -> string:slice(io_lib:format("~0p", [T]), 0, 28).
mb(N) -> N / 1048576.

limits(busy) -> #{name => busy, cpu => 10};
limits(native) -> #{name => native, cpu => 10};
limits(re) -> #{name => re, cpu => 10, memory => ?LIMIT};
limits(unicode) -> #{name => unicode, cpu => 50, memory => ?LIMIT};
limits(message) -> #{name => message, memory => ?LIMIT, cpu => 50};
limits(Name) -> #{name => Name, memory => ?LIMIT, processes => 2000, atoms => 500, ports => 50,
                  tables => 50, cpu => 50}.

%% A server that is asked every millisecond, for so many milliseconds: microseconds of each answer.
server(For, Start) ->
    Server = spawn(fun serve/0),
    Self = self(),
    spawn_opt(fun() ->
        Until = erlang:monotonic_time(millisecond) + For,
        Self ! {times, ask(Server, Until, [])}
    end, []),
    R = Start(),
    Times = receive {times, T} -> T end,
    exit(Server, kill),
    End = receive {'DOWN', R, _, _, Why} -> Why after 0 -> held end,
    {Times, End}.

serve() ->
    receive {ask, P, R} -> P ! {R, lists:sum(lists:seq(1, 50))} end,
    serve().

ask(Server, Until, Times) ->
    case erlang:monotonic_time(millisecond) >= Until of
        true -> Times;
        false ->
            receive after 1 -> ok end,
            T0 = erlang:monotonic_time(microsecond),
            R = make_ref(),
            Server ! {ask, self(), R},
            receive {R, _} -> ok end,
            ask(Server, Until, [erlang:monotonic_time(microsecond) - T0 | Times])
    end.

p99(L) -> lists:nth(max(1, length(L) div 100), lists:reverse(lists:sort(L))).

%% The largest resident set, and the milliseconds from the first to the last sample with more used
%% than the limit.
sampler(B) -> spawn_opt(fun() -> sample(B, 0, none, none) end, [{priority, high}]).

sample(B, Peak, First, Last) ->
    receive
        {stop, P} -> P ! {sampled, Peak, case First of none -> 0; _ -> Last - First end}
    after 4 ->
        R = rss(),
        Now = erlang:monotonic_time(millisecond),
        {F, L} = case purlin:budget_info(B) of
            #{limits := #{memory := M}, use := #{memory := U}} when U > M ->
                {case First of none -> Now; _ -> First end, Now};
            _ -> {First, Last}
        end,
        sample(B, max(Peak, R), F, L)
    end.

rss() ->
    {ok, F} = file:open("/proc/self/statm", [read, raw]),
    {ok, L} = file:read(F, 100),
    file:close(F),
    [_, R | _] = string:lexemes(L, " "),
    list_to_integer(R) * 4096.

idle() -> receive stop -> ok end.

bomb(fork) -> forks();
bomb(binary) -> exit([catching(fun() -> binary:copy(<<0>>, 100 bsl 20) end),
                      catching(fun() -> <<0:(800 bsl 20)>> end),
                      catching(fun() -> list_to_binary([<<0:(80 bsl 20)>> || _ <- lists:seq(1, 10)]) end)]);
bomb(binaries) -> binaries([]);
bomb(heap) -> heap([]);
bomb(message) -> messages(self());
bomb(binary_message) -> binary_messages(self());
bomb(region_message) -> region_messages(self());
bomb(table) -> table(ets:new(x, []), 0);
bomb(binary_table) -> binary_table(ets:new(x, []), 0);
bomb(large_table) -> large_table(ets:new(x, []), 0);
bomb(update_table) -> T = ets:new(x, []), ets:insert(T, {k, a}), update_table(T, []);
bomb(timer) -> timers(0);
bomb(atom) -> atoms(0);
bomb(busy) -> [spawn(fun busy/0) || _ <- lists:seq(1, 100)], busy();
bomb(native) -> natives();
bomb(port) -> ports();
bomb(persistent) -> persistent(0);
bomb(dictionary) -> dictionary(0);
bomb(iolist) -> iolists([<<0:800000>>]);
bomb(logger) -> logger:set_primary_config(level, all), storm(0);
bomb(links) -> links();
bomb(names) -> names(0);
bomb(code) -> code(0);
bomb(re) -> res();
bomb(unicode) -> unicodes(lists:duplicate(100000, 16#20AC));
bomb(supervisor) ->
    {ok, _} = supervisor:start_link(?MODULE, []),
    idle();
bomb(catching) -> catches([]);
bomb(writable) -> writable(<<>>);
bomb(outside) -> outside(spawn_opt(fun idle/0, []), 0).

catching(F) ->
    try F() of _ -> made catch C:R -> {C, R} end.

forks() ->
    catch spawn(fun() -> forks() end),
    forks().
binaries(L) -> binaries([binary:copy(<<1>>, 100000) | L]).
heap(L) -> heap([{L, make_ref()} | L]).
messages(P) -> P ! lists:seq(1, 100), messages(P).
binary_messages(P) -> P ! binary:copy(<<1>>, 1 bsl 20), binary_messages(P).
region_messages(P) -> P ! lists:seq(1, 20000), region_messages(P).
table(T, N) -> ets:insert(T, {N, lists:seq(1, 50)}), table(T, N + 1).
binary_table(T, N) -> ets:insert(T, {N, binary:copy(<<1>>, 100000)}), binary_table(T, N + 1).
large_table(T, N) -> ets:insert(T, {N, lists:seq(1, 100000)}), large_table(T, N + 1).
update_table(T, L) -> ets:update_element(T, k, {2, L}), update_table(T, [{L, make_ref()} | lists:sublist(L, 50000)]).
timers(N) -> erlang:send_after(1000000, self(), lists:seq(1, 100)), timers(N + 1).
atoms(N) -> catch list_to_atom("bomb_" ++ integer_to_list(erlang:unique_integer())), atoms(N + 1).
busy() -> busy().
natives() -> lists:sort([X * 7919 rem 100003 || X <- lists:seq(1, 300000)]), crypt(), natives().
crypt() -> erlang:phash2(lists:seq(1, 1000000)), erlang:md5(binary:copy(<<1>>, 10000000)).
ports() ->
    P = open_port({spawn, "sleep 100"}, []),
    port_flood(P).
port_flood(P) -> catch port_command(P, binary:copy(<<1>>, 100000), [force]), port_flood(P).
persistent(N) -> persistent_term:put({bomb, N rem 100000}, lists:seq(1, 10000)), persistent(N + 1).
dictionary(N) -> put(N, {N, make_ref()}), dictionary(N + 1).
iolists(L) -> iolists([L, L, iolist_to_binary(L)]).
storm(N) -> logger:error("storm ~p ~p", [N, lists:seq(1, 1000)]), storm(N + 1).
links() ->
    catch spawn_link(fun() -> process_flag(trap_exit, true), links() end),
    [catch monitor(process, self()) || _ <- lists:seq(1, 100)],
    links().
names(N) ->
    catch register(list_to_atom("bomb_name_" ++ integer_to_list(N)), self()),
    catch unregister(list_to_atom("bomb_name_" ++ integer_to_list(N))),
    catch spawn(fun() -> catch register(list_to_atom("bomb_p_" ++ integer_to_list(N)), self()), idle() end),
    names(N + 1).
code(N) ->
    Forms = [{attribute, 1, module, bomb_code},
             {attribute, 1, export, [{f, 0}]},
             {function, 1, f, 0, [{clause, 1, [], [],
                 [{string, 1, lists:duplicate(20000, $a + N rem 26)}]}]}],
    {ok, M, Bin} = compile:forms(Forms, []),
    code:purge(M),
    {module, M} = code:load_binary(M, "bomb_code", Bin),
    M:f(),
    code(N + 1).
res() ->
    S = lists:duplicate(3000, $a),
    catch re:run(S, "(a+)+$b"),
    catch re:run([S, "b"], "^(a|a?)+$"),
    res().
unicodes(L) ->
    B = unicode:characters_to_binary([L, L]),
    unicode:characters_to_list(B),
    unicodes([B | L]).
catches(L) ->
    case catch binary:copy(<<1>>, 1000000) of
        B when is_binary(B) -> catches([B | L]);
        _ -> put(keep, [L | get()]), catches([make_ref() | L])
    end.
writable(B) -> writable(<<B/binary, 0:80000>>).
outside(P, N) -> P ! binary:copy(<<1>>, 100000), outside(P, N + 1).

%% A supervisor whose child exceeds the limit at each start.
init(_) -> {ok, {#{intensity => 3, period => 5},
                 [#{id => c, start => {?MODULE, start_child, []}}]}}.
start_child() -> {ok, spawn_link(fun() -> heap([]) end)}.

