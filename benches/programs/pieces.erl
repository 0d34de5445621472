%% Pages of a thousand small pieces written to files, programs and sockets: the number in a name is
%% the bytes of a piece. Each row takes until all has come: the other side is a program that ends
%% when it has got as many bytes.
-module(pieces).
-export([names/0, expected/1]).
-export([file_48/0, file_205/0, file_410/0, null_205/0, null_410/0, pipe_205/0, pipe_410/0, socket_205/0, socket_410/0, small_writes/0, small_reads/0]).

names() -> [file_48, file_205, file_410, null_205, null_410, pipe_205, pipe_410, socket_205, socket_410, small_writes, small_reads].

-define(BYTES, 300000000).
%% Pages after which a file is written from its beginning again.
-define(PAGES_OF_FILE, 50).

expected(Name) when Name =:= file_48; Name =:= file_205; Name =:= file_410 -> ?PAGES_OF_FILE;
expected(null_205) -> 0;
expected(null_410) -> 0;
expected(pipe_205) -> bytes(205);
expected(pipe_410) -> bytes(410);
expected(socket_205) -> bytes(205);
expected(socket_410) -> bytes(410);
expected(small_writes) -> 10000000;
expected(small_reads) -> 10000000.

file_48() -> file(48).
file_205() -> file(205).
file_410() -> file(410).
null_205() -> to_null(205).
null_410() -> to_null(410).
pipe_205() -> to_pipe(205).
pipe_410() -> to_pipe(410).
socket_205() -> to_socket(205).
socket_410() -> to_socket(410).

%% A hundred thousand times a hundred bytes, of a file that is in memory.
small_writes() -> in_file(fun(F) -> B = binary:copy(<<"x">>, 100), times(100000, fun() -> ok = file:write(F, B) end), file:position(F, cur) end).
small_reads() -> in_file(fun(F) -> ok = file:write(F, binary:copy(<<"y">>, 10000000)), {ok, 0} = file:position(F, 0), {ok, read_all(F, 0)} end).
read_all(F, N) -> case file:read(F, 100) of {ok, B} -> read_all(F, N + byte_size(B)); eof -> N end.

%% Literals of a template are off the heap, and so are these.
page(Size) -> [binary:copy(<<"x">>, Size) || _ <- lists:seq(1, 1000)].
pages(Size) -> ?BYTES div (Size * 1000).
bytes(Size) -> pages(Size) * Size * 1000.

times(0, _) -> ok;
times(N, F) -> F(), times(N - 1, F).

name() -> filename:join(os:getenv("TMPDIR", "/tmp"), "purlin_pieces_" ++ os:getpid()).

in_file(Fun) ->
    Name = name(),
    {ok, F} = file:open(Name, [raw, read, write, binary]),
    {ok, Bytes} = Fun(F),
    ok = file:close(F),
    ok = file:delete(Name),
    Bytes.

file(Size) ->
    Name = name(),
    {ok, F} = file:open(Name, [raw, write, binary]),
    Page = page(Size),
    times(pages(Size) div ?PAGES_OF_FILE, fun() ->
        {ok, 0} = file:position(F, 0),
        times(?PAGES_OF_FILE, fun() -> ok = file:write(F, Page) end)
    end),
    ok = file:close(F),
    Bytes = filelib:file_size(Name),
    ok = file:delete(Name),
    Bytes div (Size * 1000).

to_null(Size) ->
    {ok, F} = file:open("/dev/null", [raw, write, binary]),
    Page = page(Size),
    times(pages(Size), fun() -> ok = file:write(F, Page) end),
    ok = file:close(F),
    0.

%% A program that reads so many bytes, of the port or of what `From` says, and tells their number
%% then.
reader(Bytes, From) ->
    N = integer_to_list(Bytes),
    Command = ["head -c ", N, From, " > /dev/null && echo ", N],
    open_port({spawn_executable, "/bin/bash"}, [{args, ["-c", lists:append(Command)]}, binary, exit_status]).

told(Port, Got) ->
    receive
        {Port, {data, D}} -> told(Port, <<Got/binary, D/binary>>);
        {Port, {exit_status, 0}} -> binary_to_integer(string:trim(Got))
    end.

to_pipe(Size) ->
    Port = reader(bytes(Size), ""),
    Page = page(Size),
    times(pages(Size), fun() -> true = port_command(Port, Page) end),
    told(Port, <<>>).

to_socket(Size) ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, No} = inet:port(L),
    Port = reader(bytes(Size), " < /dev/tcp/127.0.0.1/" ++ integer_to_list(No)),
    {ok, S} = gen_tcp:accept(L),
    Page = page(Size),
    times(pages(Size), fun() -> ok = gen_tcp:send(S, Page) end),
    Bytes = told(Port, <<>>),
    ok = gen_tcp:close(S),
    ok = gen_tcp:close(L),
    Bytes.
