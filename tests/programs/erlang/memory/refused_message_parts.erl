%% Receives match parts of binaries in queued messages, and reject the messages. The dead
%% sub-binaries still point into messages when the process begins to wait, and when another receive
%% frees a message with its block; nothing may follow them. @stress @fence
-module(refused_message_parts).
-export([main/0, id/1]).

main() ->
    Ps = [spawn_monitor(fun() -> exit(rounds(60, I)) end) || I <- lists:seq(1, 3)],
    io:format("~p~n", [lists:usort([receive {'DOWN', R, process, _, Why} -> Why end || {_, R} <- Ps])]).

rounds(0, _) -> ok;
rounds(N, Seed) ->
    Keep = [{X, <<X:32>>} || X <- lists:seq(N, N + 20)],
    [self() ! <<I:32, 0:(8 * (20 + 15 * I)), N>> || I <- lists:seq(1, 6)],
    %% The process begins to wait with what it has made.
    none = first(?MODULE:id({none}), none),
    self() ! <<7:32, (binary:copy(<<N, Seed, 3>>, 40))/binary>>,
    Wanted = ?MODULE:id(<<Seed, 3, N, (binary:copy(<<Seed, 3, N>>, 38))/binary, Seed, 3>>),
    Part = first(?MODULE:id({none}), Wanted),
    Rest = drain([]),
    Made = ?MODULE:id([{<<I:32>>, [I]} || I <- lists:seq(1, 10 + N)]),
    {Part, Rest, length(Made), Keep} =:= {{Wanted, N}, [N || _ <- lists:seq(1, 6)], 10 + N, [{X, <<X:32>>} || X <- lists:seq(N, N + 20)]} orelse exit({N, Part, Rest}),
    rounds(N - 1, Seed).

%% Contexts and parts of each message that is looked at.
first(No, Wanted) ->
    receive
        <<1:32, A:9/binary, B/binary>> when {A, B} =:= No -> {never, A};
        <<K:32, _:3, A:70/bits, B/bits>> when {K, A, B} =:= No -> {never, A};
        <<_:32, A:20/binary, _/binary>> when [A] =:= No -> {never, A};
        <<_:32, N, B/binary>> when B =:= Wanted, {B, N} =/= No -> {B, N}
    after 1 -> none
    end.

drain(L) ->
    receive
        <<K:32, _:(8 * (20 + 15 * K)), N>> -> drain([N | L])
    after 0 -> L
    end.

id(X) -> X.
