%% Runs rounds of a storm for a given time, and tells what went wrong. Started by `cargo xtask
%% storms`:
%%
%%   erl -noshell -pa DIRECTORY -run storm main storm_timers SEED MILLISECONDS
%%
%% A storm is a module with a function round/0: a program made at random, which ends by itself
%% within a few seconds, and calls storm:fault/2 for whatever is wrong. A round that fails, that
%% doesn't end, or that leaves processes, ports or tables behind is a fault too. The status is 1 if
%% there was one, and the run ends with the round that found it.
-module(storm).
-export([main/1, round/1, run/1, fault/2, check/3, random/1, chance/1, choice/1, shuffle/1, all/2, wait/1, flush/0, milliseconds/0,
         late/1]).

%% A round takes a second or two; who has not come to its end after that long never does.
-define(NO_END, late(60000)).
%% What a round has left behind must be gone by then.
-define(LEFT, late(20000)).

main([Storm, Seed, Milliseconds]) ->
    register(storm_driver, self()),
    process_flag(trap_exit, true),
    %% Reports about processes that were to end, and about messages that gen_tcp_socket does not
    %% know.
    logger:set_primary_config(level, none),
    persistent_term:put(storm_patience, list_to_integer(os:getenv("STORM_PATIENCE", "1"))),
    End = milliseconds() + list_to_integer(Milliseconds),
    Name = list_to_atom(Storm),
    {module, Name} = code:ensure_loaded(Name),
    %% What starts on demand and stays is there before things are counted.
    inet:gethostbyname("127.0.0.1"),
    _ = file:get_cwd(),
    _ = os:timestamp(),
    rounds(Name, list_to_integer(Seed), 1, End).

rounds(Name, Seed, N, End) ->
    Before = there(),
    {Pid, Ref} = spawn_monitor(?MODULE, round, [{Name, Seed, N}]),
    receive
        {'DOWN', Ref, process, Pid, ended} -> ok;
        {'DOWN', Ref, process, Pid, Why} -> fault("the round failed: ~0p", [Why])
    after ?NO_END ->
        fault("no end: ~0p", [[stuck(P) || P <- element(1, there()) -- element(1, Before)]])
    end,
    left(Before, milliseconds() + ?LEFT),
    case found() of
        [] ->
            case milliseconds() < End of
                true ->
                    rounds(Name, Seed, N + 1, End);
                false ->
                    io:format("~s: ~b rounds~n", [Name, N]),
                    halt(0)
            end;
        Found ->
            io:format("~s, round ~b of seed ~b~n", [Name, N, Seed]),
            [io:format("FAULT ~ts~n", [F]) || F <- lists:sublist(Found, 10)],
            halt(1)
    end.

round({Name, Seed, N}) ->
    rand:seed(exsss, {erlang:phash2(Name), Seed, N}),
    Name:round(),
    exit(ended).

found() ->
    receive {fault, F} -> [F | found()]
    after 0 -> []
    end.

%% Something is wrong.
fault(Format, Arguments) ->
    storm_driver ! {fault, io_lib:format(Format, Arguments)},
    ok.

check(true, _, _) -> ok;
check(false, Format, Arguments) -> fault(Format, Arguments).

%% Processes, ports and tables that there are.
there() ->
    {processes(), erlang:ports(), ets:all()}.

left(Before, Until) ->
    {P0, Q0, T0} = Before,
    {P1, Q1, T1} = there(),
    case {P1 -- P0, Q1 -- Q0, T1 -- T0} of
        {[], [], []} ->
            ok;
        Left ->
            case milliseconds() > Until of
                true ->
                    {P, Q, T} = Left,
                    fault("left behind: ~0p", [{[stuck(X) || X <- P], [erlang:port_info(X) || X <- Q], [ets:info(X) || X <- T]}]);
                false ->
                    receive after 5 -> ok end,
                    left(Before, Until)
            end
    end.

stuck(P) ->
    {P, process_info(P, [current_stacktrace, status, initial_call, message_queue_len, messages])}.

milliseconds() ->
    erlang:monotonic_time(millisecond).

%% A time by which everything has happened, in milliseconds. STORM_PATIENCE says by how much
%% longer the other programs of the machine make it.
late(Milliseconds) -> Milliseconds * persistent_term:get(storm_patience, 1).

%% From 0 to N - 1.
random(N) -> rand:uniform(N) - 1.
%% True once in N times.
chance(N) -> rand:uniform(N) =:= 1.
choice(L) -> lists:nth(rand:uniform(length(L)), L).
shuffle(L) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- L])].

%% Runs F on each in a process of its own, with random numbers of its own, and waits for all: what
%% they return, in order.
all(F, L) ->
    Seeds = [{X, rand:uniform(1 bsl 50)} || X <- L],
    Running = [spawn_monitor(fun() -> rand:seed(exsss, S), exit({returned, F(X)}) end) || {X, S} <- Seeds],
    [receive
         {'DOWN', R, process, P, {returned, V}} -> V;
         {'DOWN', R, process, P, Why} -> exit(Why)
     end || {P, R} <- Running].

%% Runs the parts of a round, {Name, HowMany, F} each, at the same time. STORM_PARTS names some.
run(Parts) ->
    Wanted = [list_to_atom(W) || W <- string:lexemes(os:getenv("STORM_PARTS", ""), " ")],
    all(fun(F) -> F() end, lists:append([lists:duplicate(N, F) || {Name, N, F} <- Parts, Wanted =:= [] orelse lists:member(Name, Wanted)])),
    ok.

%% Gives time to others: none, a turn, or some milliseconds.
wait(Most) ->
    case random(4) of
        0 -> ok;
        1 -> erlang:yield();
        2 -> busy(random(2000));
        3 -> receive after random(Most + 1) -> ok end
    end.

busy(0) -> ok;
busy(N) -> busy(N - 1).

%% The messages that are there.
flush() ->
    receive M -> [M | flush()]
    after 0 -> []
    end.
