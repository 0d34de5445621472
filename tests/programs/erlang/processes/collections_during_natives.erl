%% Processes are collected in the middle of long natives: the request is answered before the native
%% is done, whose result is right all the same. @stress @fence @seconds 180
-module(collections_during_natives).
-export([main/0]).

main() ->
    [io:format("~w ~w~n", [Name, shown(Name, try_it(Make, Run, 5))]) || {Name, Make, Run} <- cases()].

%% From 27 on, stock copies too fast to be asked meanwhile.
shown(Name, {_, R}) when Name =:= copy; Name =:= copy_large -> R;
shown(_, R) -> R.

%% The results are so small that a collection afterwards costs nothing, or are made small.
cases() ->
    Bytes = fun(N) -> binary:copy(<<"abcdefgh">>, N div 8) end,
    Text = fun(N) -> binary:copy(<<"aä€"/utf8>>, N div 6) end,
    Parts = fun(N) -> [[B, $b, [B | <<"cd">>]] || B <- lists:duplicate(200, Bytes(N div 400))] end,
    [{md5, fun() -> Bytes(200000000) end, fun erlang:md5/1},
     {md5_parts, fun() -> Parts(200000000) end, fun erlang:md5/1},
     {md5_update, fun() -> Bytes(200000000) end, 
      fun(B) -> erlang:md5_final(erlang:md5_update(erlang:md5_update(erlang:md5_init(), <<"x">>), B)) end},
     {crc32, fun() -> Parts(400000000) end, fun erlang:crc32/1},
     {crc32_from, fun() -> Bytes(400000000) end, fun(B) -> erlang:crc32(17, B) end},
     {adler32, fun() -> Bytes(400000000) end, fun erlang:adler32/1},
     {adler32_from, fun() -> Parts(400000000) end, fun(B) -> erlang:adler32(17, B) end},
     {copy, fun() -> <<"abcdefghij">> end, fun(B) -> sum(binary:copy(B, 30000000)) end},
     {copy_large, fun() -> Bytes(3000008) end, fun(B) -> sum(binary:copy(B, 100)) end},
     {text_to_list, fun() -> Text(12000000) end, fun(B) -> sum(unicode:characters_to_list(B)) end},
     {parts_to_list, fun() -> [Text(4000002), [8364, [Text(4000002) | Text(4000002)]], $b] end, fun(B) -> sum(unicode:characters_to_list(B)) end},
     {text_to_binary, fun() -> [$a, [Text(30000000) | Text(30000000)]] end, fun(B) -> sum(unicode:characters_to_binary(B)) end},
     {broken_text, fun() -> [$a, [<<(Text(30000000))/binary, 195>>, <<"x">>], $b] end,
      fun(B) -> {error, Good, Rest} = unicode:characters_to_binary(B), {sum(Good), Rest} end},
     {chars_to_binary, fun() -> lists:duplicate(4000000, 228) end, fun(L) -> sum(unicode:characters_to_binary(L)) end}].

sum(B) when is_binary(B) -> {byte_size(B), erlang:phash2(binary:part(B, byte_size(B) - 1000, 1000))};
sum(L) when is_list(L) -> {length(L), erlang:phash2(lists:nthtail(length(L) - 1000, L))};
sum(X) -> X.

%% `in_time`: it was answered before the native was done. On a machine that has other work that may
%% take more than one try.
try_it(Make, Run, N) ->
    case try_it(Make, Run) of
        {late, _} when N > 1 -> try_it(Make, Run, N - 1);
        R -> R
    end.

try_it(Make, Run) ->
    Me = self(),
    {P, M} = spawn_monitor(fun() ->
        X = Make(),
        erlang:garbage_collect(),
        Me ! {self(), ready},
        receive go -> ok end,
        R = Run(X),
        Me ! {self(), done},
        exit({result, R})
    end),
    receive {P, ready} -> ok; {'DOWN', M, _, _, R0} -> exit(R0) end,
    P ! go,
    begins(P, 200),
    receive after 5 -> ok end,
    First = erlang:garbage_collect(P),
    T = self(),
    _ = [spawn_link(fun() -> T ! {collected, erlang:garbage_collect(P)} end) || _ <- [1, 2, 3]],
    All = [receive {collected, Is} -> Is end || _ <- [1, 2, 3]],
    %% A native that was fast may be done, and its process gone.
    InTime = receive {P, done} -> late after 0 ->
        case lists:member(false, [First | All]) of true -> late; false -> in_time end
    end,
    receive {'DOWN', M, process, P, {result, R}} -> {InTime, R} end.

%% It has taken its message, and is at work. One that is done waits again.
begins(_, 0) -> ok;
begins(P, N) ->
    case process_info(P, [status, message_queue_len]) of
        [{status, waiting}, _] -> receive after 1 -> begins(P, N - 1) end;
        [_, {message_queue_len, 1}] -> receive after 1 -> begins(P, N - 1) end;
        _ -> ok
    end.
