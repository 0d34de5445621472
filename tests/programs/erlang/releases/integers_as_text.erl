%% Converts text to integers: signs, leading zeros, bases, trailing characters, and more digits than
%% an integer may have, which each release rejects in its own way.
%% @stress @shared @fence @seconds 240
-module(integers_as_text).
-export([main/0, id/1]).

id(X) -> X.

%% Short results as they are, long ones by their hash.
seen(F) ->
    case try F() catch C:R -> {C, R} end of
        {N, Rest} when is_integer(N), is_list(Rest), length(Rest) > 60 -> {short(N), length(Rest), erlang:phash2(Rest)};
        {N, Rest} when is_integer(N) -> {short(N), Rest};
        {error, {M, _}} when is_atom(M) -> {error, M};
        Other -> short(Other)
    end.

short(N) when is_integer(N), abs(N) >= 1 bsl 128 -> {hash, erlang:phash2(N)};
short(X) -> X.

texts() ->
    ["", "+", "-", "+-1", "--1", "0", "-0", "+0", "000", "00012", "-0007x", "1 2", "12.5", "x", " 1", "7" | texts(40)] ++
    [[Z | D] || Z <- [$-, $+, $0], D <- texts(25)] ++
    [lists:duplicate(100, $0) ++ "1", lists:duplicate(100, $0), "-" ++ lists:duplicate(100, $0) ++ lists:duplicate(80, $9) ++ "tail"].

texts(N) -> [T || I <- [1, 10, 16, 17, 18, 19, 20, 21, N], D <- [lists:duplicate(I, $9)], T <- [D, D ++ "z", D ++ [$., $0], D ++ [300]]].

main() ->
    Ts = texts(),
    [io:format("~w ~w ~w~n", [seen(fun() -> list_to_integer(T) end), seen(fun() -> string:to_integer(T) end), seen(fun() -> binary(T) end)]) || T <- Ts],
    io:format("~w~n", [erlang:phash2([[seen(fun() -> list_to_integer(T, B) end), seen(fun() -> binary(T, B) end)] || B <- [2, 3, 8, 10, 16, 35, 36, 1, 37, a], T <- Ts])]),
    [io:format("~w ~w~n", [T, seen(fun() -> string:to_integer(T) end)]) || T <- [<<"12ab">>, <<"-">>, <<"99999999999999999999999x">>, ["1", <<"2">>, "x"], x, [x], "1" ++ x, ["9" | <<"999999999999999999999">>]]],
    [io:format("~w~n", [seen(fun() -> list_to_integer(T) end)]) || T <- [x, [x], "12" ++ x, [$1, x], "999999999999999999999999" ++ x, ["1"]]],
    [io:format("~w~n", [seen(fun() -> binary_to_integer(T) end)]) || T <- [x, [], <<>>, <<1:3>>, <<"12", 1:3>>, binary:part(<<"x123456x">>, 1, 6)]],
    Erlang = erlang:function_exported(erts_internal, list_to_integer, 2),
    internal(Erlang),
    %% Where the emulator itself makes them stock takes minutes.
    Erlang andalso large().

binary(T) -> binary_to_integer(iolist_to_binary(T)).
binary(T, B) -> binary_to_integer(iolist_to_binary(T), B).

%% What Erlang's code makes the numbers with since OTP 26. Where it may answer with a number it need
%% not say that it is a large one.
internal(false) -> ok;
internal(true) ->
    L = fun(T, B) -> apply(id(erts_internal), list_to_integer, [T, B]) end,
    R = fun(T, B) -> apply(id(erts_internal), binary_to_integer, [T, B]) end,
    9 = length([io:format("~w~n", [seen(fun() -> L(T, B) end)]) || {T, B} <- [{"", 10}, {"", 99}, {x, 10}, {x, 99}, {"1", 99}, {"1", a}, {"z", 10}, {"-12z", 10}, {lists:duplicate(5000000, $9), 10}]]),
    8 = length([io:format("~w~n", [seen(fun() -> R(T, B) end)]) || {T, B} <- [{<<>>, 10}, {x, 10}, {<<"1">>, 99}, {<<"12z">>, 10}, {<<"-12">>, 10}, {<<"1:">>, 10}, {binary:copy(<<"z">>, 100), 10}, {binary:copy(<<"9">>, 5000000), 10}]]),
    ok.

%% About as many digits as an integer may have, and more.
large() ->
    Many = 11000000,
    D = binary:copy(<<"9">>, Many),
    [io:format("~w ~w~n", [seen(fun() -> binary_to_integer(T) end), seen(fun() -> binary_to_integer(T, 16) end)]) || T <- [D, <<D/binary, "z">>, <<"-", D/binary>>]],
    List = binary_to_list(D),
    [io:format("~w ~w~n", [seen(fun() -> list_to_integer(T) end), seen(fun() -> list_to_integer(T, 16) end)]) || T <- [List, [$- | List], List ++ "z"]],
    %% OTP 25 raises what later releases return.
    io:format("~w ~w~n", [seen(fun() -> string:to_integer(List ++ "z") end), seen(fun() -> string:to_integer(D) end)]),
    ok.
