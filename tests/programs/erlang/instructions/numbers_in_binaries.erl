%% Writes numbers into binaries: all sizes of whole bytes and some others, both byte orders, values
%% that fit, do not fit, or are no numbers; floats of all sizes from floats, integers and other
%% terms; alone, after other segments, and appended. @stress @fence
-module(numbers_in_binaries).
-export([main/0]).

%% A module with a function for each kind of segment: compiled sizes, and those of a variable.
source() ->
    Integers = [{"i", S, E, Sign} || S <- [8, 16, 24, 32, 40, 48, 56, 64, 72, 12, 33, 128], E <- ["big", "little", "native"], Sign <- ["signed", "unsigned"]],
    Floats = [{"f", S, E, "float"} || S <- [16, 32, 64], E <- ["big", "little", "native"]],
    Kinds = Integers ++ Floats,
    Named = lists:zip(lists:seq(1, length(Kinds)), Kinds),
    Type = fun({_, _, E, "float"}) -> ["float-", E]; ({_, _, E, Sign}) -> ["integer-", E, "-", Sign] end,
    Fs = [begin
        T = Type(K), S = integer_to_list(element(2, K)), I = integer_to_list(N),
        ["one(", I, ", V, _) -> <<V:", S, "/", T, ">>;\n",
         "one(-", I, ", V, B) -> <<B/binary, V:", S, "/", T, ", 7>>;\n",
         "one({", I, "}, V, B) -> <<1:16, V:", S, "/", T, ", B/binary, V:", S, "/", T, ">>;\n"]
    end || {N, K} <- Named],
    Vs = [begin
        T = Type(K), I = integer_to_list(N),
        ["sized(", I, ", V, S) -> <<3, V:S/", T, ", 5>>;\n"]
    end || {N, K} <- Named],
    {["-module(r_written_numbers_code).\n-export([one/3, sized/3, count/0]).\n",
      Fs, "one(_, _, _) -> none.\n", Vs, "sized(_, _, _) -> none.\n",
      "count() -> ", integer_to_list(length(Kinds)), ".\n"], length(Kinds)}.

forms(Text) ->
    {ok, Ts, _} = erl_scan:string(lists:flatten(Text)),
    forms(Ts, [], []).
forms([], [], Fs) -> lists:reverse(Fs);
forms([{dot, _} = D | Ts], Acc, Fs) ->
    {ok, F} = erl_parse:parse_form(lists:reverse([D | Acc])),
    forms(Ts, [], [F | Fs]);
forms([T | Ts], Acc, Fs) -> forms(Ts, [T | Acc], Fs).

values() ->
    [0, 1, -1, 127, 255, -256, 16#1234, 16#123456, -16#123456789A, 1 bsl 58, (1 bsl 59) - 1, -(1 bsl 59), 1 bsl 59, 1 bsl 64, -(1 bsl 64) - 3, 1 bsl 130,
     0.0, -0.0, 1.5, -3.25, 65504.0, 1.0e5, 1.0e39, 1.0e300, 4.9e-324, 0.1, 1 bsl 1100, a, <<"b">>, [], {1}].

try_it(F) -> try F() catch C:E -> {C, E} end.

%% Sizes of which a machine word holds no product with the unit.
wide(V, S) -> [try_it(fun() -> <<V:S/float-unit:64>> end), try_it(fun() -> <<1, V:S/float-little-unit:32, 2>> end), try_it(fun() -> <<V:S/integer-unit:64>> end)].

main() ->
    io:format("~p~n", [[wide(V, S) || V <- [1.5, 3], S <- [0, 1, 2, -1, (1 bsl 58) + 1, 1 bsl 58, (1 bsl 59) - 1, -(1 bsl 59), 1 bsl 64]]]),
    {Text, N} = source(),
    {ok, M, Bin} = compile:forms(forms(Text), []),
    {module, M} = code:load_binary(M, "none", Bin),
    Of = fun(X) -> [try_it(fun() -> M:one(K, V, X) end) || I <- lists:seq(1, N), K <- [I, -I, {I}], V <- values()] end,
    Sized = fun() -> [try_it(fun() -> M:sized(I, V, S) end) || I <- lists:seq(1, N), V <- values(), S <- [0, 8, 16, 24, 32, 64, 65, 80, -8, a]] end,
    %% Often enough that it has machine code; every round is the same.
    Rounds = [erlang:phash2([Of(B), Sized()], 1 bsl 32) || B <- [<<>>, <<"xy">>, <<"xy">>, binary:copy(<<"a long one ">>, 20), <<>>]],
    io:format("~p~n", [Rounds]),
    [io:format("~p: ~p~n", [K, [try_it(fun() -> M:one(K, V, <<"e">>) end) || V <- values()]]) || I <- lists:seq(1, N), K <- [I, {I}]],
    %% In a loop, appended.
    L = lists:foldl(fun(I, A) -> <<A/binary, I:32/little, (I / 7):64/float, (I * 1.0):32/float-little, (-I):24/little-signed>> end, <<>>, lists:seq(1, 20000)),
    io:format("~p ~p~n", [byte_size(L), erlang:phash2(L)]),
    ok.
