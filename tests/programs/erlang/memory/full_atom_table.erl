%% A node whose table of atoms is nearly full: processes that make atoms beside each other while a
%% collection is under way, and one that keeps more than there is room for. Where atoms are never
%% collected, the node has room for all of them. @atoms @fence @seconds 240
-module(full_atom_table).
-export([main/0, inside/1, maker/4, keeper/2]).

main() ->
    os:cmd("epmd -daemon"),
    {ok, _} = net_kernel:start(list_to_atom("full_" ++ os:getpid()), #{name_domain => shortnames}),
    Limit = try purlin:budgets() of _ -> "40000" catch error:undef -> "2000000" end,
    {ok, Peer, Node} = peer:start(#{name => peer:random_name(), wait_boot => 120000, args =>
        ["+t", Limit, "-pa", filename:dirname(code:which(?MODULE)), "-setcookie", atom_to_list(erlang:get_cookie())]}),
    [io:format("~p: ~p~n", [Step, erpc:call(Node, ?MODULE, inside, [Step], 200000)])
        || Step <- [lone, beside, ways, kept, after_kept, lone]],
    catch peer:stop(Peer),
    init:stop().

%% One process fills the table with dead atoms again and again.
inside(lone) -> run([{"lone_", 60000, 10}]);
%% Several do, so that some find the table full while a cycle runs that another has begun.
inside(beside) -> run([{lists:concat(["beside_", P, "_"]), 12000, 20} || P <- lists:seq(1, 8)]);
%% Each way to make an atom finds room.
inside(ways) ->
    [begin
         Made = [is_atom(Make(lists:concat([Way, "_", N]))) || N <- lists:seq(1, 30000)],
         {Way, lists:usort(Made)}
     end || {Way, Make} <- ways()];
%% One keeps them, so that cycles find nothing, and there is no room. Others get exceptions, or
%% their atoms. None waits long, and no name is lost.
inside(kept) ->
    Me = self(),
    Keeper = spawn(fun() -> keeper(Me, 100000) end),
    receive {Keeper, Reason} -> ok end,
    Others = [spawn(fun() -> Me ! {self(), catch make(lists:concat(["other_", P, "_"]), 3000)} end) || P <- lists:seq(1, 4)],
    Ended = [receive {P, done} -> ended; {P, {'EXIT', {system_limit, _}}} -> ended end || P <- Others],
    Keeper ! {check, self()},
    receive {Keeper, Names, Known} -> ok end,
    exit(Keeper, kill),
    {lists:member(Reason, [system_limit, enough]), Ended, Names, Known};
%% When it has ended, there is room again, at the latest after some tries.
inside(after_kept) ->
    again(100).

again(0) -> none;
again(N) ->
    try make("again_", 5000)
    catch error:system_limit -> receive after 100 -> ok end, again(N - 1)
    end.

make(_, 0) -> done;
make(Name, N) ->
    true = is_atom(list_to_atom(Name ++ integer_to_list(N))),
    make(Name, N - 1).

keeper(To, Most) ->
    {Reason, Kept} = keep(0, Most, []),
    To ! {self(), Reason},
    receive {check, From} -> ok end,
    Numbered = lists:zip(lists:seq(length(Kept), 1, -1), Kept),
    Names = lists:all(fun({N, A}) -> atom_to_list(A) =:= "kept_" ++ integer_to_list(N) end, Numbered),
    Known = lists:all(fun({N, A}) -> list_to_existing_atom("kept_" ++ integer_to_list(N)) =:= A end, Numbered),
    From ! {self(), Names, Known},
    receive never -> Kept end.

keep(Most, Most, Kept) -> {enough, Kept};
keep(N, Most, Kept) ->
    try list_to_atom("kept_" ++ integer_to_list(N + 1)) of
        A -> keep(N + 1, Most, [A | Kept])
    catch
        error:Reason -> {Reason, Kept}
    end.

%% Runs makers, each of which keeps its latest atoms.
run(Makers) ->
    Me = self(),
    Pids = [spawn(?MODULE, maker, [Me, Name, N, Keep]) || {Name, N, Keep} <- Makers],
    [receive {P, Result} -> Result end || P <- Pids].

maker(To, Name, N, Keep) ->
    Result = try made(Name, N, Keep, queue:new(), 0) catch error:Reason:Stack -> {Reason, Stack} end,
    To ! {self(), Result}.

made(_, 0, _, _, Wrong) -> {wrong, Wrong};
made(Name, N, Keep, Q, Wrong) ->
    Text = Name ++ integer_to_list(N),
    More = queue:in({Text, list_to_atom(Text)}, Q),
    case queue:len(More) > Keep of
        false -> made(Name, N - 1, Keep, More, Wrong);
        true ->
            {{value, {Old, Atom}}, Rest} = queue:out(More),
            Right = atom_to_list(Atom) =:= Old andalso list_to_existing_atom(Old) =:= Atom,
            made(Name, N - 1, Keep, Rest, case Right of true -> Wrong; false -> Wrong + 1 end)
    end.

ways() ->
    [{list, fun list_to_atom/1},
     {binary, fun(Name) -> binary_to_atom(list_to_binary(Name)) end},
     {term, fun(Name) -> binary_to_term(<<131, 119, (length(Name)), (list_to_binary(Name))/binary>>) end},
     {scanned, fun(Name) -> {ok, [{atom, _, A}], _} = erl_scan:string(Name), A end}].
