%% Receives wait for one value of an element in a mailbox so long that indexing it takes several
%% searches, while messages come and go.
-module(receives_in_a_very_long_mailbox).
-export([main/0]).

main() ->
    N = 40000,
    [self() ! {reply, I, I} || I <- lists:seq(1, N)],
    Got = [begin
        self() ! {reply, {late, I}, I},
        self() ! {reply, -I, late},
        First = [receive {reply, K, V} -> V end || K <- [N - I, I, N div 2 + I, -I]],
        None = receive {reply, none, _} -> found after 0 -> none end,
        {First, None, receive {reply, {late, I}, L} -> L end}
    end || I <- lists:seq(1, 12)],
    self() ! {other, x},
    Other = receive {other, O} -> O end,
    io:format("~w~n~w~n", [{Got, Other}, rest(0, 0)]).

rest(N, Hash) ->
    receive M -> rest(N + 1, erlang:phash2([Hash | M]))
    after 0 -> {N, Hash}
    end.
