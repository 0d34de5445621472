%% Figures of schedulers and of memory that a time alone doesn't show. `erl -noshell -pa DIR -run
%% figures main NAME` prints lines "NAME UNIT NUMBER"; scripts/schedule.sh runs them on both
%% runtimes in turn.
-module(figures).
-export([main/1, names/0]).

names() ->
    [latency, saturated, compaction, compaction_10k, after_exit, sleepers, sleepers_million, fresh_reference, long_scan, ten_million, spawn_10k, spawn_120k, matrix, speed_up |
     [N || {N, _, _, _} <- holders()] ++ [N || {N, _} <- natives()]].

main([Name]) ->
    lists:foreach(fun({What, Unit, N}) -> io:format("~s ~s ~.3f~n", [What, Unit, float(N)]) end, run(list_to_atom(Name))),
    halt(0).

%% A process woken each millisecond beside 1,000 that compute: how late it runs, on one scheduler.
run(latency) ->
    erlang:system_flag(schedulers_online, 1),
    Busy = [spawn(fun() -> busy(0) end) || _ <- lists:seq(1, 1000)],
    timer:sleep(200),
    Late = lists:sort(late(500, [])),
    [exit(P, kill) || P <- Busy],
    [{latency_median, "ms", lists:nth(250, Late) / 1000}, {latency_p99, "ms", lists:nth(495, Late) / 1000}];

%% Each of 64 clients has a new process work for it, which takes about a slice, some, or more of
%% them, and asks again at once, on one scheduler: how many others got an answer while one waited
%% for its own. If all waited equally it would be 64. Other work of the machine doesn't change it.
run(saturated) ->
    erlang:system_flag(schedulers_online, 1),
    lists:append([begin
         {Self, Answers} = {self(), counters:new(1, [atomics])},
         Clients = [spawn_link(fun() -> client(Self, Answers, From, To, 100, []) end) || _ <- lists:seq(1, 64)],
         All = lists:sort(lists:append([receive {took, C, L} -> L end || C <- Clients])),
         N = length(All),
         [{lists:concat([saturated_, Name, '_median']), "answers", lists:nth(N div 2, All)},
          {lists:concat([saturated_, Name, '_p99']), "answers", lists:nth(N * 99 div 100, All)}]
     end || {Name, From, To} <- [{slice, 3000, 5000}, {few, 8000, 16000}, {some, 40000, 70000}]]);

%% Processes that have grown to 10 MiB of garbage one after another, and wait: what is left of it
%% after two seconds. The environment's COMPACTION says how many; ten thousand are more than most
%% machines have memory for on stock.
run(compaction) ->
    N = list_to_integer(os:getenv("COMPACTION", "200")),
    Before = resident(),
    Self = self(),
    Ps = [begin
              P = spawn(fun() -> grow(Self) end),
              receive {P, grown} -> P end
          end || _ <- lists:seq(1, N)],
    Grown = resident(),
    timer:sleep(2500),
    After = resident(),
    [P ! stop || P <- Ps],
    [{compaction_grown, "MiB", (Grown - Before) / 1024}, {compaction_left, "MiB", (After - Before) / 1024}];

%% Ten thousand such processes, which have made 100 GB of garbage: no more are started while they
%% take more than 2 GiB, and none after that has lasted for ten seconds. How many could be started,
%% how long that took, the peak, and what is left two seconds later.
run(compaction_10k) ->
    Before = resident(),
    Self = self(),
    T0 = erlang:monotonic_time(millisecond),
    Ps = grow_many(list_to_integer(os:getenv("COMPACTION_10K", "10000")), Before + 2048 * 1024, Self, []),
    Took = erlang:monotonic_time(millisecond) - T0,
    timer:sleep(2500),
    After = resident(),
    [P ! stop || P <- Ps],
    [{compaction_10k_started, "count", length(Ps)}, {compaction_10k_took, "s", Took / 1000},
     {compaction_10k_peak, "MiB", (status("VmHWM") - Before) / 1024}, {compaction_10k_left, "MiB", (After - Before) / 1024}];

%% Resident memory after 200,000 processes have come and gone, against the start.
run(after_exit) ->
    Before = resident(),
    Self = self(),
    {Peak, _} = {begin
         Ps = [spawn(fun() -> receive stop -> Self ! done end end) || _ <- lists:seq(1, 200000)],
         R = resident(),
         [P ! stop || P <- Ps],
         [receive done -> ok end || _ <- Ps],
         R
     end, erlang:garbage_collect()},
    erlang:garbage_collect(),
    timer:sleep(3000),
    [{after_exit_peak, "MiB", (Peak - Before) / 1024}, {after_exit_left, "MiB", (resident() - Before) / 1024}];

run(sleepers) -> sleepers(sleepers, 100000);
%% Stock has no room for so many unless it is started with +P.
run(sleepers_million) -> sleepers(sleepers_million, 1000000);

%% Ten million messages that nobody wants: a call answered with a fresh reference, a collection, and
%% a scan.
run(ten_million) ->
    N = 10000000,
    Echo = spawn(fun echo/0),
    fill(N),
    {T, ok} = timer:tc(fun() -> calls(Echo, 20000) end),
    {C, _} = timer:tc(fun() -> erlang:garbage_collect() end),
    {S, ok} = timer:tc(fun() -> receive none -> ok after 0 -> ok end end),
    [{ten_million_call, "us", T / 20000}, {ten_million_collection, "ms", C / 1000}, {ten_million_scan, "ns", S * 1000 / N}];

%% Calls answered with a fresh reference while a million messages that nobody wants wait.
run(fresh_reference) ->
    Echo = spawn(fun echo/0),
    fill(1000000),
    {T, ok} = timer:tc(fun() -> calls(Echo, 20000) end),
    [{fresh_reference, "us", T / 20000}];

%% A receive that looks at every one of a million messages.
run(long_scan) ->
    fill(1000000),
    receive none -> ok after 0 -> ok end,
    {T, ok} = timer:tc(fun() -> receive none -> ok after 0 -> ok end end),
    [{long_scan_per_message, "ns", T / 1000}];

run(spawn_10k) -> spawns(spawn_10k, 10000);
run(spawn_120k) -> spawns(spawn_120k, 120000);

%% 61 pieces of integer work by workers x jobs, with a reporter and a reader of standard input
%% beside them: how long each cell takes, the highest of the cells' peaks of resident memory, and
%% how many times the lowest that is.
run(matrix) ->
    {Times, Peaks} = lists:unzip([begin
        set_online(W),
        %% The kernel starts its high-water mark anew.
        ok = file:write_file("/proc/self/clear_refs", "5"),
        {T, ok} = timer:tc(fun() -> matrix(J, Yield) end),
        Name = io_lib:format("matrix_~bx~b~s", [W, J, if Yield -> "_yield"; true -> "" end]),
        {{lists:flatten(Name), "ms", T / 1000}, status("VmHWM")}
    end || W <- [20, 4, 1], J <- [20, 4, 1], Yield <- [false, true]]),
    {Least, Most} = {lists:min(Peaks), lists:max(Peaks)},
    Times ++ [{matrix_peak, "MiB", Most / 1024}, {matrix_peak_ratio, "x", Most / Least}];

%% 16 independent pieces on two schedulers against one.
run(speed_up) ->
    Time = fun(S) ->
        erlang:system_flag(schedulers_online, S),
        {T, ok} = timer:tc(fun() -> pieces(16) end),
        T
    end,
    Time(2),
    {One, Two} = {Time(1), Time(2)},
    [{speed_up, "x", One / Two}];

%% What else there is: a process that holds much, or a native that takes long.
run(Name) ->
    case lists:keyfind(Name, 1, holders()) of
        {_, Kind, Size, Churn} -> holder(Name, Kind, Size, Churn);
        false -> native(Name)
    end.

%% Processes that hold a map, a list, binaries or tuples of 10 MB, 100 MB and 1 GB, calm or beside
%% one that makes garbage. The largest are taken if HOLD_MOST says so: it is the size in MB of the
%% largest.
holders() ->
    Most = list_to_integer(os:getenv("HOLD_MOST", "100")),
    [{list_to_atom(lists:concat([hold_, Kind, '_', Size, if Churn -> "_churn"; true -> "" end])), Kind, Size, Churn}
     || Kind <- [map, list, binaries, tuples], Size <- [10, 100, 1000], Size =< Most, Churn <- [false, true]].

%% A request each millisecond, each with a small change of what is held: the longest wait for an
%% answer in so many seconds (HOLD_SECONDS), and the 99th percentile.
holder(Name, Kind, Size, Churn) ->
    Self = self(),
    Holder = spawn_opt(fun() -> H = held(Kind, Size * 1000000), Self ! ready, serve(Kind, H) end, []),
    receive ready -> ok end,
    Churner = [spawn(fun() -> churn() end) || Churn],
    timer:sleep(500),
    Requests = 1000 * list_to_integer(os:getenv("HOLD_SECONDS", "5")),
    Waits = lists:sort(requests(Holder, Requests, [])),
    [exit(P, kill) || P <- [Holder | Churner]],
    Figure = fun(What) -> lists:concat([Name, '_', What]) end,
    [{Figure(longest), "ms", lists:last(Waits) / 1000}, {Figure(p99), "ms", lists:nth(Requests * 99 div 100, Waits) / 1000}].

requests(_, 0, L) -> L;
requests(P, N, L) ->
    receive after 1 -> ok end,
    T0 = erlang:monotonic_time(microsecond),
    P ! {self(), N},
    receive {P, _} -> requests(P, N - 1, [erlang:monotonic_time(microsecond) - T0 | L]) end.

held(map, Bytes) -> maps:from_list([{I, {I}} || I <- lists:seq(1, Bytes div 50)]);
held(list, Bytes) -> [{I} || I <- lists:seq(1, Bytes div 32)];
held(binaries, Bytes) -> [binary:copy(<<I:32>>, 50) || I <- lists:seq(1, Bytes div 300)];
held(tuples, Bytes) -> [{I, name, [I], {I, none}} || I <- lists:seq(1, Bytes div 96)].

serve(Kind, H) -> receive {From, I} -> {Answer, New} = change(Kind, I, H), From ! {self(), Answer}, serve(Kind, New) end.
change(map, I, M) -> K = 1 + I * 7919 rem map_size(M), {maps:get(K, M), M#{K := {I}}};
change(binaries, I, [B | T]) -> {byte_size(B), [binary:copy(<<I:32>>, 50) | T]};
change(_, I, [H | T]) -> {H, [{I} | T]}.

churn() -> [_ | _] = lists:seq(1, 100000), churn().

%% The longest that a ticking process on the only scheduler is held up by one call of a native on
%% ten million elements.
native(Name) ->
    Make = proplists:get_value(Name, natives()),
    erlang:system_flag(schedulers_online, 1),
    Call = Make(),
    Self = self(),
    Ticker = spawn(fun() -> ticks(Self, 0, erlang:monotonic_time(microsecond)) end),
    timer:sleep(100),
    Ticker ! reset,
    {T, _} = timer:tc(Call),
    Ticker ! {stop, Self},
    Worst = receive {worst, W} -> W end,
    [{Name, "ms", T / 1000}, {atom_to_list(Name) ++ "_pause", "ms", Worst / 1000}].

natives() ->
    Seq = fun() -> lists:seq(1, 10000000) end,
    [{n_length, fun() -> L = Seq(), fun() -> length(L) end end},
     {n_reverse, fun() -> L = Seq(), fun() -> hd(lists:reverse(L)) end end},
     {n_append, fun() -> L = Seq(), fun() -> hd(L ++ [x]) end end},
     {n_member, fun() -> L = Seq(), fun() -> lists:member(x, L) end end},
     {n_keyfind, fun() -> L = [{N} || N <- lists:seq(1, 5000000)], fun() -> lists:keyfind(x, 1, L) end end},
     {n_list_to_binary, fun() -> L = lists:duplicate(10000000, $a), fun() -> byte_size(list_to_binary(L)) end end},
     {n_iolist, fun() -> L = lists:duplicate(2000000, <<"ab">>), fun() -> iolist_size(L) + byte_size(iolist_to_binary(L)) end end},
     {n_term_to_binary, fun() -> L = Seq(), fun() -> byte_size(term_to_binary(L)) end end},
     {n_binary_to_list, fun() -> B = binary:copy(<<"a">>, 10000000), fun() -> length(binary_to_list(B)) end end},
     {n_list_to_tuple, fun() -> L = Seq(), fun() -> tuple_size(list_to_tuple(L)) end end},
     {n_regular_expression, fun() -> B = binary:copy(<<"abcdefghij">>, 2000000),
         fun() -> re:run(B, <<"(a|b|c)*x">>, [{match_limit, 200000000}]) end end},
     {n_ets_select, fun() -> T = ets:new(t, []), [ets:insert(T, {N, N}) || N <- lists:seq(1, 1000000)],
         fun() -> length(ets:select(T, [{{'$1', '$2'}, [{'>', '$2', 999990}], ['$1']}])) end end}].

%% So many processes in a receive with a timeout: resident memory of each, what process_info says of
%% it, the ratio of both, and what is left five seconds after all have ended. What the runtime takes
%% once for all comes with the first thousand.
sleepers(Name, N) ->
    stop(start(1000)),
    erlang:garbage_collect(),
    timer:sleep(2500),
    {Before, Said} = {resident(), memory()},
    Ps = start(N),
    timer:sleep(2500),
    {Alive, AllSaid} = {resident(), memory()},
    stop(Ps),
    erlang:garbage_collect(),
    timer:sleep(5000),
    {Each, SaidEach} = {(Alive - Before) * 1024 / N, (AllSaid - Said) / N},
    Figure = fun(What) -> lists:concat([Name, What]) end,
    [{Figure("_resident"), "bytes", Each}, {Figure("_process_info"), "bytes", SaidEach},
     {Figure("_agreement"), "x", SaidEach / Each}, {Figure("_left"), "MiB", (resident() - Before) / 1024}].
start(N) ->
    Self = self(),
    [spawn(fun() -> receive stop -> Self ! done after 600000 -> ok end end) || _ <- lists:seq(1, N)].
stop(Ps) ->
    [P ! stop || P <- Ps],
    [receive done -> ok end || _ <- Ps],
    ok.

busy(N) -> busy(N + 1).

late(0, A) -> A;
late(N, A) ->
    T0 = erlang:monotonic_time(microsecond),
    receive after 1 -> ok end,
    late(N - 1, [max(0, erlang:monotonic_time(microsecond) - T0 - 1000) | A]).

client(To, _, _, _, 0, L) -> To ! {took, self(), L};
client(To, Answers, Least, Most, N, L) ->
    Work = Least + rand:uniform(Most - Least),
    {Self, Before} = {self(), counters:get(Answers, 1)},
    P = spawn_link(fun() -> called(Work), Self ! {self(), done} end),
    receive {P, done} -> ok end,
    Meanwhile = counters:get(Answers, 1) - Before,
    counters:add(Answers, 1, 1),
    client(To, Answers, Least, Most, N - 1, [Meanwhile | L]).
called(0) -> ok;
called(N) -> called(N - 1).

ticks(To, Worst, Last) ->
    receive
        reset -> ticks(To, 0, erlang:monotonic_time(microsecond));
        {stop, P} -> P ! {worst, max(Worst, erlang:monotonic_time(microsecond) - Last)}
    after 1 ->
        Now = erlang:monotonic_time(microsecond),
        ticks(To, max(Worst, Now - Last - 1000), Now)
    end.

grow_many(0, _, _, Ps) -> Ps;
grow_many(N, Most, Self, Ps) ->
    case room(Most, 200) of
        false -> Ps;
        true ->
            P = spawn(fun() -> grow(Self) end),
            receive {P, grown} -> grow_many(N - 1, Most, Self, [P | Ps]) end
    end.
room(_, 0) -> false;
room(Most, Tries) ->
    case resident() < Most of
        true -> true;
        false -> timer:sleep(50), room(Most, Tries - 1)
    end.

grow(To) ->
    garbage(),
    To ! {self(), grown},
    receive stop -> ok end.
garbage() -> length(lists:seq(1, 600000)).

echo() -> receive {P, R} -> P ! R, echo() end.
calls(_, 0) -> ok;
calls(P, N) ->
    R = make_ref(),
    P ! {self(), R},
    receive R -> calls(P, N - 1) end.

fill(0) -> ok;
fill(N) -> self() ! {unwanted, N}, fill(N - 1).

spawns(Name, Waiting) ->
    fill(Waiting),
    {T, ok} = timer:tc(fun() -> spawn_exit(50000) end),
    [{Name, "per_s", 50000 * 1.0e6 / T}].
spawn_exit(0) -> ok;
spawn_exit(N) ->
    Self = self(),
    spawn(fun() -> Self ! {unwanted, N} end),
    spawn_exit(N - 1).

%% Stock takes no more than it was started with.
set_online(N) ->
    try erlang:system_flag(schedulers_online, N)
    catch error:badarg -> erlang:system_flag(schedulers_online, erlang:system_info(schedulers))
    end.

matrix(Jobs, Yield) ->
    Self = self(),
    Reader = spawn(fun() -> io:get_line(""), receive stop -> ok end end),
    Progress = spawn(fun() -> progress(0) end),
    Work = [I || I <- lists:seq(1, 61)],
    Queue = spawn(fun() -> queue(Work) end),
    Ws = [spawn_monitor(fun() -> worker(Queue, Progress, Yield) end) || _ <- lists:seq(1, Jobs)],
    [receive {'DOWN', R, process, P, normal} -> ok end || {P, R} <- Ws],
    Progress ! {count, Self},
    receive {count, 610} -> ok end,
    exit(Reader, kill),
    exit(Queue, kill),
    ok.
queue(Work) ->
    receive {P, next} ->
        case Work of
            [W | Rest] -> P ! {work, W}, queue(Rest);
            [] -> P ! done, queue([])
        end
    end.
worker(Queue, Progress, Yield) ->
    Queue ! {self(), next},
    receive
        done -> ok;
        {work, _} ->
            [begin
                 piece(20000, 1),
                 Progress ! step,
                 Yield andalso erlang:yield()
             end || _ <- lists:seq(1, 10)],
            worker(Queue, Progress, Yield)
    end.
progress(N) -> receive step -> progress(N + 1); {count, P} -> P ! {count, N} end.

piece(0, A) -> A;
piece(N, A) -> piece(N - 1, (A * 1103515245 + 12345 + (A bsr 7)) band 16#3fffffff).

pieces(N) ->
    Rs = [element(2, spawn_monitor(fun() -> piece(2000000, I) end)) || I <- lists:seq(1, N)],
    [receive {'DOWN', R, process, _, _} -> ok end || R <- Rs],
    ok.

%% What process_info says of all processes.
memory() ->
    lists:sum([case process_info(P, memory) of {_, M} -> M; undefined -> 0 end || P <- processes()]).

resident() -> status("VmRSS").
status(Key) ->
    {ok, B} = file:read_file("/proc/self/status"),
    {match, [N]} = re:run(B, Key ++ ":\\s*([0-9]+) kB", [{capture, all_but_first, list}]),
    list_to_integer(N).
