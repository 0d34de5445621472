%% Processes hold much, drop most of it, and wait. Their heaps are swept in steps meanwhile, until a
%% request arrives, early or late; then they grow again. Values of all kinds are compared with the
%% expected ones. @stress @shared @fence @seconds 200
-module(idle_process_sweeps).
-export([main/0, holder/2]).

main() ->
    N = case os:getenv("PURLIN_GC_STRESS") of false -> 40000; _ -> 60 end,
    Ps = [spawn_link(?MODULE, holder, [K, N]) || K <- [0, 1, 2, 3, 4, mixed]],
    Told = [ask(P, length) || P <- Ps],
    io:format("~w~n", [[L =:= N div 3 || L <- Told]]),
    %% Upkeep comes each half second, and takes who has waited since.
    Wrong = [begin
                 timer:sleep(Pause),
                 [ask(P, {check, I}) || P <- Ps]
             end || {I, Pause} <- lists:zip(lists:seq(1, 9), [1600, 3, 1, 1100, 40, 0, 1201, 1, 7])],
    io:format("~w~n", [lists:sum(lists:append(Wrong))]),
    [ask(P, drop) || P <- Ps],
    timer:sleep(1600),
    io:format("~w ~w~n", [[ask(P, length) || P <- Ps], [ask(P, {check, 10}) || P <- Ps]]),
    [P ! stop || P <- Ps].

ask(P, What) ->
    P ! {self(), What},
    receive {P, A} -> A end.

%% Two of three values die before it waits for the first time, every other one is renewed then.
holder(Kind, N) ->
    All = [{I, value(Kind, I)} || I <- lists:seq(1, N)],
    serve(Kind, N, [{I, V} || {I, V} <- All, I rem 3 =:= 0]).

serve(Kind, N, S) ->
    receive
        {From, length} -> From ! {self(), length(S)}, serve(Kind, N, S);
        {From, {check, Round}} ->
            From ! {self(), length([I || {I, V} <- S, V =/= value(Kind, I)])},
            put(Round, value(Kind, Round)),
            serve(Kind, N, [case I rem 10 of Round -> {I, value(Kind, I)}; _ -> E end || {I, _} = E <- S]);
        {From, drop} -> From ! {self(), dropped}, serve(Kind, N, lists:sublist(S, 20));
        stop -> ok
    end.

value(mixed, I) -> value(I rem 5, I);
value(0, I) -> {I, [I, {I}], I * 1.5};
value(1, I) -> binary:copy(<<I:32>>, 1 + I rem 60);
value(2, I) -> #{i => I, {I} => [I, I + 1], b => <<I:64>>};
value(3, I) -> lists:seq(I, I + I rem 12);
value(4, I) -> <<_:3/binary, B/binary>> = binary:copy(<<I:32>>, 20), [B, (I bsl 70)].
