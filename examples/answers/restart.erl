-module(restart).
-behaviour(supervisor).
-export([main/1, init/1, start_pool/0, pool/0]).

%% A supervisor starts the pool again, which has ended by an error.
main(_) ->
    {ok, _} = supervisor:start_link({local, shop_sup}, ?MODULE, []),
    %% The first second has the events of the start.
    timer:sleep(1500),
    shop_pool ! {take, none},
    timer:sleep(1000),
    io:format("ready~n"),
    receive stop -> ok end.

init([]) ->
    Pool = #{id => pool, start => {?MODULE, start_pool, []}},
    {ok, {#{}, [Pool]}}.

start_pool() ->
    {ok, spawn_link(?MODULE, pool, [])}.

pool() ->
    register(shop_pool, self()),
    receive {take, From} -> take(From) end.

take(From) ->
    {ok, Connection} = first([]),
    From ! Connection.

first([]) -> none;
first([C | _]) -> {ok, C}.
