%% Checks identifiers of this node that belong to nothing: those with more bits since OTP 26, and a
%% port of an earlier node of the same name. Also checks how the time offset is finalized, and the
%% errors of a halt with a time limit for output. @stress @shared @fence @seconds 120
-module(identifiers_without_owner).
-export([main/0, warp/1, writes/1]).

main() ->
    [io:format("~p: ~p~n", [T, text(T)]) || T <- texts()],
    [io:format("~p: ~0p~n", [N, external(N)]) || N <- numbers()],
    ports(),
    [io:format("halt ~p: ~0p~n", [O, refused(fun() -> halt(0, O) end)]) || O <- options()],
    io:format("~p~n", [refused(fun() -> erlang:system_flag(time_offset, nonsense) end)]),
    [io:format("~s: ~p~n", [M, child(M)]) || M <- ["no_time_warp", "single_time_warp", "multi_time_warp"]],
    flushed(),
    ok.

refused(F) ->
    try F() catch C:R:S ->
        {M, N, _, I} = hd(S),
        {C, R, M, N, proplists:get_value(error_info, I, none)}
    end.

%% Pids and ports by their text.
texts() ->
    ["<0.32767.8191>", "<0.32768.0>", "<0.1.8192>", "<0.268435455.4294967295>", "<0.268435456.0>", "<0.1.4294967296>"].
text(T) ->
    case refused(fun() -> list_to_pid(T) end) of
        P when is_pid(P) -> {pid_to_list(P), dead(P), P =:= list_to_pid(T), P =:= binary_to_term(term_to_binary(P)), P > self()};
        E -> E
    end.

dead(P) ->
    R = monitor(process, P),
    Down = receive {'DOWN', R, process, Q, Why} -> {Q =:= P, Why} end,
    {node(P) =:= node(), is_process_alive(P), process_info(P), process_info(P, status), P ! hello, exit(P, kill), unlink(P), Down,
     refused(fun() -> process_flag(trap_exit, true), link(P), receive {'EXIT', X, E} -> {X =:= P, E} end end),
     lists:member(P, processes())}.

%% A pid of this node in the external format, and a port.
numbers() -> [1 bsl 15, (1 bsl 28) - 1, 1 bsl 28, (1 bsl 60) - 1, 1 bsl 60].
external(N) ->
    Node = atom_to_binary(node()), C = erlang:system_info(creation), S = byte_size(Node),
    Shown = fun(B, Text) -> case refused(fun() -> binary_to_term(B) end) of
        T when is_pid(T); is_port(T) -> {Text(T), node(T) =:= node(), term_to_binary(T) =:= term_to_binary(binary_to_term(term_to_binary(T))), T =:= binary_to_term(B)};
        E -> E
    end end,
    {Shown(<<131, 88, 119, S, Node/binary, N:32, 7:32, C:32>>, fun erlang:pid_to_list/1),
     Shown(<<131, 120, 119, S, Node/binary, N:64, C:32>>, fun erlang:port_to_list/1)}.

%% A port that a node of this name had before.
ports() ->
    Node = atom_to_binary(node()), S = byte_size(Node),
    Port = binary_to_term(<<131, 120, 119, S, Node/binary, 4711:64, (erlang:system_info(creation) + 1):32>>),
    R = monitor(port, Port),
    io:format("~p~n", [receive {'DOWN', R, port, P, Why} -> {P =:= Port, Why} after 1000 -> none end]),
    T = monitor(port, Port, [{tag, gone}, {alias, explicit_unalias}]),
    io:format("~p~n", [receive {gone, T, port, Q, Reason} -> {Q =:= Port, Reason} after 1000 -> none end]),
    T ! by_alias,
    io:format("~p ~p ~p~n", [receive by_alias -> got after 1000 -> none end, unalias(T), erlang:demonitor(R)]),
    io:format("~p~n", [refused(fun() -> monitor(process, Port) end)]),
    Pid = binary_to_term(<<131, 88, 119, S, Node/binary, 4711:32, 0:32, (erlang:system_info(creation) + 1):32>>),
    M = monitor(process, Pid),
    io:format("~p~n", [{receive {'DOWN', M, process, Pid, Why2} -> Why2 after 1000 -> none end, link(Pid), receive {'EXIT', Pid, Why3} -> Why3 after 1000 -> none end, unlink(Pid)}]).

options() ->
    [[{flush, maybe_so}], [{flush_timeout, -1}], [{flush_timeout, soon}], [{flush_timeout, 1.0}], [{flush, true} | x],
     [{flush_timeout, 1, 2}], x].

%% What is queued when an emulator halts is written, if the other side takes it in time.
flushed() ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {recbuf, 8192}]),
    {ok, P} = inet:port(L),
    Run = fun(How, Read) ->
        Port = start([], ["writes", integer_to_list(P), How]),
        {ok, S} = gen_tcp:accept(L),
        N = case Read of
            true -> timer:sleep(500), sum(S, 0);
            false -> unread
        end,
        R = all(Port, []),
        gen_tcp:close(S),
        {How, N, R}
    end,
    Limits = [{"200", false} || erlang:system_info(otp_release) >= "27"],
    [io:format("~p~n", [Run(How, Read)]) || {How, Read} <- [{"flush", true}, {"none", false} | Limits]].

sum(S, N) -> case gen_tcp:recv(S, 0) of {ok, B} -> sum(S, N + byte_size(B)); {error, closed} -> N end.

writes([P, How]) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, list_to_integer(P), [binary, {active, false}, {high_watermark, 64 bsl 20}, {sndbuf, 65536}]),
    ok = gen_tcp:send(S, binary:copy(<<"0123456789abcdef">>, 1 bsl 19)),
    case How of
        "flush" -> halt(3, [{flush, true}]);
        "none" -> halt(4, [{flush, false}]);
        Ms -> halt(5, [{flush_timeout, list_to_integer(Ms)}])
    end.

%% The offset of the clock in another emulator.
child(Mode) -> all(start(["+C", Mode], ["warp", "x"]), []).

start(Flags, Run) ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Prog = case os:find_executable("erl") of false -> Erl; P -> P end,
    open_port({spawn_executable, Prog}, [{args, Flags ++ ["-noinput", "-pa", filename:dirname(code:which(?MODULE)), "-run", atom_to_list(?MODULE) | Run]},
        exit_status, stderr_to_stdout]).

all(Port, Acc) ->
    receive
        {Port, {data, D}} -> all(Port, [Acc, D]);
        {Port, {exit_status, S}} -> {S, string:lexemes(lists:flatten(Acc), "\n")}
    end.

warp(_) ->
    State = fun() -> erlang:system_info(time_offset) end,
    A = State(),
    Offset = erlang:time_offset(),
    Plain = monitor(time_offset, clock_service),
    Tagged = monitor(time_offset, clock_service, [{tag, moved}]),
    Ended = monitor(time_offset, clock_service),
    demonitor(Ended),
    {monitors, Shown} = process_info(self(), monitors),
    Gone = monitor(process, nobody_has_this_name),
    B = erlang:system_flag(time_offset, finalize),
    C = State(),
    D = erlang:system_flag(time_offset, finalize),
    Told = [receive {Tag, R, time_offset, clock_service, O} -> {Tag, is_integer(O), O =:= erlang:time_offset()} after 300 -> none end || R <- [Plain, Tagged]],
    io:format("~p ~p ~p ~p ~p~n~p~n", [A, B, C, D, Shown, Told]),
    self() ! {'CHANGE', Plain, time_offset, clock_service, 1},
    self() ! {'CHANGE', Plain, time_offset, clock_service, 2},
    Near = abs(erlang:convert_time_unit(erlang:time_offset() - Offset, native, millisecond)) < 1000,
    Same = abs(erlang:system_time(millisecond) - os:system_time(millisecond)) < 500,
    io:format("~p ~p ~p ~p~n", [Near, Same, demonitor(Plain, [info, flush]), demonitor(Tagged, [info])]),
    io:format("~p~n", [receive {'DOWN', Gone, process, _, Why} -> Why after 100 -> none end]),
    io:format("~p~n", [receive X -> X after 100 -> nothing end]),
    halt(0).
