%% Two nodes make and remove links from both ends at the same time, and agree afterwards. The other
%% node runs the same runtime, then the installed one. Then processes that the other node monitors
%% and is linked to end, with reasons of different sizes. @stress @shared @fence @seconds 300
-module(links_between_nodes).
-export([main/0, worker/1, watcher/3]).

-define(WORKERS, 4).
-define(STEPS, 400).

main() ->
    os:cmd("epmd -daemon"),
    logger:set_primary_config(level, none),
    {ok, _} = net_kernel:start(list_to_atom("links" ++ os:getpid()), #{name_domain => shortnames}),
    process_flag(trap_exit, true),
    Stock = filename:join([code:root_dir(), "bin", "erl"]),
    [begin
         {ok, Peer, Node} = peer:start(Options#{name => peer:random_name(), wait_boot => 60000, args => ["-pa", filename:dirname(code:which(?MODULE)), "-setcookie", atom_to_list(erlang:get_cookie())]}),
         rounds(Node),
         reasons(Node),
         catch peer:stop(Peer)
     end || Options <- [#{}, #{exec => {Stock, []}, env => [{"ERL_AFLAGS", ""}]}]],
    init:stop().

rounds(Node) ->
    Here = [spawn(?MODULE, worker, [self()]) || _ <- lists:seq(1, ?WORKERS)],
    There = [spawn(Node, ?MODULE, worker, [self()]) || _ <- lists:seq(1, ?WORKERS)],
    [begin
         [P ! {go, self(), There} || P <- Here],
         [P ! {go, self(), Here} || P <- There],
         [receive {P, done} -> ok end || P <- Here ++ There],
         %% What is under way arrives: each asks each of the other side, behind what it has sent.
         [P ! {ask, self(), There} || P <- Here],
         [P ! {ask, self(), Here} || P <- There],
         [receive {P, asked} -> ok end || P <- Here ++ There],
         io:format("round ~p: ~p~n", [Round, agree(Here, There)])
     end || Round <- [1, 2, 3]],
    %% All end at once, with links from both sides.
    [begin P ! {all, self(), There}, receive {P, done} -> ok end end || P <- Here],
    Ms = [monitor(process, P) || P <- Here ++ There],
    exit(hd(Here), over),
    io:format("ended: ~p~n", [[receive {'DOWN', M, _, _, Why} -> Why end || M <- Ms]]).

%% One reason for many: in a frame, in fragments, with binaries that go out as they are, with more
%% atoms than a frame names by number.
reasons(Node) ->
    Atoms = [list_to_atom("some_" ++ integer_to_list(I)) || I <- lists:seq(1, 300)],
    Bin = fun(N) -> << <<I>> || I <- lists:seq(1, N) >> end,
    [begin
         P = spawn(fun() -> receive die -> exit(Reason) end end),
         Ws = [spawn(Node, ?MODULE, watcher, [self(), P, How]) || How <- [link, monitor], _ <- [1, 2, 3]],
         [receive {W, ready} -> ok end || W <- Ws],
         P ! die,
         Told = [receive {W, R} -> R =:= Reason end || W <- Ws],
         io:format("~p: ~p~n", [Size, Told])
     end || {Size, Reason} <- [{atom, kaput},
                               {small, {shutdown, [Node, <<"small">>]}},
                               {atoms, {Atoms, Atoms}},
                               {middle, {Bin(1100), hd(Atoms), Bin(30), Bin(5000), self()}},
                               {list, lists:seq(1, 20000)},
                               {large, [#{a => Bin(100)}, Bin(100000), Atoms, Bin(500), lists:seq(1, 30000), Bin(70000)]}]].

watcher(Main, P, How) ->
    process_flag(trap_exit, true),
    case How of
        link -> link(P);
        monitor -> monitor(process, P)
    end,
    Main ! {self(), ready},
    receive
        {'EXIT', P, R} -> Main ! {self(), R};
        {'DOWN', _, process, P, R} -> Main ! {self(), R}
    end.

agree(Here, There) ->
    Far = [{P, links(P)} || P <- There],
    Near = [{P, links(P)} || P <- Here],
    case [{P, Q} || {P, Ps} <- Near, {Q, Qs} <- Far, lists:member(Q, Ps) =/= lists:member(P, Qs)] of
        [] -> yes;
        Odd -> Odd
    end.

links(P) ->
    {links, L} = erpc:call(node(P), erlang, process_info, [P, links]),
    L.

worker(Main) ->
    receive
        {go, Main, Others} ->
            [case rand:uniform(2) of
                 1 -> link(P);
                 2 -> unlink(P)
             end || _ <- lists:seq(1, ?STEPS), P <- [lists:nth(rand:uniform(length(Others)), Others)]],
            Main ! {self(), done},
            worker(Main);
        {ask, Main, Others} ->
            %% Twice: what comes of what was sent before, the acknowledgements, too.
            [[begin P ! {ping, self()}, wait_pong(P) end || P <- Others] || _ <- [1, 2]],
            Main ! {self(), asked},
            worker(Main);
        {all, Main, Others} ->
            [link(P) || P <- Others],
            Main ! {self(), done},
            worker(Main);
        {ping, P} ->
            P ! {pong, self()},
            worker(Main)
    end.

wait_pong(P) ->
    receive
        {pong, P} -> ok;
        {ping, Q} -> Q ! {pong, self()}, wait_pong(P)
    end.
