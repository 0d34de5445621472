%% Checks the features that module `socket` reports as supported, in all forms of the request,
%% sorted.
-module(socket_abilities).
-export([main/0]).

main() ->
    show(all, socket:supports()),
    Keys = lists:sort([K || {K, _} <- socket:supports()]) ++ [options, send_flags, recv_flags, msg_flags, nope],
    [show(K, socket:supports(K)) || K <- Keys],
    [show({K, Sub}, socket:supports(K, Sub)) || K <- Keys, K =/= options, {Sub, _} <- lists:sort(socket:supports(K))],
    Levels = lists:usort([L || {{L, _}, _} <- socket:supports(options)]) ++ [nope],
    [show({options, L}, socket:supports(options, L)) || L <- Levels],
    case erlang:function_exported(socket, supports, 3) of
        true -> [show({L, O}, socket:supports(options, L, O)) || {{L, O}, _} <- lists:sort(socket:supports(options))];
        false -> ok
    end.

show(What, L) when is_list(L) ->
    io:format("~0p: ~b~n", [What, length(L)]),
    lists:foreach(fun({K, Sub}) when is_list(Sub) -> show({What, K}, Sub);
                     (X) -> io:format("~0p ~0p~n", [What, X])
                  end, lists:sort(L));
show(What, X) -> io:format("~0p ~0p~n", [What, X]).
