%% Checks saved calls: `process_flag(save_calls, N)` and `process_info(_, last_calls)`.
-module(saved_calls).
-export([main/0, a/1, b/0, loop/1, work/1]).

main() ->
    show(process_flag(save_calls, 0)),
    show(process_info(self(), last_calls)),
    show(process_flag(save_calls, 100)),
    ?MODULE:a(1),
    local(3),
    (fun ?MODULE:b/0)(),
    apply(?MODULE, b, []),
    M = ?MODULE,
    M:a(2),
    self() ! x,
    receive x -> ok end,
    receive y -> ok after 0 -> ok end,
    {last_calls, L} = process_info(self(), last_calls),
    show([C || C <- L, mine(C)]),
    show(lists:member({erlang, process_info, 2}, L)),
    %% Only as many as were asked for, the last ones.
    show(process_flag(save_calls, 3)),
    ?MODULE:loop(50),
    {last_calls, L3} = process_info(self(), last_calls),
    show(length(L3)),
    show(L3),
    %% Time slices go on as ever.
    {_, R0} = process_info(self(), reductions),
    show(?MODULE:work(20000)),
    {_, R1} = process_info(self(), reductions),
    show(R1 - R0 > 20000 andalso R1 - R0 < 200000),
    %% Others.
    Me = self(),
    P = spawn(fun() -> Me ! begun, receive stop -> ok end end),
    receive begun -> ok end,
    show(process_flag(P, save_calls, 5)),
    show(process_info(P, last_calls)),
    show(process_flag(P, save_calls, 7)),
    P ! stop,
    show(process_flag(save_calls, 0)),
    show(process_info(self(), last_calls)),
    show(catch process_flag(save_calls, 10001)),
    %% A sensitive process saves nothing.
    process_flag(save_calls, 10),
    process_flag(sensitive, true),
    [2, 4, 6] = lists:map(fun(E) -> 2 * E end, [1, 2, 3]),
    S = process_info(self(), last_calls),
    process_flag(sensitive, false),
    process_flag(save_calls, 0),
    show(S),
    %% Calls that the emulator makes itself, and one that is an instruction.
    Dead = spawn(fun() -> ok end),
    [show(saved(F)) || F <- [fun() -> catch no_such_module:f(1) end, fun() -> catch ?MODULE:no_such_function() end, fun() -> apply(no_such_module, f, []) end,
        fun() -> erlang:yield() end, fun() -> apply(erlang, list_to_atom("yield"), []) end, fun() -> demonitor(monitor(process, self()), [flush]) end,
        fun() -> demonitor(make_ref(), [flush]) end, fun() -> R = monitor(process, Dead), receive {'DOWN', R, _, _, _} -> demonitor(R, [flush, info]) end end]].

%% Without what the error handler calls.
saved(F) ->
    catch F(),
    process_flag(save_calls, 30),
    catch F(),
    {last_calls, L} = process_info(self(), last_calls),
    process_flag(save_calls, 0),
    lists:takewhile(fun(C) -> C =/= {erlang, whereis, 1} andalso C =/= {erlang, process_info, 2} end, L).

a(X) -> b(), X + 1.
b() -> ok.
local(0) -> ok;
local(N) -> b(), local(N - 1).
loop(0) -> ok;
loop(N) -> ?MODULE:loop(N - 1).
work(0) -> done;
work(N) -> b(), work(N - 1).

mine({?MODULE, _, _}) -> true;
mine({_, _, _}) -> false;
mine(_) -> true.

show({'EXIT', {R, _}}) -> io:format("~p~n", [{exit, R}]);
show(T) -> io:format("~p~n", [T]).
