%% Checks signals of the operating system: handled ones, ignored ones, and ones without a handler
%% process.
-module(operating_system_signals).
-export([main/0]).

main() ->
    true = unregister(erl_signal_server),
    [io:format("~w ~w~n", [S, [told(S, Do) || Do <- [handle, ignore, handle]]]) || S <- [sigterm, sigusr2, sighup]],
    [begin os:set_signal(S, handle), kill(S), kill(S) end || S <- [sigterm, sighup]],
    %% Some of these may come when somebody is there again.
    true = register(erl_signal_server, self()),
    kill(sigusr2),
    io:format("goes on ~w~n", [receive {notify, sigusr2} -> there after 20000 -> never end]).

%% What comes of two of them.
told(S, Do) ->
    true = register(erl_signal_server, self()),
    ok = os:set_signal(S, Do),
    [begin kill(S), case Do of handle -> receive {notify, S} -> ok after 20000 -> never end; ignore -> ok end end || _ <- [1, 2]],
    true = unregister(erl_signal_server),
    receive M -> M after 50 -> Do end.

kill(S) ->
    "sig" ++ Name = atom_to_list(S),
    os:cmd("kill -s " ++ string:uppercase(Name) ++ " " ++ os:getpid()).
