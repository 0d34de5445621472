# Opens ports on descriptors that cannot be read, standard input and others. They can still be
# written. The shell prints its prompt at any time, so only requested output is compared.
for m in -noshell ''; do
  erl $m -eval 'io:format("hello~n"), timer:sleep(200), halt().' 0>/dev/null | grep -o hello
  erl $m -eval 'io:format("hello~n"), timer:sleep(200), halt().' </tmp | grep -o hello
  erl $m -eval 'io:format("hello~n"), timer:sleep(200), halt().' 0>only_written | grep -o hello
done
erl -noshell -eval 'io:format("hello~n"), halt().' 0<&-
cat >fds.erl <<'END'
5 []: port []
out 5
info true
5 [in]: port []
info false
5 [eof]: port []
out 5
info true
6 []: port []
out 6
info true
6 [in]: port []
info false
6 [eof]: port []
out 6
info true
7 []: port []
out 7
info true
7 [in]: port []
info false
7 [eof]: port []
out 7
info true
8 []: port []
out 8
info true
8 [in]: port []
info false
8 [eof]: port []
out 8
info true
9 []: port []
out 9
info true
9 [in]: port []
info false
9 [eof]: port []
out 9
info true
END
erlc fds.erl
erl -noinput -s fds main 5>/dev/null 6</tmp 9>only_written
erl -noinput -eval 'P = open_port({fd, 77, 1}, [in]), timer:sleep(200), io:format("~p~n", [erlang:port_info(P, name)]), halt().'
