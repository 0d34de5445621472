%% A store keeps numbers in a log, and confirms each. When its machine loses its power, it starts
%% again and reads its log.
%% It syncs the log before it confirms.
%% Run: purlin schedules --nodes 2 --faults power -- run lost_write_right.erl
-module(lost_write_right).
-export([main/1]).
-mode(compile).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    [First | _] = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    case Me of
        First ->
            %% The first node has a file of its own, so a loss of its power ends the program.
            {ok, Socket} = gen_udp:open(0, [binary, {active, true}]),
            Sure = puts(lists:seq(1, 20), Socket, []),
            case ask(all, Socket, 400) of
                {ok, Kept} -> check(lists:sort(Sure) -- binary_to_term(Kept));
                none -> io:put_chars("the store is gone\n")
            end,
            [send(stop, Socket) || _ <- lists:seq(1, 20)];
        _ ->
            {ok, Socket} = gen_udp:open(7000, [binary, {active, true}]),
            {ok, Log} = file:open("log", [read, append, raw, binary]),
            serves(Log, Socket, read(Log))
    end.

check([]) -> io:put_chars("all are there\n");
check(Lost) -> io:format("FAIL: confirmed and lost: ~w~n", [Lost]), halt(1).

puts([], _, Sure) -> Sure;
puts([K | Ks], Socket, Sure) ->
    timer:sleep(50),
    case ask({put, K}, Socket, 1) of
        {ok, _} -> puts(Ks, Socket, [K | Sure]);
        none -> puts(Ks, Socket, Sure)
    end.

ask(_, _, 0) -> none;
ask(What, Socket, Times) ->
    R = erlang:unique_integer(),
    send({R, What}, Socket),
    answer(R, What, Socket, Times).

answer(R, What, Socket, Times) ->
    receive
        {udp, _, _, _, Bytes} ->
            case binary_to_term(Bytes) of
                {R, Answer} -> {ok, Answer};
                _ -> answer(R, What, Socket, Times)
            end
    after 200 -> ask(What, Socket, Times - 1)
    end.

send(What, Socket) -> gen_udp:send(Socket, {127, 0, 0, 1}, 7000, term_to_binary(What)).

%% Numbers of four bytes.
read(Log) ->
    case file:read(Log, 4) of
        {ok, <<K:32>>} -> [K | read(Log)];
        _ -> []
    end.

serves(Log, Socket, Keys) ->
    receive
        {udp, _, Host, Port, Bytes} ->
            Answer = fun(R, X) -> gen_udp:send(Socket, Host, Port, term_to_binary({R, X})) end,
            case binary_to_term(Bytes) of
                stop -> ok;
                {R, {put, K}} ->
                    ok = file:write(Log, <<K:32>>),
                    ok = file:sync(Log),
                    Answer(R, ok),
                    serves(Log, Socket, [K | Keys]);
                {R, all} ->
                    Answer(R, term_to_binary(lists:sort(Keys))),
                    serves(Log, Socket, Keys)
            end
    after 120000 -> ok
    end.
