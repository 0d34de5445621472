# The runtime ends itself: slogan on standard error, crash dump, exit status.
erl -noshell -eval 'erlang:halt("my slogan").' >out 2>err </dev/null; echo "status $?"
grep -c "my slogan" err; head -1 erl_crash.dump; grep "^Slogan" erl_crash.dump; rm -f erl_crash.dump
ERL_CRASH_DUMP=elsewhere erl -noshell -eval 'erlang:halt("other").' >out 2>err </dev/null; echo "status $?"
ls elsewhere
erl -noshell -eval 'erlang:halt(abort).' >/dev/null 2>&1 </dev/null; echo "status $?"
ls erl_crash.dump 2>&1
erl -boot no_such_boot -noshell </dev/null 2>&1 | head -1
