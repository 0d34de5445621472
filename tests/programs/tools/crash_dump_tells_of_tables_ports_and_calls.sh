# Checks the parts of a crash dump about tables, ports and processes, also as OTP's viewer reads
# them.
cat >d.erl <<'E'
-module(d).
-export([main/0, spin/1, view/0]).
spin(N) -> spin(N + 1).
main() ->
    [ets:insert(ets:new(Name, [named_table | Options]), {k, v}) || {Name, Options} <-
        [{t_set, [set]}, {t_ordered, [ordered_set, public]}, {t_bag, [bag, private]},
         {t_double, [duplicate_bag, compressed, {read_concurrency, true}]}]],
    register(my_port, open_port({spawn, "cat"}, [])),
    erlang:monitor(port, my_port),
    {ok, _} = gen_udp:open(0, [{inet_backend, inet}]),
    register(my_main, self()),
    register(my_spinner, spawn(?MODULE, spin, [0])),
    timer:sleep(200),
    erlang:halt("over").
view() ->
    {ok, _} = crashdump_viewer:start_link(),
    ok = crashdump_viewer:read_file("erl_crash.dump"),
    timer:sleep(1000),
    {ok, Processes, _} = crashdump_viewer:processes(),
    {ok, Ports, _} = crashdump_viewer:ports(),
    {ok, Tables, _} = crashdump_viewer:ets_tables(all),
    io:format("~p~n", [lists:sort([Name || P <- Processes, Name <- [element(3, P)], is_list(Name), lists:prefix("my_", Name)])]),
    io:format("~p~n", [lists:sort([{element(8, P), element(11, P)} || P <- Ports])]),
    io:format("~p~n", [lists:sort([{element(5, T), element(7, T)} || T <- Tables, lists:prefix("t_", element(5, T))])]),
    halt().
E
erlc +nowarn_deprecated_function d.erl
erl +S 1 -noshell -s d main >/dev/null 2>&1
echo $?
# A line for each of the tables.
awk '
  /^=/ { ets = /^=ets:/; all = ""; ours = 0 }
  ets && /^(Table|Name|Type|Protection|Compressed|Write Concurrency|Read Concurrency): / { all = all $0 "; " }
  ets && /^Name: t_/ { ours = 1 }
  ets && ours && /^Read Concurrency: / { print all }
' erl_crash.dump | sort
grep -c '^Port controls external process: cat$' erl_crash.dump
grep -c '^Port controls forker process: forker$' erl_crash.dump
grep -c '^Port controls linked-in driver: udp_inet$' erl_crash.dump
grep -c '^Registered as: my_port$' erl_crash.dump
grep -c '^Monitors: (<[0-9.]*>,#Ref<[0-9.]*>)$' erl_crash.dump
grep '^Name: my_\|^Current call: d:' erl_crash.dump
erl -noshell -eval 'case code:ensure_loaded(crashdump_viewer) of {module, _} -> d:view(); _ -> io:format("no viewer~n"), halt() end.' 2>&1
