# Checks signals of the operating system: TERM stops the system in order, broken pipes end it
# quietly.
erl -noshell -eval 'io:format("up~n"), timer:sleep(20000).' >out 2>err </dev/null &
p=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do grep -q up out 2>/dev/null && break; sleep 0.2; done
kill -TERM $p; wait $p; echo "status $?"; cat out; sed 1d err
timeout 20 erl -noshell -eval 'F = fun F() -> io:format("y~n"), F() end, F().' </dev/null 2>/dev/null | head -1
