-module(env_race).
-export([main/0]).

%% A value stands in an application's environment for a moment, while another takes it for unset:
%% only the application controller, which is nobody's process, comes between the two.
main() ->
    Me = self(),
    spawn_link(fun() -> Me ! {one, looks()} end),
    spawn_link(fun() -> Me ! {two, sets()} end),
    halt(receive {one, undefined} -> receive {two, ok} -> 0 end; {one, _} -> 1 end).

looks() ->
    case application:get_env(stdlib, env_race) of
        undefined -> undefined;
        {ok, V} -> V
    end.

sets() ->
    ok = application:set_env(stdlib, env_race, on),
    {ok, on} = application:get_env(stdlib, env_race),
    ok = application:unset_env(stdlib, env_race).
