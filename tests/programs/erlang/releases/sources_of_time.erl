%% Checks what `system_info` reports about the system's clocks: the keys in order, and the constant
%% values.
-module(sources_of_time).
-export([main/0]).

main() ->
    [io:format("~p: ~p~n", [K, [told(E) || E <- erlang:system_info(K)]]) || K <- [os_monotonic_time_source, os_system_time_source]].

told({time, T}) when is_integer(T) -> time;
told(E) -> E.
