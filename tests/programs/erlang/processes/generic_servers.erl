%% Checks all calls of gen_server, with time-outs, continue, stop, and errors in the caller.
-module(generic_servers).
-behaviour(gen_server).
-export([main/0, init/1, handle_call/3, handle_cast/2, handle_info/2, handle_continue/2, terminate/2, code_change/3, format_status/1]).

init(stop) -> {stop, not_wanted};
init(ignore) -> ignore;
init(N) -> process_flag(trap_exit, true), {ok, N, {continue, add}}.
handle_continue(add, N) -> {noreply, N + 1}.
handle_call(get, _, N) -> {reply, N, N};
handle_call({add, K}, _, N) -> {reply, ok, N + K};
handle_call(later, From, N) -> self() ! {answer, From}, {noreply, N};
handle_call(slow, _, N) -> timer:sleep(300), {reply, slow, N};
handle_call(idle, _, N) -> {reply, ok, N, 10};
handle_call(stop, _, N) -> {stop, normal, stopping, N}.
handle_cast({add, K}, N) -> {noreply, N + K};
handle_cast(stop, N) -> {stop, normal, N}.
handle_info({answer, From}, N) -> gen_server:reply(From, {answered, N}), {noreply, N};
handle_info(timeout, N) -> {noreply, N + 1000};
handle_info(_, N) -> {noreply, N}.
terminate(R, N) -> io:format("terminate ~p ~p~n", [R, N]).
code_change(_, N, _) -> {ok, N * 2}.
format_status(S) -> S#{state => hidden}.

main() ->
    logger:set_primary_config(level, none),
    {ok, P} = gen_server:start({local, counter}, ?MODULE, 1, []),
    io:format("~p~n", [gen_server:call(counter, get)]),
    ok = gen_server:call(P, {add, 10}),
    ok = gen_server:cast(P, {add, 100}),
    io:format("~p~n", [gen_server:call(P, get)]),
    io:format("~p~n", [gen_server:call(P, later)]),
    ok = gen_server:call(P, idle), timer:sleep(60),
    io:format("~p~n", [gen_server:call(P, get)]),
    io:format("~p~n", [catch gen_server:call(P, slow, 20)]),
    io:format("~p~n", [sys:get_state(P)]),
    ok = sys:suspend(P), ok = sys:change_code(P, ?MODULE, 1, extra), ok = sys:resume(P),
    io:format("~p~n", [sys:replace_state(P, fun(S) -> S + 1 end)]),
    {status, P, {module, gen_server}, [_, running, P, [], Misc]} = sys:get_status(P),
    io:format("~p~n", [proplists:get_all_values(data, Misc)]),
    io:format("~p~n", [gen_server:start({local, counter}, ?MODULE, 1, []) =:= {error, {already_started, P}}]),
    io:format("~p~n", [gen_server:call(P, stop)]),
    timer:sleep(20),
    io:format("~p~n", [catch gen_server:call(P, get)]),
    io:format("~p~n", [catch gen_server:call(nobody, get)]),
    io:format("~p~n", [gen_server:start(?MODULE, stop, [])]),
    io:format("~p~n", [gen_server:start(?MODULE, ignore, [])]),
    {ok, Q} = gen_server:start(?MODULE, 5, []),
    io:format("~p~n", [gen_server:stop(Q, shutdown, 1000)]),
    {ok, Z} = gen_server:start(?MODULE, 7, []),
    Reqs = [gen_server:send_request(Z, get) || _ <- [1, 2]],
    io:format("~p~n", [[gen_server:receive_response(R, 1000) || R <- Reqs]]),
    gen_server:cast(Z, stop), timer:sleep(20),
    io:format("~p~n", [element(1, gen_server:multi_call([node()], nobody, x))]).
