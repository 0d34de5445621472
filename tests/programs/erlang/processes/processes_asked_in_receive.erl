%% Processes report what they hold again and again while they scan their messages: between time
%% slices, in a receive, and after others left terms in the registers. On stock, which cannot be
%% asked, the same work is done without requests. @stress @shared @fence @seconds 200
-module(processes_asked_in_receive).
-export([main/0, busy/3, spin/12]).

main() ->
    Large = binary:copy(<<"0123456789">>, 3000),
    Me = self(),
    Busy = [spawn_link(?MODULE, busy, [Me, N, binary:part(Large, N, 200)]) || N <- lists:seq(1, 16)],
    Found = socket(),
    Answers = [ask(Found, "binaries") || _ <- lists:seq(1, 30)],
    io:format("asked: ~p~n", [lists:usort([sound(Found, A) || A <- Answers])]),
    [P ! stop || P <- Busy],
    io:format("sums: ~p~n", [[receive {P, Sum} -> Sum end || P <- Busy]]).

%% Ends with the sum of what it holds.
busy(To, N, Part) ->
    L = [{N, Part, I} || I <- lists:seq(1, 50)],
    Sum = ?MODULE:spin(0, 4000, {L, Part}, [L | Part], #{l => L, p => Part}, {[Part], L}, {L, 1}, {L, 2}, [L | 3], [L | Part],
                       {L, L}, {Part, 7}),
    erlang:garbage_collect(),
    case poll(20) of
        stop -> To ! {self(), Sum};
        more -> busy(To, N, Part)
    end.

poll(0) -> more;
poll(N) -> receive stop -> stop after 0 -> poll(N - 1) end.

%% Time slices end in the midst of it, with all these arguments in registers.
spin(N, N, A, B, C, D, E, F, G, H, J, K) -> erlang:phash2({A, B, C, D, E, F, G, H, J, K});
spin(I, N, A, B, C, D, E, F, G, H, J, K) -> ?MODULE:spin(I + 1, N, A, B, C, D, E, F, G, H, J, K).

socket() ->
    case string:find(erlang:system_info(system_version), "purlin") of
        nomatch -> stock;
        _ ->
            Run = case os:getenv("XDG_RUNTIME_DIR") of false -> []; D -> [D] end,
            User = string:trim(os:cmd("id -u")),
            Folders = [filename:join(D, "purlin") || D <- Run ++ ["/run/user/" ++ User]] ++ ["/tmp/purlin-" ++ User],
            Files = [filename:join(F, os:getpid()) || F <- Folders],
            case [F || F <- Files, element(1, file:read_file_info(F)) =:= ok] of
                [File | _] -> File;
                [] -> missing
            end
    end.

ask(File, Topic) when is_list(File) ->
    {ok, S} = gen_tcp:connect({local, File}, 0, [local, binary, {active, false}]),
    ok = gen_tcp:send(S, [Topic, "\n"]),
    all(S, []);
ask(Other, _) -> Other.

all(S, Acc) ->
    case gen_tcp:recv(S, 0) of
        {ok, B} -> all(S, [Acc, B]);
        {error, closed} -> iolist_to_binary(Acc)
    end.

sound(File, Answer) when is_list(File) ->
    case binary:match(Answer, <<"\"purlin-explain/1\"">>) of
        {_, _} -> ok;
        nomatch -> {bad, Answer}
    end;
sound(stock, stock) -> ok;
sound(_, Other) -> Other.
