%% Checks supervisors: strategies, restarts, too many of them, dynamic children, and their reports
%% to the logger.
-module(supervisors).
-behaviour(supervisor).
-export([main/0, init/1, start_worker/1, worker/2]).

start_worker(Name) -> proc_lib:start_link(?MODULE, worker, [self(), Name]).
worker(Parent, Name) ->
    register(Name, self()),
    proc_lib:init_ack(Parent, {ok, self()}),
    loop().
loop() -> receive {crash, R} -> exit(R); ping -> loop() end.

init({simple, I}) ->
    {ok, {#{strategy => simple_one_for_one, intensity => I}, [#{id => w, start => {?MODULE, start_worker, []}, restart => temporary}]}};
init({Strategy, I}) ->
    {ok, {#{strategy => Strategy, intensity => I, period => 5},
          [#{id => N, start => {?MODULE, start_worker, [N]}, restart => permanent, shutdown => 100} || N <- [w1, w2, w3]]}}.

pids() -> [whereis(N) || N <- [w1, w2, w3]].

changed(Old) ->
    timer:sleep(50),
    [A =/= B || {A, B} <- lists:zip(Old, pids())].

main() ->
    logger:set_primary_config(level, none),
    process_flag(trap_exit, true),
    [begin
         {ok, S} = supervisor:start_link(?MODULE, {St, 3}),
         Old = pids(),
         w2 ! {crash, oops},
         io:format("~p ~p~n", [St, changed(Old)]),
         io:format("~p~n", [[{I, T} || {I, _, T, _} <- supervisor:which_children(S)]]),
         io:format("~p~n", [supervisor:count_children(S)]),
         unlink(S), exit(S, shutdown), timer:sleep(50), io:format("~p~n", [pids()])
     end || St <- [one_for_one, one_for_all, rest_for_one]],
    {ok, S1} = supervisor:start_link(?MODULE, {one_for_one, 1}),
    w1 ! {crash, a}, timer:sleep(30), w1 ! {crash, b},
    receive {'EXIT', S1, R} -> io:format("gave up ~p~n", [R]) end,
    {ok, S2} = supervisor:start_link(?MODULE, {simple, 0}),
    {ok, C} = supervisor:start_child(S2, [d1]),
    {ok, _} = supervisor:start_child(S2, [d2]),
    io:format("~p~n", [supervisor:count_children(S2)]),
    io:format("~p~n", [supervisor:terminate_child(S2, C)]),
    d2 ! {crash, gone}, timer:sleep(30),
    io:format("~p~n", [supervisor:count_children(S2)]),
    {ok, S3} = supervisor:start_link(?MODULE, {one_for_one, 1}),
    io:format("~p ~p ~p~n", [supervisor:terminate_child(S3, w1), supervisor:restart_child(S3, w2), supervisor:delete_child(S3, w1)]),
    io:format("~p~n", [element(1, supervisor:start_child(S3, #{id => w9, start => {?MODULE, start_worker, [w9]}}))]),
    io:format("~p~n", [[I || {I, _, _, _} <- supervisor:which_children(S3)]]).
