%% Runs the requests of OTP's observer and etop through the modules of runtime_tools, and checks the
%% answers and their formats.
-module(observer_and_etop).
-export([main/0, sleeper/0]).

main() ->
    S = spawn_link(?MODULE, sleeper, []),
    register(sleeper, S),
    ets:new(o_table, [named_table, public]),
    ets:insert(o_table, {key, 1}),
    io:format("~p~n", [observer_backend:vsn()]),
    Sys = observer_backend:sys_info(),
    io:format("sys_info ~p~n", [lists:sort([{K, form(V)} || {K, V} <- Sys, K =/= alloc_info, not lists:prefix("logical_", atom_to_list(K))])]),
    ports(),
    io:format("sockets ~p~n", [form(observer_backend:get_socket_list())]),
    Tables = observer_backend:get_table_list(ets, [{unread_hidden, false}, {sys_hidden, false}]),
    [Table] = [T || T <- Tables, lists:member({name, o_table}, T)],
    io:format("table ~p~n", [lists:sort([{K, form(V)} || {K, V} <- Table])]),
    rows(),
    observer_backend:procs_info(self()),
    receive
        {procs_info, Pid, All} -> io:format("procs_info ~p ~p~n", [form(Pid), form([P || P <- All, element(2, P) =:= S])])
    after 60000 -> io:format("no procs_info~n")
    end,
    etop(S),
    stats().

%% A term by its form: names as they are, numbers and the like by what they are.
form(T) when is_atom(T) -> T;
form(T) when is_integer(T) -> integer;
form(T) when is_float(T) -> float;
form(T) when is_pid(T) -> pid;
form(T) when is_port(T) -> port;
form(T) when is_reference(T) -> reference;
form(T) when is_binary(T) -> binary;
form(T) when is_function(T) -> function;
form([]) -> [];
form(T) when is_list(T) ->
    case io_lib:printable_unicode_list(T) of
        true -> string;
        false -> {list, lists:usort([form(E) || E <- T])}
    end;
form(T) when is_tuple(T) -> list_to_tuple([form(E) || E <- tuple_to_list(T)]);
form(T) when is_map(T) -> maps:map(fun(_, V) -> form(V) end, T).

ports() ->
    Ports = observer_backend:get_port_list(),
    [P | _] = [Info || Info <- Ports, proplists:get_value(name, Info) =/= undefined],
    io:format("port ~p~n", [lists:sort([K || {K, _} <- P])]).

rows() ->
    observer_backend:get_table(self(), o_table, ets),
    receive {_, M} when is_list(M) -> io:format("rows ~p~n", [M]) after 60000 -> io:format("no rows~n") end.

etop(S) ->
    Me = self(),
    spawn(fun() -> observer_backend:etop_collect(Me) end),
    receive
        {_, Info} when element(1, Info) =:= etop_info ->
            [Procs] = [L || L = [_ | _] <- tuple_to_list(Info), is_tuple(hd(L)), element(1, hd(L)) =:= etop_proc_info],
            io:format("etop ~p~n", [[form(X) || X <- tuple_to_list(Info), X =/= Procs]]),
            io:format("etop row ~p~n", [[form(P) || P <- Procs, element(2, P) =:= S]])
    after 60000 -> io:format("no etop~n")
    end.

stats() ->
    Me = self(),
    P = spawn(fun() -> observer_backend:fetch_stats(Me, 200) end),
    receive M when element(1, M) =:= stats -> io:format("stats ~p~n", [form(M)]) after 60000 -> io:format("no stats~n") end,
    exit(P, kill).

sleeper() ->
    receive stop -> ok end.
