# Descriptors run out: each way to open one fails with its error, and works again after some are
# closed. The number that a runtime needs for itself does not matter.
cat >d.erl <<'END'
-module(d).
-export([main/0]).
main() ->
    io:format("~p~n", [{begun, "x", [1.5]}]),
    logger:set_primary_config(level, none),
    true = code:is_loaded(gen_udp) =/= false orelse {module, gen_udp} =:= code:ensure_loaded(gen_udp),
    [{module, _} = code:ensure_loaded(M) || M <- [gen_tcp, gen_udp, inet_tcp, inet_udp, inet, prim_inet, ram_file, file, file_io_server, file_server, os, lists, io, io_lib, filelib, socket]],
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, []),
    {ok, A} = gen_tcp:accept(L),
    gen_tcp:close(A), gen_tcp:close(C),
    {ok, U} = gen_udp:open(0), gen_udp:close(U),
    "x" = os:cmd("printf x"),
    {ok, _} = file:list_dir("."),
    {ok, C2} = gen_tcp:connect({127, 0, 0, 1}, Port, []),
    show(warm, [{error, {exit, x}}]),
    Files = fill([]),
    show(file, catch file:open("/dev/null", [read, raw])),
    show(server, catch file:open("/dev/null", [read])),
    show(dir, catch file:list_dir(".")),
    show(read, catch file:read_file("/dev/null")),
    show(write, catch file:write_file("new", "x")),
    show(info, catch element(1, file:read_file_info("/dev/null"))),
    show(listen, catch gen_tcp:listen(0, [])),
    show(connect, catch gen_tcp:connect({127, 0, 0, 1}, Port, [])),
    show(accept, catch gen_tcp:accept(L, 2000)),
    show(udp, catch gen_udp:open(0)),
    show(socket, catch socket:open(inet, stream, tcp)),
    show(port, catch open_port({spawn, "cat"}, [])),
    show(executable, catch open_port({spawn_executable, "/bin/cat"}, [])),
    show(cwd, element(1, file:get_cwd())),
    show(interfaces, catch element(1, inet:getifaddrs())),
    [file:close(F) || F <- Files],
    {ok, S} = gen_tcp:accept(L, 5000),
    show(again, [element(1, file:read_file("/dev/null")), gen_tcp:send(C2, "x"), os:cmd("printf y"), gen_tcp:close(S)]).
fill(L) ->
    case file:open("/dev/null", [read, raw]) of
        {ok, F} -> fill([F | L]);
        {error, E} -> show(full, E), L
    end.
show(What, {'EXIT', {R, _}}) -> show(What, {exit, R});
show(What, X) -> io:format("~p: ~p~n", [What, X]).
END
erlc d.erl
ulimit -n 100
erl -noshell -s d main -s init stop
