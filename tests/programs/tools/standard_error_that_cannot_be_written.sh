# Standard error is on a full disk or a closed pipe. The output is lost, without further effect.
cat >lost.erl <<'E'
-module(lost).
-export([main/0, traced/1]).
main() ->
    logger:set_primary_config(level, none),
    io:format("~p~n", [is_port(catch open_port({spawn, "true"}, [{cd, "/no/such/folder"}, exit_status]))]),
    receive {_, {exit_status, _}} -> io:format("ended~n") after 5000 -> io:format("nothing~n") end,
    io:format("~p~n", [is_port(catch open_port({spawn_executable, "/bin/true"}, [{cd, "/no/such/folder"}, exit_status]))]),
    receive {_, {exit_status, _}} -> io:format("ended~n") after 5000 -> io:format("nothing~n") end,
    erlang:trace(self(), true, [call]),
    erlang:trace_pattern({lost, traced, 1}, [{['$1'], [], [{display, '$1'}]}], [local]),
    io:format("~p~n", [traced(shown)]),
    erlang:trace(self(), false, [call]),
    io:put_chars(standard_error, "words\n"),
    erlang:display_string("words"),
    io:format("up~n"),
    halt(3).
traced(X) -> {traced, X}.
E
erlc lost.erl
erl -noshell -s lost main 2>/dev/full | grep -v '^words\|^shown'
erl -noshell -s lost main 2>&- | grep -v '^words\|^shown'
{ erl -noshell -s lost main 2>&1 >out | true; } 2>/dev/null
grep -v '^words\|^shown' out
# Standard output that nobody reads, or that is full.
erl -noshell -eval 'io:format(standard_error, "~p~n", [catch erlang:match_spec_test([x], [{['"'"'$1'"'"'], [], [{display, '"'"'$1'"'"'}]}], trace)]), halt(4).' 2>err >/dev/full
echo $?; cat err
