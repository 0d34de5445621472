%% The election of a leader among three nodes. A node votes once in a term, and who has two votes
%% leads that term and says so.
%% A vote is on the disk before it leaves, and a node that is started again finds it there.
%% Run: purlin schedules --nodes 3 --faults cut,kill -- run forgotten_vote_right.erl
-module(forgotten_vote_right).
-export([main/1]).
-mode(compile).

-record(s, {others, term, voted, votes = [], leads = false, known = #{}, due, ends}).

main(_) ->
    Me = list_to_atom(os:getenv("PURLIN_NODE")),
    All = [list_to_atom(N) || N <- string:lexemes(os:getenv("PURLIN_NODES"), " ")],
    {ok, _} = net_kernel:start([Me, shortnames]),
    register(voter, self()),
    [spawn_link(fun() -> meets(N) end) || N <- All -- [Me]],
    {Term, Voted} = recall(),
    Now = now_ms(),
    loop(#s{others = All -- [Me], term = Term, voted = Voted, due = Now + 1500 + patience(),
            ends = Now + 12000}).

now_ms() -> erlang:monotonic_time(millisecond).

patience() -> 800 + rand:uniform(800).

meets(Node) ->
    net_kernel:connect_node(Node),
    timer:sleep(200),
    meets(Node).

tell(Node, Message) -> erlang:send({voter, Node}, Message, [noconnect]).

loop(#s{ends = Ends} = S) ->
    receive
        Message -> loop(gets(Message, S))
    after 100 ->
        case now_ms() of
            Now when Now >= Ends -> io:put_chars("ends\n");
            Now -> loop(waits(S, Now))
        end
    end.

waits(#s{leads = true} = S, _) ->
    announces(S);
waits(#s{due = Due, term = T} = S, Now) when Now >= Due ->
    keep(T + 1, node()),
    asks(S#s{term = T + 1, voted = node(), votes = [node()], due = Now + patience()});
waits(#s{votes = [_ | _]} = S, _) ->
    asks(S);
waits(S, _) ->
    S.

asks(#s{others = Others, votes = Votes, term = T} = S) ->
    [tell(N, {ask, T, node()}) || N <- Others -- Votes],
    S.

announces(#s{others = Others, term = T} = S) ->
    [tell(N, {leads, T, node()}) || N <- Others],
    S.

gets({Kind, T, _} = M, #s{term = Mine} = S) when T > Mine, Kind =/= vote ->
    gets(M, S#s{term = T, voted = none, votes = [], leads = false});
gets({ask, T, From}, #s{term = T, voted = V} = S) when V =:= none; V =:= From ->
    keep(T, From),
    tell(From, {vote, T, node()}),
    S#s{voted = From, due = now_ms() + patience()};
gets({vote, T, From}, #s{term = T, votes = [_ | _] = Votes, leads = false} = S) ->
    announces(known(T, node(), S#s{votes = [From | Votes], leads = true}));
gets({leads, T, From}, S) ->
    (known(T, From, S))#s{due = now_ms() + patience()};
gets(_, S) ->
    S.

known(T, Leader, #s{known = Known} = S) ->
    case Known of
        #{T := Other} when Other =/= Leader ->
            io:format("FAIL: ~p and ~p lead term ~p~n", [Other, Leader, T]),
            halt(1);
        _ ->
            S#s{known = Known#{T => Leader}}
    end.

recall() ->
    case file:consult("vote") of
        {ok, [Vote]} -> Vote;
        {error, enoent} -> {0, none}
    end.

keep(Term, For) ->
    {ok, F} = file:open("vote.new", [write, raw]),
    ok = file:write(F, io_lib:format("~p.~n", [{Term, For}])),
    ok = file:sync(F),
    ok = file:close(F),
    ok = file:rename("vote.new", "vote").
