%% A program is observed while it works: its processes, their stacks, messages and dictionaries, the
%% regions they hold, samples of its time, and the calls of a function. It sends the requests
%% itself, to the observer's socket. The observation must not change the program's behaviour. Stock
%% has no such socket and prints the same. @stress @shared @fence
-module(observed_program).
-export([main/0, worker/3, step/3, deep/2]).

main() ->
    process_flag(trap_exit, true),
    Me = self(),
    Large = [{N, integer_to_binary(N), lists:seq(N, N + 5)} || N <- lists:seq(1, 60)],
    Workers = [spawn_link(?MODULE, worker, [Me, N, Large]) || N <- lists:seq(1, 6)],
    [register(list_to_atom("worker" ++ integer_to_list(N)), W) || {N, W} <- lists:zip(lists:seq(1, 6), Workers)],
    Asked = rounds(socket(), Workers, 2),
    [W ! stop || W <- Workers],
    Sums = [receive {sum, W, Sum} -> Sum end || W <- Workers],
    [receive {'EXIT', W, normal} -> ok end || W <- Workers],
    io:format("~p~n~p~n", [[sum(S, Large) || S <- Sums], Asked]).

%% Each worker has built the same for each step: what it has counted fits, or its terms were
%% damaged.
sum({Steps, Bytes}, Large) -> Bytes =:= Steps * length(Large) * 3.

worker(Parent, N, Large) ->
    put(kept, {N, <<0:800>>, Large}),
    put({list, N}, [a, "text", 1.5, 1 bsl 100, self()]),
    self() ! {message, make_ref(), lists:duplicate(20, <<"bytes">>)},
    work(Parent, 0, 0, Large).

work(Parent, Steps, Bytes, Large) ->
    receive
        stop -> Parent ! {sum, self(), {Steps, Bytes}}
    after 0 ->
        More = step(Steps, #{steps => Steps, 1 => Large}, Large),
        work(Parent, Steps + 1, Bytes + More, Large)
    end.

step(Steps, Map, Large) ->
    Copy = [{K, B, [K | L]} || {K, B, L} <- Large],
    put(last, {Steps, Copy}),
    #{steps := Steps} = Map,
    deep(Copy, fun(T) -> tuple_size(T) end).

deep([T | Rest], F) -> F(T) + deep(Rest, F);
deep([], _) -> 0.

%% The socket of this emulator: none on stock.
socket() ->
    Folders = [filename:join(D, "purlin") || D <- [os:getenv("XDG_RUNTIME_DIR")], D =/= false]
        ++ filelib:wildcard("/run/user/*/purlin") ++ filelib:wildcard("/tmp/purlin-*"),
    Paths = [filename:join(D, os:getpid()) || D <- Folders],
    case [P || P <- Paths, element(1, file:read_link_info(P)) =:= ok] of
        [P | _] -> P;
        [] -> none
    end.

rounds(none, _, _) ->
    case string:find(erlang:system_info(system_version), "purlin") of
        nomatch -> timer:sleep(100), ok;
        _ -> no_socket
    end;
rounds(_, _, 0) ->
    ok;
rounds(Path, Workers, N) ->
    Pids = [escaped(pid_to_list(W)) || W <- Workers],
    Requests = ["overview", "processes sort=recent", "processes sort=name order=asc filter=worker", "regions", "tables", "ports",
                "flame kind=time", "flame kind=allocation", "flame kind=copies",
                "trace-begin function=observed_program%3Astep%2F3 calls=3 seconds=5", "trace"]
        ++ ["process pid=" ++ P || P <- Pids] ++ ["trace", "trace-end"],
    case [{R, A} || R <- Requests, A <- [ask(Path, "observe " ++ R, 20)], A =/= ok] of
        [] -> rounds(Path, Workers, N - 1);
        Wrong -> Wrong
    end.

escaped(Pid) -> lists:flatmap(fun($<) -> "%3C"; ($>) -> "%3E"; (C) -> [C] end, Pid).

%% On a busy machine the emulator may give up who asks too slowly, and a process may be silent for
%% too long.
ask(Path, Request, Times) ->
    {ok, S} = gen_tcp:connect({local, Path}, 0, [local, binary, {active, false}]),
    Sent = gen_tcp:send(S, [Request, $\n]),
    Answer = read(S, []),
    gen_tcp:close(S),
    Whole = Answer =/= <<>> andalso binary:last(Answer) =:= $\n,
    Told = binary:match(Answer, [<<"\"took_ms\": ">>, <<"does not answer">>]) =/= nomatch,
    if
        Whole, Told -> ok;
        Whole; Times =:= 0 -> {Sent, Answer};
        true -> ask(Path, Request, Times - 1)
    end.

read(S, Parts) ->
    case gen_tcp:recv(S, 0) of
        {ok, Part} -> read(S, [Part | Parts]);
        {error, _} -> iolist_to_binary(lists:reverse(Parts))
    end.
