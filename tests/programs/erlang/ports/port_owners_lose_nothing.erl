%% Two processes hand a port back and forth while it reads from a program or a file. Each line
%% arrives once, in order.
-module(port_owners_lose_nothing).
-export([main/0]).

-define(COUNT, 3000).

main() ->
    Lines = [[integer_to_list(N), $\n] || N <- lists:seq(1, ?COUNT)],
    ok = file:write_file("numbers", Lines),
    Program = "i=1; while [ $i -le " ++ integer_to_list(?COUNT) ++ " ]; do echo $i; i=$((i+1)); done",
    [io:format("~p ~p: ~p~n", [What, How, run(Name, Options)])
     || {What, Name, Args} <- [{program, {spawn_executable, "/bin/sh"}, [{args, ["-c", Program]}]},
                               {command, {spawn, "cat numbers"}, []},
                               {both_ways, {spawn, "cat"}, []}],
        {How, Options} <- [{stream, Args ++ [stream]}, {line, Args ++ [{line, 20}]}],
        What =/= both_ways orelse How =:= stream],
    halt(0).

run(Name, Options) ->
    Me = self(),
    Other = spawn_link(fun() -> owners(Me, Me) end),
    Port = open_port(Name, [binary, eof | Options]),
    Writer = case Name of
                 {spawn, "cat"} ->
                     spawn_link(fun() -> [port_command(Port, [integer_to_list(N), $\n]) || N <- lists:seq(1, ?COUNT)] end);
                 _ -> none
             end,
    owner(Port, Other, Me, {<<>>, 1}),
    R = receive {result, X} -> X after 30000 -> stuck end,
    unlink(Other),
    exit(Other, kill),
    is_pid(Writer) andalso unlink(Writer),
    catch port_close(Port),
    receive {Port, _} -> ok after 0 -> ok end,
    R.

owners(Other, Who) ->
    receive {owner, Port, State} -> owner(Port, Other, Who, State), owners(Other, Who) end.

%% Takes what has come, and gives the port away: what had come until then goes to the new owner
%% first.
owner(_, _, Who, {wrong, _} = Wrong) -> Who ! {result, Wrong};
owner(_, _, Who, {_, N}) when N > ?COUNT -> Who ! {result, ok};
owner(Port, Other, Who, State) ->
    First = receive {Port, {data, D}} -> took(D, State) after 1 -> State end,
    true = port_connect(Port, Other),
    unlink(Port),
    Other ! {owner, Port, messages(Port, First)},
    case self() of
        Who ->
            receive
                {owner, _, Next} -> owner(Port, Other, Who, Next);
                {result, _} = R -> self() ! R
            after 20000 -> self() ! {result, stuck}
            end;
        _ -> ok
    end.

messages(Port, State) ->
    receive {Port, {data, D}} -> messages(Port, took(D, State)) after 0 -> State end.

took(_, {wrong, _} = Wrong) -> Wrong;
took({eol, D}, {<<>>, N}) -> number(D, N);
took({_, D}, {Held, N}) -> {wrong, {N, Held, D}};
took(D, {Held, N}) -> numbers(binary:split(<<Held/binary, D/binary>>, <<"\n">>, [global]), N).
numbers([Held], N) -> {Held, N};
numbers([Line | Rest], N) ->
    case number(Line, N) of
        {<<>>, Next} -> numbers(Rest, Next);
        Wrong -> Wrong
    end.
number(Line, N) ->
    case integer_to_binary(N) of
        Line -> {<<>>, N + 1};
        _ -> {wrong, {N, Line}}
    end.
