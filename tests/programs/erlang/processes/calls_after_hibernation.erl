%% A process wakes from hibernation and calls its function with arguments of all kinds. Messages
%% that came before or come meanwhile, copied at once or not, leave the arguments intact.
%% @stress @shared
-module(calls_after_hibernation).
-export([main/0, woken/3, again/4]).

main() ->
    [io:format("~w ~w ~w~n", [Kind, Size, round(Kind, Size)]) || Kind <- [before, after_, named, timeout_before], Size <- [0, 1, 3, 30, 300, 3000]],
    %% The heap is as full as it is left by what was made before.
    P = spawn_link(?MODULE, again, [self(), 200, [], #{}]),
    P ! go,
    receive {P, L} -> io:format("~w ~w~n", [length(L), erlang:phash2(L)]) end.

round(Kind, Size) ->
    Me = self(),
    {P, R} = spawn_monitor(fun() ->
                                   Args = [{Me, self()}, lists:seq(1, Size), #{size => Size, text => <<"kept">>, list => [Kind, 2.5, 1 bsl 70]}],
                                   case Kind of
                                       before -> self() ! message(Size), self() ! last;
                                       timeout_before -> receive never -> ok after 0 -> ok end, self() ! last;
                                       named -> register(p_hibernate_named, self()), Me ! ready;
                                       after_ -> Me ! ready
                                   end,
                                   erlang:hibernate(?MODULE, woken, Args)
                           end),
    case Kind of
        after_ -> receive ready -> ok end, P ! message(Size), P ! last;
        named -> receive ready -> ok end, p_hibernate_named ! message(Size), P ! last;
        _ -> ok
    end,
    receive {'DOWN', R, process, P, Why} -> Why end.

message(Size) -> {message, list_to_tuple(lists:seq(1, Size)), [a | b]}.

woken({Parent, Me}, List, #{size := N} = M) ->
    true = Me =:= self(),
    Got = messages(),
    exit({is_pid(Parent), erlang:phash2(List), length(List) =:= N, maps:remove(size, M), erlang:phash2(Got), length(Got)}).

messages() -> receive last -> []; X -> [X | messages()] end.

again(Parent, 0, Kept, _) -> Parent ! {self(), Kept};
again(Parent, N, Kept, M) ->
    _ = lists:seq(1, N * 7 rem 50),
    self() ! {n, N, lists:duplicate(N rem 12, M)},
    receive {n, N, L} -> ok; go -> L = [] end,
    self() ! {go, [N]},
    erlang:hibernate(?MODULE, again, [Parent, N - 1, [{N, length(L)} | lists:sublist(Kept, 30)], #{N => Kept, n => N}]).
