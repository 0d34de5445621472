%% Checks applications: starting, environment, specification, stopping, and errors.
-module(application_lifecycle).
-export([main/0]).

main() ->
    io:format("~p~n", [application:start(sasl)]),
    io:format("~p~n", [application:ensure_all_started(runtime_tools)]),
    io:format("~p~n", [application:start(no_such_app)]),
    io:format("~p~n", [application:load(tools)]),
    io:format("~p~n", [application:get_key(tools, applications)]),
    application:set_env(tools, key, value),
    io:format("~p ~p~n", [application:get_env(tools, key), application:get_env(tools, none, dflt)]),
    io:format("~p~n", [lists:sort([A || {A, _, _} <- application:which_applications()])]),
    logger:set_primary_config(level, none),
    io:format("~p~n", [application:stop(runtime_tools)]),
    io:format("~p~n", [application:stop(runtime_tools)]),
    {ok, Ps} = application:get_key(stdlib, modules),
    io:format("~p~n", [lists:member(lists, Ps)]),
    io:format("~p~n", [global:register_name(me, self())]),
    io:format("~p~n", [global:whereis_name(me) =:= self()]),
    ok = pg:start_link() =:= x orelse ok,
    pg:join(group, self()),
    io:format("~p~n", [pg:get_members(group) =:= [self()]]),
    {ok, E} = gen_event:start(),
    io:format("~p~n", [gen_event:which_handlers(E)]),
    io:format("~p~n", [gen_event:add_handler(E, no_such_handler, []) =/= ok]),
    io:format("~p~n", [rpc:call(node(), lists, reverse, [[1, 2]])]),
    io:format("~p~n", [erpc:call(node(), fun() -> 42 end)]),
    io:format("~p~n", [catch erpc:call(node(), erlang, error, [x])]).
