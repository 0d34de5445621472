# What a crash dump says of ports: their state by the options that they were opened with.
cat >ports.erl <<'END'
-module(ports).
-export([main/0]).
main() ->
    [open_port({spawn, "cat"}, O) || O <- [[], [binary], [eof], [binary, eof, exit_status],
        [{line, 10}], [{packet, 4}, binary], [{parallelism, true}], [out]]],
    open_port({spawn_executable, "/bin/cat"}, [binary, {line, 3}]),
    open_port({fd, 0, 2}, [binary, out]),
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, N} = inet:port(L),
    {ok, _} = gen_tcp:connect({127, 0, 0, 1}, N, []),
    {ok, _} = gen_tcp:accept(L),
    {ok, _} = gen_udp:open(0),
    {ok, _} = file:open(<<"abc">>, [ram]),
    P = open_port({spawn, "sleep 60"}, []),
    spawn(fun() -> [port_command(P, lists:duplicate(100000, $a)) || _ <- [1, 2, 3]] end),
    full(P),
    timer:sleep(1000),
    erlang:halt("ports").
full(P) ->
    case erlang:port_info(P, queue_size) of
        {queue_size, N} when N > 0 -> ok;
        _ -> timer:sleep(50), full(P)
    end.
END
erlc ports.erl
erl -noshell -run ports main >out 2>&1 </dev/null; echo "status $?"
# CHK_UNSET_BUSY_Q depends on what happened just before.
awk '/^=/ { port = /^=port:/ }
  port && /^State:|^Task Flags:|^Port |^Suspended:/ { sub(/<[0-9.]*>/, "<P>"); print }' erl_crash.dump |
  grep -v -e '^Task Flags: CHK_UNSET_BUSY_Q$' -e forker
rm -f erl_crash.dump
