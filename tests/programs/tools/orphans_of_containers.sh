# As the first process of a container the emulator reaps orphans. The program of a port is left to
# the port. Without containers there is nothing to compare.
cat >orphans.erl <<'END'
-module(orphans).
-export([main/0]).
main() ->
    io:format("~s~n", [os:getpid()]),
    [os:cmd("(sleep 0.2; exit 3) > /dev/null 2>&1 &") || _ <- lists:seq(1, 5)],
    [spawn(fun() -> os:cmd("setsid sh -c 'sleep 0.1 & sleep 0.2 & exit' >/dev/null 2>&1 &") end) || _ <- lists:seq(1, 20)],
    P = open_port({spawn, "sh -c 'sleep 0.3; exit 7'"}, [exit_status]),
    timer:sleep(3500),
    io:format("~p~n", [receive {P, X} -> X after 0 -> nothing end]),
    io:format("zombies: ~s~n", [os:cmd("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ' Z '")]),
    halt(4).
END
erlc orphans.erl
unshare -pf --mount-proc true 2>/dev/null || exit 0
unshare -pf --mount-proc erl -noshell -s orphans main
echo $?
# It stops when it is asked to.
unshare -pf --mount-proc erl -noshell -eval 'os:cmd("(sleep 0.3; kill -TERM 1) >/dev/null 2>&1 &"), timer:sleep(5000), halt(9).' 2>/dev/null
echo $?
