%% Makes one system call of the kind that is named in KIND, prints the result of the function that
%% makes it, and halts with status 1 if that is an error. The files and folders are there before.
%% Of the calls that may be made to fail, the output uses none.
-module(error_names).
-export([main/0]).

main() ->
    Result = try call(os:getenv("KIND")) of
        ok -> ok;
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason};
        Other -> Other
    catch
        Class:Reason -> {Class, Reason}
    end,
    erlang:display(Result),
    halt(case Result of ok -> 0; _ -> 1 end).

call("open") -> opened([raw, read], fun(_) -> ok end);
call("open_io_server") ->
    case file:open("file", [read]) of
        {ok, F} -> file:close(F);
        E -> E
    end;
call("read_file") -> file:read_file("file");
call("write_file") -> file:write_file("file", <<"hello">>);
call("read") -> opened([raw, read], fun(F) -> file:read(F, 3) end);
call("pread") -> opened([raw, read], fun(F) -> file:pread(F, 1, 3) end);
call("read_line") -> opened([raw, read, read_ahead], fun file:read_line/1);
call("write") -> opened([raw, write], fun(F) -> file:write(F, <<"abc">>) end);
call("pwrite") -> opened([raw, write], fun(F) -> file:pwrite(F, 2, <<"abc">>) end);
call("delayed_write") ->
    opened([raw, write, {delayed_write, 100, 10000}], fun(F) ->
        ok = file:write(F, <<"abc">>),
        file:sync(F)
    end);
call("truncate") -> opened([raw, read, write], fun file:truncate/1);
call("sync") -> opened([raw, write], fun file:sync/1);
call("datasync") -> opened([raw, write], fun file:datasync/1);
call("close") ->
    {ok, F} = file:open("file", [raw, read]),
    file:close(F);
call("rename") -> file:rename("file", "renamed");
call("make_link") -> file:make_link("file", "linked");
call("make_symlink") -> file:make_symlink("file", "symlinked");
call("delete") -> file:delete("file");
call("del_dir") -> file:del_dir("dir");
call("make_dir") -> file:make_dir("made");
call("list_dir") -> file:list_dir("dir");
call("read_file_info") -> file:read_file_info("file");
call("read_link_info") -> file:read_link_info("file");
call("read_link") -> file:read_link("link");
call("change_mode") -> file:change_mode("file", 8#600);
call("change_owner") -> file:change_owner("file", 0, 0);
call("change_time") -> file:change_time("file", {{2020, 1, 1}, {0, 0, 0}});
call("listen") -> gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]);
call("udp_open") -> gen_udp:open(0, [{ip, {127, 0, 0, 1}}]);
call("socket_open") -> socket:open(inet, stream, tcp);
call("connect") ->
    {_, Port} = listening(),
    gen_tcp:connect({127, 0, 0, 1}, Port, [], 2000);
call("socket_connect") ->
    {_, Port} = listening(),
    {ok, S} = socket:open(inet, stream, tcp),
    socket:connect(S, #{family => inet, addr => {127, 0, 0, 1}, port => Port});
call("accept") ->
    {L, Port} = listening(),
    {ok, _} = gen_tcp:connect({127, 0, 0, 1}, Port, [], 2000),
    gen_tcp:accept(L, 2000);
call("send") ->
    {C, _} = pair(),
    gen_tcp:send(C, <<"abc">>);
call("recv") ->
    {_, S} = sent(),
    gen_tcp:recv(S, 0, 2000);
call("recv_actively") ->
    {_, S} = sent(),
    ok = inet:setopts(S, [{active, true}]),
    receive
        {tcp, S, _} -> ok;
        {tcp_error, S, Reason} -> {error, Reason};
        {tcp_closed, S} -> {error, closed}
    after 2000 -> {error, nothing}
    end;
call("udp_recv") ->
    {ok, U} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, Port} = inet:port(U),
    ok = gen_udp:send(U, {127, 0, 0, 1}, Port, <<"abc">>),
    gen_udp:recv(U, 0, 2000);
call("udp_send") ->
    {ok, U} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, Port} = inet:port(U),
    gen_udp:send(U, {127, 0, 0, 1}, Port, <<"abc">>).

opened(Modes, Do) ->
    case file:open("file", Modes) of
        {ok, F} -> Do(F);
        E -> E
    end.

listening() ->
    {ok, L} = gen_tcp:listen(0, [{active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    {L, Port}.

pair() ->
    {L, Port} = listening(),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, [{active, false}], 2000),
    {ok, S} = gen_tcp:accept(L, 2000),
    {C, S}.

sent() ->
    {C, S} = pair(),
    ok = gen_tcp:send(C, <<"abc">>),
    {C, S}.
