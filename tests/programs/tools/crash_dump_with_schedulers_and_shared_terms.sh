# Checks the parts of a crash dump about running processes, persistent terms, funs and counted
# binaries, also as OTP's viewer reads them.
cat >d.erl <<'E'
-module(d).
-export([main/0, spin/1, hold/2, view/0]).
spin(N) -> spin(N + 1).
hold(_, _) -> receive go -> ok end.
main() ->
    Shared = binary:copy(<<"abcdefgh">>, 20),
    <<_:24/binary, Part:96/binary, _/binary>> = Shared,
    Fun = fun(X) -> {X, Shared} end,
    persistent_term:put(my_key, {my_value, [1, 2.5, <<"text">>], #{a => 1 bsl 70}}),
    persistent_term:put({my, key}, Shared),
    [register(Name, spawn(fun() -> put(my_shared, T), hold(T, Fun) end)) ||
        {Name, T} <- [{my_first, Shared}, {my_second, {Part, Shared}}]],
    register(my_spinner, spawn_opt(?MODULE, spin, [0], [{scheduler, 2}])),
    register(my_ender, spawn_opt(fun() -> timer:sleep(300), erlang:halt("over") end, [{scheduler, 1}])),
    receive never -> ok end.
view() ->
    {ok, _} = crashdump_viewer:start_link(),
    ok = crashdump_viewer:read_file("erl_crash.dump"),
    timer:sleep(1000),
    {ok, Terms, _} = crashdump_viewer:persistent_terms(),
    io:format("~p ~p~n", [[V || {my_key, V} <- Terms], length([K || {{my, _} = K, _} <- Terms])]),
    {ok, Processes, _} = crashdump_viewer:processes(),
    [begin
        {ok, Details, _} = crashdump_viewer:proc_details(pid_to_list(element(2, P))),
        io:format("~s ~p~n", [Name, [value(D) || D <- tuple_to_list(Details), is_list(D), {my_shared, _} <- D]])
     end || Name <- ["my_first", "my_second"], P <- Processes, element(3, P) =:= Name],
    {ok, Schedulers, _} = crashdump_viewer:schedulers(),
    io:format("~p~n", [length(Schedulers)]),
    {ok, Funs, _} = crashdump_viewer:funs(),
    io:format("~p~n", [length([F || F <- Funs, element(2, F) =:= "d"])]),
    halt().
value(D) -> [place(V) || {my_shared, V} <- D].
%% A binary of which the dump has the bytes elsewhere: offset and size.
place(['#CDVBin', From, Size, _]) -> {From, Size};
place({A, B}) -> {place(A), place(B)};
place(T) -> T.
E
erlc d.erl
erl +S 2:2 -noshell -s d main >/dev/null 2>&1
echo $?
# The process that ended the emulator, and, where schedulers are not stopped first as on stock, the
# one that never waits.
ran() {
    awk -v pid="$1" '
      /^=/ { inside = /^=scheduler:/; ran = 0 }
      inside && $0 == "Current Process: " pid { ran = 1; print "ran" }
      ran && /^Current Process State: (Running|Scheduled)$/ { print $4 }
      ran && /^Current Process Program counter: 0x[0-9a-f]* \(d:spin\/1 / { print "in d:spin/1" }
      ran && /^0x[0-9a-f]*:SReturn addr 0x[0-9A-F]* \(<terminate process normally>\)$/ { print "called by none" }
    ' erl_crash.dump
}
named() { awk -F: -v name="Name: $1" '/^=proc:/ { pid = $2 } $0 == name { print pid }' erl_crash.dump; }
ran "$(named my_ender)" | head -2
if grep -q '^System version: .*purlin' erl_crash.dump; then
    ran "$(named my_spinner)"
else
    printf 'ran\nScheduled\nin d:spin/1\ncalled by none\n'
fi
grep -c '^=dirty_cpu_scheduler:[0-9]*$' erl_crash.dump
grep -c '^=dirty_io_scheduler:[0-9]*$' erl_crash.dump
grep -c '^=dirty_cpu_run_queue$\|^=dirty_io_run_queue$' erl_crash.dump
grep -A 2 '^=fun$' erl_crash.dump | grep -c '^Module: d$'
# The bytes that several share are there once.
grep -c '^A0:YWJjZGVmZ2hhYmNkZWZnaGFiY2RlZmdo' erl_crash.dump
erl -noshell -eval 'case code:ensure_loaded(crashdump_viewer) of {module, _} -> d:view(); _ -> io:format("no viewer~n"), halt() end.' 2>&1
