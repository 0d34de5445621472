%% Checks module zstd (OTP 28): compression at once and in streams, parameters, dictionaries,
%% headers, invalid arguments. Earlier releases do not have it. @stress @shared @seconds 240
-module(zstd_compression).
-export([main/0]).

main() ->
    case code:ensure_loaded(zstd) of
        {module, _} -> [io:format("~w: ~p~n", [F, try t(F) catch C:R -> {C, R} end]) || F <- [back, levels, streamed, flushed, parts, parameters, wrong, dictionaries,
                                                                                          headers, damaged, owner, closed, reset, pledged, many, dropped]];
        {error, _} -> io:format("no zstd~n")
    end.

-define(try_(E), (try E catch C__:R__ -> {C__, R__} end)).

data() -> [<<>>, <<"a">>, binary:copy(<<"abc">>, 1000), iolist_to_binary([integer_to_list(I * I) || I <- lists:seq(1, 40000)]), << <<(I * 7919 bsr 3)>> || I <- lists:seq(1, 5000) >>].
sum(B) -> {iolist_size(B), erlang:crc32(B)}.
ctx(K) -> {ok, C} = zstd:context(K), C.
ctx(K, O) -> {ok, C} = zstd:context(K, O), C.

t(back) -> [{sum(D), iolist_to_binary(zstd:decompress(zstd:compress(D))) =:= D, length(zstd:compress(D)), sum(zstd:compress(D))} || D <- data()];
t(levels) -> [{L, sum(zstd:compress(lists:nth(4, data()), #{compressionLevel => L}))} || L <- [-5, 1, 3, 7]]
    ++ [sum(zstd:compress(lists:nth(3, data()), O)) || O <- [#{strategy => lazy}, #{checksumFlag => true}, #{contentSizeFlag => false}, #{windowLog => 12, hashLog => 8}]];
t(streamed) ->
    C = ctx(compress),
    {continue, A} = zstd:stream(C, <<"hello ">>),
    {continue, B} = zstd:stream(C, ["wor", <<"ld">>]),
    {continue, B2} = zstd:stream(C, B),
    {done, E} = zstd:finish(C, "!"),
    D = ctx(decompress),
    {A, B2, E, zstd:decompress([A, B2, E]), zstd:stream(D, iolist_to_binary([A, B2, E])), zstd:finish(D, <<>>)};
t(flushed) ->
    C = ctx(compress),
    {continue, A} = zstd:stream(C, <<"some text">>),
    F = case erlang:function_exported(zstd, flush, 1) of true -> zstd:flush(C); false -> none end,
    {A, F, zstd:finish(C, <<>>), element(1, ?try_(zstd:flush(ctx(decompress))))};
t(parts) ->
    D = lists:nth(4, data()),
    Z = iolist_to_binary(zstd:compress(D)),
    C = ctx(decompress),
    Ps = [binary:part(Z, I, min(1000, byte_size(Z) - I)) || I <- lists:seq(0, byte_size(Z) - 1, 1000)],
    Out = parts(C, Ps, []),
    {length(Ps), iolist_to_binary(Out) =:= D, iolist_to_binary(zstd:decompress([Z, Z])) =:= <<D/binary, D/binary>>, sum(zstd:decompress(Ps))};
t(parameters) ->
    C = ctx(compress, #{compressionLevel => 5, strategy => btopt, checksumFlag => true, windowLog => 15}),
    D = ctx(decompress, #{windowLogMax => 20}),
    [{K, ?try_(zstd:get_parameter(C, K))} || K <- [compressionLevel, strategy, checksumFlag, dictIDFlag, contentSizeFlag, windowLog, hashLog, targetCBlockSize, ldmHashLog, nope]]
        ++ [?try_(zstd:get_parameter(D, K)) || K <- [windowLogMax, nope, 1]] ++ [?try_(zstd:get_parameter(x, y))];
t(wrong) ->
    {C, D} = {ctx(compress), ctx(decompress)},
    [?try_(zstd:set_parameter(C, K, V)) || {K, V} <- [{nope, 1}, {compressionLevel, a}, {compressionLevel, 1000}, {windowLog, 99}, {strategy, slow}, {checksumFlag, 1}, {dictionary, 1},
        {pledgedSrcSize, -1}, {pledgedSrcSize, 1 bsl 64}, {pledgedSrcSize, a}, {dictionary, {cdict, make_ref()}}, {1, 1}, {compressionLevel, 1 bsl 40}]]
        ++ [?try_(zstd:set_parameter(D, K, V)) || {K, V} <- [{nope, 1}, {windowLogMax, a}, {windowLogMax, 99}, {dictionary, a}, {dictionary, {ddict, make_ref()}}, {windowLogMax, 1 bsl 40}]]
        ++ [?try_(zstd:stream(X, Y)) || {X, Y} <- [{C, a}, {C, [a]}, {{compress, make_ref()}, <<>>}, {D, a}, {C, <<1:3>>}]] ++ [?try_(zstd:compress(a)), ?try_(zstd:compress([], #{a => 1})),
        ?try_(zstd:context(foo)), ?try_(zstd:decompress([]))];
t(dictionaries) ->
    Dict = iolist_to_binary([["item ", integer_to_list(I), " of the list; "] || I <- lists:seq(1, 200)]),
    {ok, CD} = zstd:dict(compress, Dict),
    {ok, CD9} = zstd:dict(compress, Dict, #{compressionLevel => 9}),
    {ok, DD} = zstd:dict(decompress, Dict),
    Text = <<"item 17 of the list; item 18 of the list; item 190 of the list">>,
    Zs = [iolist_to_binary(zstd:compress(Text, #{dictionary => X})) || X <- [CD, CD9, Dict]],
    {[sum(Z) || Z <- Zs], [iolist_to_binary(zstd:decompress(Z, #{dictionary => X})) || Z <- Zs, X <- [DD, Dict]], [?try_(zstd:decompress(Z)) || Z <- Zs],
     [?try_(zstd:get_dict_id(X)) || X <- [CD, DD, Dict, hd(Zs), a, {cdict, make_ref()}]], ?try_(zstd:dict(compress, a)), element(1, ?try_(zstd:dict(compress, <<>>))), ?try_(zstd:dict(decompress, [])),
     ?try_(zstd:dict(compress, Dict, #{compressionLevel => a}))};
t(headers) ->
    [?try_(zstd:get_frame_header(H)) || H <- [zstd:compress(binary:copy(<<"x">>, 3000)), zstd:compress("abc", #{checksumFlag => true}), zstd:compress("abc", #{contentSizeFlag => false}),
        <<"nothing of the kind">>, <<16#184D2A50:32/little, 4:32/little, "abcd">>, a]];
t(damaged) ->
    Z = iolist_to_binary(zstd:compress(lists:nth(3, data()))),
    {H, <<X, T/binary>>} = split_binary(Z, byte_size(Z) div 2),
    [?try_(sum(zstd:decompress(B))) || B <- [<<"no such data, sure">>, <<H/binary, (X bxor 255), T/binary>>, H, <<Z/binary, "behind">>, <<>>]];
t(owner) ->
    C = ctx(compress),
    Me = self(),
    spawn_link(fun() -> Me ! {got, [?try_(F()) || F <- [fun() -> zstd:stream(C, <<"a">>) end, fun() -> zstd:set_parameter(C, compressionLevel, 1) end, fun() -> zstd:close(C) end, fun() -> zstd:reset(C) end]]} end),
    {receive {got, X} -> X end, zstd:finish(C, <<"still here">>)};
t(closed) ->
    {C, D} = {ctx(compress), ctx(decompress)},
    {zstd:close(C), zstd:close(D), ?try_(zstd:close(C)), ?try_(zstd:stream(C, <<"a">>)), ?try_(zstd:stream(D, <<"a">>)), ?try_(zstd:reset(C)), ?try_(zstd:get_parameter(C, windowLog))};
t(reset) ->
    C = ctx(compress, #{compressionLevel => 7}),
    zstd:stream(C, <<"forgotten">>),
    ok = zstd:reset(C),
    {done, Z} = zstd:finish(C, <<"kept">>),
    {zstd:decompress(Z), zstd:get_parameter(C, compressionLevel)};
t(pledged) ->
    C = ctx(compress),
    ok = zstd:set_parameter(C, pledgedSrcSize, 10),
    [?try_(zstd:finish(C, <<"not ten">>)), ?try_(zstd:finish(C, <<"again">>))];
t(many) ->
    Ps = [spawn_monitor(fun() -> D = binary:copy(<<I>>, 200000 + I), D = iolist_to_binary(zstd:decompress(zstd:compress([D]))), exit(ok) end) || I <- lists:seq(1, 8)],
    [receive {'DOWN', R, _, _, W} -> W end || {_, R} <- Ps];
t(dropped) ->
    [begin ctx(compress), {ok, D} = zstd:dict(compress, <<"abc">>), C = ctx(compress, #{dictionary => D}), zstd:stream(C, <<"x">>) end || _ <- lists:seq(1, 20)],
    erlang:garbage_collect().

parts(_, [], Acc) -> lists:reverse(Acc);
parts(C, [P | Ps], Acc) ->
    case zstd:stream(C, P) of
        {continue, Rest, Out} -> parts(C, [Rest | Ps], [Out | Acc]);
        {continue, Out} -> parts(C, Ps, [Out | Acc])
    end.
