# halt and its status codes; what is still written out.
for h in "halt()" "halt(3)" "halt(255)" "init:stop()" "init:stop(4)" "erlang:halt(7, [{flush, false}])" "io:format(\"x~n\"), halt(0)" "io:format(\"no newline\"), init:stop()" "exit(x)" "error(x)" "throw(x)" "halt(bad)"; do
  ERL_CRASH_DUMP=/dev/null erl -noshell -eval "$h." </dev/null
  echo "$h: $?"
done
erl -noshell -eval '[io:format("~s~n", [lists:duplicate(1000, $x)]) || _ <- lists:seq(1, 2000)], halt().' | wc -c
erl -noshell -eval 'spawn(fun() -> halt(9) end), timer:sleep(5000).'; echo "from another process: $?"
