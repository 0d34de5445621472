%% Checks threads of native libraries, locks, descriptors, queues and dirty functions.
%% @nif threads @stress @fence
-module(nif_threads).
-export([main/0, outlives/1]).
-on_load(load/0).

load() -> erlang:load_nif("../ebin/threads", []).

threads(_) -> erlang:nif_error(undef).
make_pipe() -> erlang:nif_error(undef).
read(_) -> erlang:nif_error(undef).
write(_, _) -> erlang:nif_error(undef).
select(_, _, _, _) -> erlang:nif_error(undef).
through_queue(_, _, _) -> erlang:nif_error(undef).
slice() -> erlang:nif_error(undef).
last() -> erlang:nif_error(undef).
has_lasted() -> erlang:nif_error(undef).
outlives(_) -> erlang:nif_error(undef).
outlived() -> erlang:nif_error(undef).

show(What, F) ->
    R = try F() catch C:E:T -> {C, E, T} end,
    io:format("~p: ~p~n", [What, R]).

wait(0) -> late;
wait(N) -> case has_lasted() of 0 -> receive after 20 -> wait(N - 1) end; V -> V end.

stopped() -> receive {stopped, S} -> S after 60000 -> nothing end.

next() -> receive M -> M after 60000 -> nothing end.
none() -> receive M -> M after 50 -> none end.

main() ->
    show(threads, fun() -> threads(8) end),
    show(told, fun() -> [receive {thread, I, T, L} -> {I, T, erlang:phash2(L)} end || I <- lists:seq(0, 7)] end),
    show(order, fun() -> [[receive {I, N} -> N end || _ <- lists:seq(1, 20)] =:= lists:seq(0, 19) || I <- lists:seq(0, 7)] end),
    {R, W} = make_pipe(),
    Ref = make_ref(),
    show(select, fun() -> {read(R), select(R, 1, self, Ref), none()} end),
    show(ready, fun() -> {write(W, ["some ", <<"text">>]), next() =:= {select, R, Ref, ready_input}, read(R), none()} end),
    show(again, fun() -> {select(R, 1, self, Ref), write(W, "x"), next() =:= {select, R, Ref, ready_input}} end),
    show(write, fun() -> {select(W, 2, self, Ref), next() =:= {select, W, Ref, ready_output}} end),
    show(cancel, fun() -> {read(R), select(R, 1, self, Ref), select(R, 1 bor 8, self, Ref), select(R, 1 bor 8, self, Ref), write(W, "y"), none()} end),
    show(custom, fun() -> {select(R, 1 bor 16, self, {my, "own", [message, 1.5]}), next()} end),
    Me = self(),
    P = spawn_link(fun() -> Me ! {for, next()} end),
    show(other, fun() -> {read(R), select(R, 1, P, Ref), write(W, "z"), next() =:= {for, {select, R, Ref, ready_input}}} end),
    show(stop, fun() -> {select(W, 4, self, Ref) band 1, stopped()} end),
    show(stop, fun() -> {read(R), select(R, 1, self, Ref), receive {select, R, Ref, ready_input} -> true after 60000 -> false end, read(R)} end),
    show(stop, fun() -> {select(R, 4, self, Ref) band 1, stopped(), read(R)} end),
    %% Errors only: what there is to read is none, and a pipe that nobody reads any more has one.
    {R1, W1} = make_pipe(),
    show(quiet, fun() -> {write(W1, "x"), select(R1, 32, self, Ref), none(), select(R1, 32 bor 8, self, Ref), none()} end),
    show(both, fun() -> {select(R1, 33, self, Ref), next() =:= {select, R1, Ref, ready_input}, none()} end),
    show(broken, fun() -> {select(W1, 32, self, Ref), none(), select(R1, 4, self, Ref) band 1, lists:sort([next(), next()]) =:= lists:sort([{select, W1, Ref, ready_error}, {stopped, 1}]), none()} end),
    show(stop, fun() -> {select(W1, 4, self, Ref) band 1, stopped()} end),
    Big = binary:copy(<<"0123456789">>, 30),
    show(queue, fun() -> through_queue([<<"a">>, Big, binary:part(Big, 7, 100), <<>>, <<"end">>], 50, 3) end),
    show(queue, fun() -> through_queue([<<I>> || I <- lists:seq(1, 100)], 7, 0) end),
    show(queue, fun() -> through_queue([], 7, 0) end),
    show(queue, fun() -> through_queue([a], 7, 0) end),
    show(queue, fun() -> through_queue([<<"a">>], 7, 2) end),
    show(slice, fun() -> slice() end),
    L = spawn(fun() -> last() end),
    receive after 100 -> ok end,
    exit(L, kill),
    show(last, fun() -> {wait(200), none()} end),
    show(gone, fun() -> receive after 100 -> is_process_alive(L) end end),
    %% One that goes on when its process has ended, with a literal of a module that goes meanwhile.
    register(n_told, self()),
    literal(0),
    literal(100),
    {E, M} = spawn_monitor(fun() -> register(n_ends, self()), n_literal:f() end),
    show(runs, fun() -> receive {runs, Who} -> Who =:= E after 60000 -> nothing end end),
    exit(E, kill),
    show(ended, fun() -> {receive {'DOWN', M, process, E, Why} -> Why after 60000 -> nothing end, is_process_alive(E), whereis(n_ends), outlived()} end),
    show(purged, fun() -> {code:purge(n_literal), code:delete(n_literal), code:purge(n_literal)} end),
    show(sum, fun() -> {until_outlived(300), none()} end).

until_outlived(0) -> late;
until_outlived(N) -> case outlived() of 0 -> receive after 20 -> until_outlived(N - 1) end; V -> V end.

%% Loads a module that calls it with a literal.
literal(N) ->
    Tuple = {tuple, 1, [{integer, 1, N + I} || I <- lists:seq(1, 50)]},
    Call = {call, 1, {remote, 1, {atom, 1, ?MODULE}, {atom, 1, outlives}}, [Tuple]},
    Forms = [{attribute, 1, module, n_literal}, {attribute, 1, export, [{f, 0}]}, {function, 1, f, 0, [{clause, 1, [], [], [Call]}]}],
    {ok, n_literal, B} = compile:forms(Forms),
    code:purge(n_literal),
    {module, n_literal} = code:load_binary(n_literal, "n_literal", B).
