%% Checks the process dictionary, `process_info` and process flags. @stress @shared
-module(process_dictionary).
-export([main/0]).

main() ->
    io:format("~p ~p ~p~n", [put(a, 1), put(a, 2), get(a)]),
    [put(I, I * I) || I <- lists:seq(1, 200)],
    io:format("~p~n", [lists:sum([get(I) || I <- lists:seq(1, 200)])]),
    
    [erase(I) || I <- lists:seq(1, 199)],
    io:format("~p~n", [lists:sort([P || {K, _} = P <- get(), K =:= a orelse is_integer(K)])]),
    io:format("~p~n", [erase(missing)]),
    P = spawn(fun() -> put(x, y), receive stop -> ok end end),
    timer:sleep(20),
    io:format("~p~n", [process_info(P, [status, current_function, initial_call, dictionary, message_queue_len, links, monitors, trap_exit, priority, registered_name, error_handler, catchlevel, error_handler])]),
    io:format("~p~n", [[K || {K, _} <- process_info(P)]]),
    P ! other, P ! other2,
    io:format("~p~n", [process_info(P, messages)]),
    io:format("~p~n", [process_info(P, binary)]),
    P ! stop, timer:sleep(20),
    io:format("~p~n", [process_info(P)]),
    io:format("~p~n", [[process_flag(trap_exit, true), process_flag(trap_exit, false), process_flag(priority, high), process_flag(priority, normal)]]),
    io:format("~p~n", [catch process_flag(nonsense, 1)]),
    io:format("~p~n", [catch process_info(self(), nonsense)]),
    {heap_size, H} = process_info(self(), heap_size),
    io:format("~p~n", [is_integer(H)]),
    Big = spawn_opt(fun() -> grow([]) end, [{max_heap_size, #{size => 100000, kill => true, error_logger => false}}]),
    R = monitor(process, Big),
    receive {'DOWN', R, process, Big, W} -> io:format("~p~n", [W]) end,
    io:format("~p~n", [catch hibernate()]).

hibernate() ->
    Me = self(),
    P = spawn(fun() -> erlang:hibernate(erlang, apply, [fun() -> receive X -> Me ! {woken, X} end end, []]) end),
    timer:sleep(20),
    io:format("~p~n", [process_info(P, current_function)]),
    P ! hello,
    receive {woken, X} -> X end.

grow(L) -> grow([lists:seq(1, 100) | L]).
