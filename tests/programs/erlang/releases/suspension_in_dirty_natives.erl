%% A process that is suspended in a native on a dirty thread stops when the native returns, and
%% reports so (OTP 29; earlier stock releases contradict themselves). @stress @fence
-module(suspension_in_dirty_natives).
-export([main/0]).

main() ->
    case erlang:system_info(otp_release) >= "29" of
        true -> [io:format("~w ~w~n", [K, told(K)]) || K <- [dirty_io, dirty_cpu]];
        false -> io:format("not at once~n")
    end.

told(K) ->
    Me = self(),
    P = spawn(fun() -> receive go -> Me ! {self(), going} end, erts_debug:K(wait, 700), Me ! {self(), over}, receive stop -> ok end end),
    P ! go,
    receive {P, going} -> ok end,
    true = erlang:suspend_process(P),
    S1 = status(P),
    true = erlang:resume_process(P),
    T = make_ref(),
    erlang:suspend_process(P, [{asynchronous, T}]),
    W = receive {T, What} -> What after 60000 -> nothing end,
    S2 = status(P),
    true = erlang:resume_process(P),
    R = {S1, W, S2, receive {P, over} -> over after 60000 -> stuck end},
    exit(P, kill),
    R.

status(P) -> element(2, process_info(P, status)).
