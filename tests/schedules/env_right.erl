-module(env_right).
-export([main/0]).

%% As env_race, but each has a name of its own.
main() ->
    Me = self(),
    spawn_link(fun() -> Me ! {one, looks()} end),
    spawn_link(fun() -> Me ! {two, sets()} end),
    halt(receive {one, undefined} -> receive {two, ok} -> 0 end; {one, _} -> 1 end).

looks() ->
    case application:get_env(stdlib, env_other) of
        undefined -> undefined;
        {ok, V} -> V
    end.

sets() ->
    ok = application:set_env(stdlib, env_race, on),
    {ok, on} = application:get_env(stdlib, env_race),
    ok = application:unset_env(stdlib, env_race).
