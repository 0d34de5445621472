%% Each call on a file, a program or a socket either succeeds or returns the error of the system, by
%% the name that stock gives it. `--fail-nth` has each of them fail.
-module(errors_right).
-export([main/0]).

-define(DIR, "errors_right").
-define(PATH, ?DIR "/file").
-define(OTHER, ?DIR "/other").

main() ->
    _ = file:delete(?PATH),
    _ = file:delete(?OTHER),
    _ = file:del_dir(?DIR),
    one(file:make_dir(?DIR), [enospc, eacces, eexist]),
    one(file:write_file(?PATH, <<"abc">>), [emfile, eacces, enospc, eio, enoent]),
    open(file:open(?PATH, [raw, read, write, binary])),
    one(file:read_file(?PATH), [emfile, eacces, eio, enoent]),
    one(file:list_dir(?DIR), [emfile, eacces, enoent]),
    one(file:read_file_info(?PATH), [eacces, enoent]),
    one(file:change_mode(?PATH, 8#600), [eperm, enoent]),
    one(file:rename(?PATH, ?OTHER), [enospc, eacces, enoent]),
    one(file:delete(?OTHER), [eacces, enoent]),
    one(file:del_dir(?DIR), [eacces, enoent, eexist]),
    program(),
    sockets().

open({ok, F}) ->
    one(file:read(F, 2), [eio]),
    one(file:pwrite(F, 0, <<"xyz">>), [enospc, eio]),
    one(file:sync(F), [eio]),
    one(file:pread(F, 0, 3), [eio]),
    one(file:truncate(F), [enospc, eio]),
    one(file:close(F), [eio]);
open(E) ->
    one(E, [emfile, eacces, enoent]).

%% A function of ports raises the error.
program() ->
    try open_port({spawn_executable, "/bin/true"}, [exit_status]) of
        P -> receive {P, {exit_status, 0}} -> ok end
    catch
        error:Reason -> one({error, Reason}, [eagain, emfile, enomem])
    end.

sockets() ->
    case gen_tcp:listen(0, [{active, false}, {ip, {127, 0, 0, 1}}]) of
        {ok, L} ->
            {ok, Port} = inet:port(L),
            Me = self(),
            spawn_link(fun() -> Me ! {served, serve(L)} end),
            client(gen_tcp:connect({127, 0, 0, 1}, Port, [{active, false}], 1000)),
            _ = gen_tcp:close(L),
            receive {served, ok} -> ok end;
        E ->
            one(E, [emfile, enobufs])
    end.

serve(L) ->
    case gen_tcp:accept(L, 1000) of
        {ok, S} ->
            one(gen_tcp:send(S, "hello"), [econnreset, closed]),
            gen_tcp:close(S);
        E ->
            one(E, [emfile, econnaborted, timeout, closed])
    end.

client({ok, S}) ->
    one(gen_tcp:recv(S, 5, 1000), [econnreset, etimedout, timeout, closed]),
    gen_tcp:close(S);
client(E) ->
    one(E, [emfile, enobufs, econnrefused, etimedout, timeout]).

one(ok, _) -> ok;
one({ok, _}, _) -> ok;
one(eof, _) -> ok;
one({error, Reason}, Known) -> true = lists:member(Reason, Known), ok.
