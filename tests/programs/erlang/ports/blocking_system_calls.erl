%% Natives block in system calls. Meanwhile their process can be killed, linked to, inspected and
%% sent to, and the result still arrives.
-module(blocking_system_calls).
-export([main/0]).

main() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    Pipe = filename:join(Dir, "pipe"),
    "" = os:cmd("mkfifo " ++ Pipe),
    %% Killed while it opens, reads a whole file, and reads; what still waits for a pipe then is let
    %% go.
    killed(Dir, open, {prim_file, open_nif, 2}, fun(F) -> file:open(F, [read, raw, binary]) end),
    killed(Dir, read_file, {gen, do_call, 4}, fun(F) -> file:read_file(F) end),
    killed(Dir, read, {prim_file, read_nif, 2}, fun(F) ->
        {ok, D} = file:open(F, [read, write, raw, binary]),
        file:read(D, 10)
    end),
    %% A server behind a file stops as its owner does.
    killed(Dir, server, {io, execute_request, 3}, fun(F) ->
        {ok, D} = file:open(F, [read, write, binary]),
        file:read(D, 10)
    end),
    {ok, Both} = file:open(Pipe, [read, write, raw, binary]),
    %% Answers while it waits, and gets what it waits for.
    Me = self(),
    P = spawn(fun() ->
        {ok, F} = file:open(Pipe, [read, raw, binary]),
        Me ! ready,
        Got = file:read(F, 5),
        receive hello -> ok after 0 -> io:format("nothing came~n") end,
        Me ! {got, Got, file:read(F, 0), file:close(F)}
    end),
    receive ready -> ok end,
    comes_to(P, {prim_file, read_nif, 2}),
    P ! hello,
    {message_queue_len, 1} = process_info(P, message_queue_len),
    {dictionary, []} = process_info(P, dictionary),
    true = link(P),
    {links, [Me]} = process_info(P, links),
    true = unlink(P),
    true = is_process_alive(P),
    ok = file:write(Both, <<"he">>),
    {message_queue_len, 1} = process_info(P, message_queue_len),
    ok = file:write(Both, [<<"l">>, "l", [[], $o]]),
    receive {got, R, Z, C} -> io:format("~p ~p ~p~n", [R, Z, C]) end,
    %% A writer that waits for room.
    Block = binary:copy(<<"0123456789abcdef">>, 8192),
    Q = spawn(fun() ->
        {ok, F} = file:open(Pipe, [write, raw, binary]),
        Me ! {written, file:write(F, [Block, Block])}
    end),
    {ok, Half} = file:read(Both, byte_size(Block)),
    true = is_process_alive(Q),
    {ok, Rest} = file:read(Both, byte_size(Block)),
    receive {written, X} -> io:format("~p ~p~n", [X, {Half, Rest} =:= {Block, Block}]) end,
    ok = file:close(Both),
    %% Both ends wait for each other.
    spawn(fun() ->
        {ok, F} = file:open(Pipe, [write, raw]),
        ok = file:write(F, "all of it"),
        ok = file:close(F)
    end),
    io:format("~p~n", [file:read_file(Pipe)]),
    io:format("~p~n", [file:open(filename:join(Dir, "no/pipe"), [read, raw])]),
    ok = file:del_dir_r(Dir).

killed(Dir, What, Where, F) ->
    Pipe = filename:join(Dir, atom_to_list(What)),
    "" = os:cmd("mkfifo " ++ Pipe),
    {P, R} = spawn_monitor(fun() -> F(Pipe) end),
    comes_to(P, Where),
    {links, _} = process_info(P, links),
    [io:format("~p~n", [process_info(P, Item)]) || Item <- [status, current_function, current_location]],
    exit(P, kill),
    receive {'DOWN', R, process, P, Why} -> io:format("~p: ~p~n", [What, Why]) end,
    false = is_process_alive(P),
    undefined = process_info(P, status),
    %% Whoever still waits for the pipe, or is about to, is let go; then the file server has time
    %% for others.
    Helper = spawn_link(fun() -> lets_go(Pipe) end),
    {ok, _} = file:read_file_info(Dir),
    Helper ! {stop, self()},
    receive {stopped, Helper} -> ok end.

lets_go(Pipe) ->
    {ok, D} = file:open(Pipe, [read, write, raw]),
    ok = file:write(D, "0123456789"),
    ok = file:close(D),
    receive {stop, From} -> From ! {stopped, self()} after 10 -> lets_go(Pipe) end.

comes_to(P, Where) ->
    case process_info(P, current_function) of
        {current_function, Where} -> receive after 20 -> ok end;
        _ -> receive after 5 -> comes_to(P, Where) end
    end.
