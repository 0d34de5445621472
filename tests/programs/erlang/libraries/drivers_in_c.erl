%% Checks drivers in C: the callbacks they get, and the functions they call.
%% @nif drivers @stress @shared @fence
-module(drivers_in_c).
-export([main/0]).

show(What, F) ->
    R = try F() catch C:E -> {C, E} end,
    io:format("~p: ~p~n", [What, R]).

%% All messages so far; a port is told as `port`.
all(P) -> all(P, 500).
all(P, T) -> receive M -> [plain(P, M) | all(P, 200)] after T -> [] end.

%% The next one.
next(P) -> receive M -> plain(P, M) after 5000 -> nothing end.

plain(P, M) when is_tuple(M) -> list_to_tuple([plain(P, E) || E <- tuple_to_list(M)]);
plain(P, P) -> port;
plain(_, E) when is_port(E) -> other;
plain(_, E) when is_pid(E), E =:= self() -> me;
plain(_, E) -> E.

open(Line, Opts) -> open_port({spawn_driver, "drivers " ++ Line}, Opts).

end_of(N) ->
    P = open("", []),
    catch port_control(P, N, []),
    R = [receive {'EXIT', P, W} -> W after 5000 -> alive end, next(P), erlang:port_info(P)],
    R.

main() ->
    process_flag(trap_exit, true),
    Dir = "../ebin",
    show(none, fun() -> element(1, element(2, erl_ddll:try_load(Dir, "no_such_driver", []))) end),
    show(builtin, fun() -> erl_ddll:try_load(Dir, "tcp_inet", []) end),
    show(bad, fun() -> erl_ddll:try_load(Dir, drivers, [{reload, sometime}]) end),
    show(no_natives, fun() -> erlang:load_nif(Dir ++ "/drivers", []) end),
    show(load, fun() -> erl_ddll:try_load(Dir, "drivers", []) end),
    show(load, fun() -> erl_ddll:load(Dir, "drivers") end),
    show(info, fun() -> [erl_ddll:info("drivers", I) || I <- [processes, driver_options, port_count, linked_in_driver, permanent, awaiting_load, awaiting_unload]] =:=
                            [[{self(), 2}], [], 0, false, false, [], []] end),
    show(loaded, fun() -> {ok, L} = erl_ddll:loaded_drivers(), lists:member("drivers", L) end),
    show(unload, fun() -> erl_ddll:try_unload("drivers", []) end),
    show(start, fun() -> [try open(W, []) catch C:E -> {C, E} end || W <- ["general", "badarg", "errno"]] end),
    P = open("binary early", [binary]),
    show(early, fun() -> next(P) end),
    show(info, fun() -> {erlang:port_info(P, name), erlang:port_info(P, links) =:= {links, [self()]}, erlang:port_info(P, queue_size)} end),
    Big = binary:copy(<<"0123456789">>, 30),
    show(echo, fun() -> P ! {self(), {command, ["e", <<"small">>, Big, "list", [binary:part(Big, 3, 100)]]}}, {port, {data, L}} = next(P), {iolist_size(L), erlang:md5(iolist_to_binary(element(2, lists:split(4, L))))} end),
    show(head, fun() -> port_command(P, "2"), next(P) end),
    show(plain, fun() -> port_command(P, "o"), next(P) end),
    show(binaries, fun() -> port_command(P, "b"), all(P) end),
    show(terms, fun() -> port_command(P, "t"), all(P) end),
    show(queue, fun() -> [port_command(P, C) || C <- [["q", "one", Big], ["Q", "two"], "d"]], all(P) end),
    show(queue_size, fun() -> erlang:port_info(P, queue_size) end),
    show(vector, fun() -> port_command(P, ["w", "xyz", "vw"]), next(P) end),
    show(control, fun() -> [try port_control(P, N, <<"some data">>) catch error:E -> E end || N <- [1, 3, 4, 5, 24, 26, 99]] end),
    show(call, fun() -> T = {a, [b, 1.5, <<"c">>], Big, #{d => self()}}, [try erlang:port_call(P, N, T) =:= T orelse erlang:port_call(P, N, T) catch error:E -> E end || N <- [1, 2, 3, 4]] end),
    show(timer, fun() -> port_control(P, 6, []), [next(P), next(P)] end),
    show(timer, fun() -> port_control(P, 7, []), all(P) end),
    show(select, fun() -> port_control(P, 8, []), port_control(P, 9, "through a pipe"), next(P) end),
    show(select, fun() -> port_control(P, 9, "again"), next(P) end),
    show(select, fun() -> port_control(P, 10, []), port_control(P, 9, "later"), all(P) end),
    show(select, fun() -> port_control(P, 11, []), next(P) end),
    show(closed_elsewhere, fun() -> Q = open("", []), [port_control(P, N, []) || N <- [10, 30]], port_control(Q, 31, []), receive after 50 -> ok end,
        port_control(P, 8, []), port_control(P, 9, "anew"), R = next(P), port_close(Q), {R, all(Q)} end),
    show(async, fun() -> port_control(P, 12, []), next(P) end),
    show(thread, fun() -> port_control(P, 13, []), R = all(P), port_control(P, 14, []), {R, erlang:port_info(P, queue_size)} end),
    show(monitor, fun() -> port_control(P, 15, []), receive after 1 -> ok end, M = erlang:port_info(P, monitors) =:= {monitors, [{process, self()}]},
        B = erlang:process_info(self(), monitored_by) =:= {monitored_by, [P]}, port_control(P, 16, []), {M, B, all(P), erlang:port_info(P, monitors)} end),
    show(monitor, fun() -> W = spawn(fun() -> port_control(P, 15, []), receive stop -> ok end end), receive after 50 -> ok end, W ! stop, next(P) end),
    show(busy, fun() -> port_control(P, 22, []), R = port_command(P, "o", [nosuspend]), port_command(P, "o"), {R, next(P), next(P)} end),
    show(other, fun() -> port_control(P, 23, []), {made, Q, F} = receive M = {made, _, _} -> M after 5000 -> nothing end,
        R = {F, erlang:port_info(Q, name), erlang:port_info(Q, connected) =:= {connected, self()}}, port_close(Q), {R, all(P)} end),
    show(force, fun() -> port_command(P, "o", [force]) end),
    show(count, fun() -> erl_ddll:info("drivers", port_count) end),
    show(close, fun() -> port_command(P, "qlast"), all(P), port_close(P), all(P) end),
    show(lists, fun() -> Q = open("", []), port_command(Q, ["e", "ab"]), R = [next(Q)], port_command(Q, "b"),
        R1 = R ++ all(Q) ++ [port_control(Q, N, "xy") || N <- [1, 2]], port_close(Q), {length(R1), erlang:phash2(R1), hd(R1), all(Q)} end),
    show(long_schedule, fun() -> Q = open("", []), erlang:system_monitor(self(), [{long_schedule, 60}]), port_control(Q, 28, []),
        R = [begin port_control(Q, N, []), N =:= 8 andalso port_control(Q, 9, "in"),
            receive {monitor, Q, long_schedule, [{timeout, T}, {port_op, Op}]} when T >= 60 -> Op after 20000 -> nothing end end || N <- [6, 8]],
        erlang:system_monitor(undefined), port_close(Q), all(Q), R end),
    show(lines, fun() -> Q = open("early", [{line, 3}]), R = all(Q), port_close(Q), {R, all(Q)} end),
    show(in_part, fun() -> Q = open("", []), R = [port_control(Q, N, []) || N <- [8, 29]], L = all(Q), port_close(Q), {R, L, all(Q)} end),
    show(last, fun() -> [begin Q = open("last", O), port_command(Q, C), port_close(Q), all(Q) end || O <- [[], [binary]], C <- ["", "qrest"]] end),
    [show({ends, N}, fun() -> end_of(N) end) || N <- [17, 18, 19, 20, 21]],
    show(soft_eof, fun() -> Q = open("", [eof]), port_control(Q, 20, []), R = next(Q), port_close(Q), {R, all(Q)} end),
    %% Many at once, and their ends with what is under way.
    show(many, fun() -> many(20) end),
    show(unload, fun() -> Q = open("", []), Ref = erl_ddll:monitor(driver, {"drivers", unloaded}),
        R = erl_ddll:try_unload("drivers", []), N = all(Q), L = erl_ddll:info("drivers", port_count), port_close(Q),
        {R, N, L, receive {'DOWN', Ref, driver, X, W} -> {X, W} after 5000 -> nothing end, catch erl_ddll:info("drivers", port_count), all(Q)} end),
    show(gone, fun() -> try open("", []) catch error:E -> E end end),
    show(monitors, fun() -> R = erl_ddll:monitor(driver, {drivers, loaded}), receive {'DOWN', R, driver, X, W} -> {X, W} after 5000 -> nothing end end),
    show(reload, fun() -> ok = erl_ddll:load(Dir, "drivers"), Q = open("", []), {ok, S, R} = erl_ddll:try_load(Dir, "drivers", [{monitor, pending_driver}, {reload, pending_driver}]),
        N = all(Q), port_close(Q), {S, N, receive {U, R, driver, X, W} -> {U, X, W} after 5000 -> nothing end, erl_ddll:info("drivers", port_count), all(Q)} end),
    show(owner, fun() -> erl_ddll:try_unload("drivers", [{monitor, pending}]), receive {'DOWN', _, driver, _, W} -> ok after 5000 -> W = nothing end,
        Me = self(), X = spawn(fun() -> ok = erl_ddll:load(Dir, "drivers"), Me ! loaded, receive stop -> ok end end), receive loaded -> ok end,
        R = erl_ddll:monitor(driver, {"drivers", unloaded}), X ! stop, {W, receive {'DOWN', R, driver, Y, V} -> {Y, V} after 5000 -> nothing end} end),
    show(killed, fun() -> {ok, loaded} = erl_ddll:try_load(Dir, "drivers", [{driver_options, [kill_ports]}]), Q = open("", []),
        {ok, pending_driver, R} = erl_ddll:try_unload("drivers", [{monitor, pending}]),
        {receive {'EXIT', Q, W} -> W after 5000 -> alive end, receive {'DOWN', R, driver, Y, V} -> {Y, V} after 5000 -> nothing end, all(Q)} end),
    show(under_way, fun() -> {ok, loaded} = erl_ddll:try_load(Dir, "drivers", []), Q = open("", []), N = port_control(Q, 27, []),
        {ok, pending_driver, R} = erl_ddll:try_unload("drivers", [{monitor, pending}]), port_close(Q),
        D = receive {'DOWN', R, driver, Y, V} -> {Y, V} after 20000 -> nothing end, receive after 600 -> ok end, {N, D, all(Q)} end),
    show(locked, fun() -> {ok, loaded} = erl_ddll:try_load(Dir, "drivers", []), Q = open("", []), port_control(Q, 25, []), port_close(Q), all(Q),
        {erl_ddll:try_unload("drivers", []), erl_ddll:info("drivers", permanent), erl_ddll:info("drivers", processes)} end).

many(N) ->
    Ps = [spawn_link(fun() -> one(I) end) || I <- lists:seq(1, N)],
    [receive {'EXIT', P, W} -> W after 20000 -> alive end || P <- Ps].

one(I) ->
    P = open("", [binary]),
    Data = binary:copy(<<I>>, 100 + I * 50),
    [begin
         port_command(P, ["e", Data, [Data | "x"]]),
         receive {P, {data, L}} when is_list(L) -> true = iolist_size(L) =:= 5 + 2 * byte_size(Data) end,
         port_control(P, 12, []), port_control(P, 6, []), port_command(P, ["q", Data])
     end || _ <- lists:seq(1, 20)],
    case I rem 3 of
        0 -> port_close(P);
        1 -> port_control(P, 8, []), port_control(P, 9, "x"), port_control(P, 17, []), receive after infinity -> ok end;
        2 -> exit(normal)
    end,
    ok.
