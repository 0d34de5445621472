# Sends signals to an emulator. Those of faults end it the first time too, except SIGFPE, which it
# ignores. @seconds 60
ulimit -c 0
for signal in ABRT BUS FPE ILL PIPE PROF SEGV SYS TRAP URG USR2 VTALRM WINCH XCPU XFSZ; do
  rm -f up
  erl -noshell -noinput -eval 'file:write_file("up", ""), timer:sleep(20000), halt(7).' </dev/null >/dev/null 2>&1 &
  n=0
  until [ -e up ] || [ $n -ge 200 ]; do sleep 0.1; n=$((n + 1)); done
  kill -$signal $!
  case $signal in
    FPE | PIPE | URG | WINCH)
      sleep 0.3
      kill -0 $! && echo "$signal: alive"
      kill -KILL $!
      ;;
  esac
  wait $! 2>/dev/null
  echo "$signal: $?"
done
# What a program of a port has from it.
erl -noshell -eval 'io:put_chars(os:cmd("grep SigIgn /proc/self/status | tail -c 5")), halt().'
