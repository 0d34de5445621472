# Checks halt, its exit status, and the output that is still written.
for h in "halt()" "halt(3)" "halt(255)" "init:stop()" "init:stop(4)" "erlang:halt(7, [{flush, false}])" "io:format(\"x~n\"), halt(0)" "io:format(\"no newline\"), init:stop()" "exit(x)" "error(x)" "throw(x)" "halt(bad)"; do
  ERL_CRASH_DUMP=/dev/null erl -noshell -eval "$h." </dev/null
  echo "$h: $?"
done
erl -noshell -eval '[io:format("~s~n", [lists:duplicate(1000, $x)]) || _ <- lists:seq(1, 2000)], halt().' | wc -c
erl -noshell -eval 'spawn(fun() -> halt(9) end), timer:sleep(5000).'; echo "from another process: $?"
# A socket has more queued than its peer, in the same runtime, will ever read.
for how in ok 'unlink(C), port_close(C)'; do
    timeout 30 erl -noshell -eval 'O = [binary, {active, false}, {sndbuf, 8192}, {recbuf, 8192}, {high_watermark, 1000000000}],
        {ok, L} = gen_tcp:listen(0, O), {ok, P} = inet:port(L), {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, O), {ok, _} = gen_tcp:accept(L),
        gen_tcp:send(C, binary:copy(<<"x">>, 6000000)), '"$how"', {queue_size, N} = erlang:port_info(C, queue_size),
        io:format("~p~n", [N > 1000000]), halt(3).'
    echo $?
done
