%% Checks `hibernate/0` (OTP 28): the process waits with a compacted heap and continues in place.
%% Earlier releases do not have it. @stress @shared @fence
-module(hibernate_in_place).
-export([main/0]).

main() ->
    case erlang:function_exported(erlang, hibernate, 0) of
        true ->
            [io:format("~w: ~w~n", [W, asleep(F, Most)])
             || {W, F, Most} <- [{nothing, fun(F) -> F() end, 40}, {deep, fun(F) -> deep(F, 512) end, 1100},
                                 {data, fun data/1, 2150}, {binaries, fun binaries/1, 400}, {dictionary, fun dictionary/1, 300}]],
            io:format("~w~n", [at_once()]);
        false -> io:format("none~n")
    end.

deep(F, 0) -> F();
deep(F, N) -> R = deep(F, N - 1), {N, _} = {N, R}, R.
data(F) -> L = lists:seq(1, 1024), R = F(), {lists:sum(L), R}.
binaries(F) -> L = [binary:copy(<<I>>, 100) || I <- lists:seq(1, 20)], R = F(), {erlang:phash2(L), R}.
dictionary(F) -> [put(K, {K, [K]}) || K <- lists:seq(1, 10)], R = F(), {lists:sort([V || {K, V} <- get(), is_integer(K)]), R}.

%% What it holds when it sleeps, and what it says when it is woken, twice.
asleep(Body, Most) ->
    Me = self(),
    P = spawn(fun() -> Me ! {self(), Body(fun() ->
        junk(3000),
        [begin erlang:hibernate(), receive {wake, N} -> Me ! {self(), woken, N}, N end end || N <- [1, 2]] end)} end),
    R = [begin sleeps(P, Most), P ! {wake, N}, receive {P, woken, M} -> M end end || N <- [1, 2]],
    {R, receive {P, Said} -> erlang:phash2(Said) end}.

junk(N) -> _ = [{I, I} || I <- lists:seq(1, N)], ok.

%% Its words are no more than that soon.
sleeps(P, Most) -> sleeps(P, Most, 2000).
sleeps(P, _, 0) -> exit({never, process_info(P, total_heap_size)});
sleeps(P, Most, N) ->
    case process_info(P, [status, total_heap_size]) of
        [{status, waiting}, {total_heap_size, W}] when W =< Most -> ok;
        _ -> receive after 10 -> sleeps(P, Most, N - 1) end
    end.

%% There is a message: no wait.
at_once() -> self() ! x, erlang:hibernate(), receive x -> there after 0 -> none end.
