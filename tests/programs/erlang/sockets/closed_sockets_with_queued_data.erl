%% Closes sockets with much queued output. Checks what is reported about them; their owners get no
%% further messages. @seconds 90
-module(closed_sockets_with_queued_data).
-export([main/0]).
sock() ->
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {recbuf, 4096}]),
    {ok, P} = inet:port(L),
    {ok, C} = gen_tcp:connect("localhost", P, [binary, {active, true}, {sndbuf, 4096},{high_watermark, 100000000}]),
    {ok, S} = gen_tcp:accept(L),
    {C, S}.
drain(S, N) -> case gen_tcp:recv(S, 0, 3000) of {ok, B} -> drain(S, N + byte_size(B)); E -> {N, E} end.
flush(T) -> receive X -> [X | flush(T)] after T -> [] end.
tag({C,S},L) -> [ case X of {A,P} when P==C -> {A,c}; {A,P} when P==S->{A,s}; {A,P,R} when P==C -> {A,c,R}; {'EXIT',P,R} when P==C -> {'EXIT',c,R}; _ -> X end || X <- L].
main() ->
    process_flag(trap_exit, true),
    %% 1 close by owner in helper: gen_tcp:close waits? do in this process with reader elsewhere
    A = {C, S} = sock(),
    ok = gen_tcp:send(C, binary:copy(<<"x">>, 20000000)),
    spawn(fun() -> timer:sleep(300), io:format("info after 300: ~p~n", [catch erlang:port_info(C)]) end),
    Me = self(),
    gen_tcp:controlling_process(S, spawn(fun() -> timer:sleep(1000), X = drain(S, 0), Me ! {drained, X} end)),
    T0 = erlang:monotonic_time(millisecond),
    io:format("close ~p~n", [gen_tcp:close(C)]),
    io:format("close took > 900: ~p~n", [erlang:monotonic_time(millisecond)-T0 > 900]),
    io:format("info after: ~p~n", [erlang:port_info(C)]),
    receive {drained, D} -> io:format("~p~n", [D]) end,
    io:format("msgs ~p~n", [tag(A, flush(300))]),
    %% 2 close by another process
    A2 = {C2, S2} = sock(),
    ok = gen_tcp:send(C2, binary:copy(<<"x">>, 20000000)),
    gen_tcp:controlling_process(S2, spawn(fun() -> timer:sleep(1000), X = drain(S2, 0), Me ! {drained, X} end)),
    {_, M2} = spawn_monitor(fun() -> io:format("close2 ~p~n", [gen_tcp:close(C2)]) end),
    timer:sleep(300),
    io:format("info2: ~p~n", [erlang:port_info(C2)]),
    receive {'DOWN', M2, _, _, _} -> ok end,
    io:format("info2b: ~p~n", [erlang:port_info(C2)]),
    receive {drained, D2} -> io:format("~p~n", [D2]) end,
    io:format("msgs2 ~p~n", [tag(A2, flush(300))]),
    %% 3 port_close
    A3 = {C3, S3} = sock(),
    ok = gen_tcp:send(C3, binary:copy(<<"x">>, 20000000)),
    io:format("pclose ~p~n", [port_close(C3)]),
    io:format("info3: ~p ~p~n", [erlang:port_info(C3), lists:member(C3, erlang:ports())]),
    io:format("msgs3 ~p~n", [tag(A3, flush(300))]),
    io:format("~p~n", [drain(S3,0)]),
    io:format("info3b: ~p~n", [erlang:port_info(C3)]),
    io:format("msgs3 ~p~n", [tag(A3, flush(300))]),
    %% 4 port_close by another
    A4 = {C4, S4} = sock(),
    ok = gen_tcp:send(C4, binary:copy(<<"x">>, 20000000)),
    spawn(fun() -> io:format("pclose4 ~p~n", [port_close(C4)]) end),
    timer:sleep(200),
    io:format("info4: ~p ~p~n", [erlang:port_info(C4), lists:member(C4, erlang:ports())]),
    io:format("msgs4 ~p~n", [tag(A4, flush(300))]),
    io:format("~p~n", [drain(S4,0)]),
    io:format("msgs4 ~p~n", [tag(A4, flush(300))]),
    %% 5 message close
    A5 = {C5, S5} = sock(),
    ok = gen_tcp:send(C5, binary:copy(<<"x">>, 20000000)),
    C5 ! {self(), close},
    timer:sleep(100),
    io:format("info5: ~p ~p~n", [erlang:port_info(C5), lists:member(C5, erlang:ports())]),
    io:format("msgs5 ~p~n", [tag(A5, flush(300))]),
    io:format("~p~n", [drain(S5,0)]),
    io:format("msgs5 ~p~n", [tag(A5, flush(300))]),
    %% 6 the peer resets while closing
    A6 = {C6, S6} = sock(),
    ok = gen_tcp:send(C6, binary:copy(<<"x">>, 20000000)),
    spawn(fun() -> timer:sleep(500), inet:setopts(S6, [{linger,{true,0}}]), gen_tcp:close(S6) end),
    io:format("close6 ~p~n", [gen_tcp:close(C6)]),
    io:format("msgs6 ~p~n", [tag(A6, flush(300))]),
    %% 7: passive owner / linger
    A7 = {C7, S7} = sock(),
    inet:setopts(C7, [{active,false},{linger,{true,1}}]),
    ok = gen_tcp:send(C7, binary:copy(<<"x">>, 20000000)),
    T7 = erlang:monotonic_time(millisecond),
    io:format("close7 ~p~n", [gen_tcp:close(C7)]),
    io:format("close took ~p s~n", [(erlang:monotonic_time(millisecond)-T7) div 1000]),
    io:format("msgs7 ~p~n", [tag(A7, flush(300))]),
    io:format("~p~n", [drain(S7,0)]),
    %% 8: the peer closes after the port has been closed, active
    A8 = {C8, S8} = sock(),
    ok = gen_tcp:send(C8, binary:copy(<<"x">>, 20000000)),
    gen_tcp:send(S8, "data"),
    timer:sleep(50),
    port_close(C8),
    gen_tcp:send(S8, "more"),
    timer:sleep(50),
    gen_tcp:shutdown(S8, write),
    io:format("msgs8 ~p~n", [tag(A8, flush(300))]),
    drain(S8, 0),
    io:format("msgs8 ~p~n", [tag(A8, flush(300))]),
    %% 9 owner is told by gen_tcp:close with a subscriber dying
    A9 = {C9, S9} = sock(),
    ok = gen_tcp:send(C9, binary:copy(<<"x">>, 20000000)),
    K9 = spawn(fun() -> gen_tcp:close(C9) end), timer:sleep(100), exit(K9, kill), timer:sleep(100),
    io:format("info9: ~p~n", [erlang:port_info(C9, connected) == {connected, self()}]),
    io:format("~p~n", [element(1,drain(S9,0))]),
    io:format("msgs9 ~p~n", [tag(A9, flush(300))]),
    %% 10: the peer resets what is only written still
    A10 = {C10, S10} = sock(),
    ok = gen_tcp:send(C10, binary:copy(<<"x">>, 20000000)),
    port_close(C10),
    inet:setopts(S10, [{linger, {true, 0}}]),
    gen_tcp:close(S10),
    timer:sleep(200),
    io:format("msgs10 ~p ~p~n", [tag(A10, flush(300)), erlang:port_info(C10)]).
