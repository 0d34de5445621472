%% Checks extreme operands: the least small integer, huge integer fields, numbers of segments, and
%% argument lists longer than any function's.
-module(instruction_limits).
-export([main/0, id/1]).

main() ->
    Min = id(-(1 bsl 59)),
    Zero = id(0),
    io:format("~p~n", [[Zero - Min, 0 - Min, -Min, Min - 1, apply(erlang, '-', [0, Min]), Min * -1, Min div -1]]),
    io:format("~p~n", [[A - B || A <- edges(), B <- edges()]]),
    Big = binary:copy(<<255>>, 5000000),
    Size = bit_size(Big),
    io:format("~p~n", [case Big of <<_:Size>> -> skipped; _ -> no end]),
    io:format("~p~n", [case Big of <<X:Size>> -> X; _ -> no_match end]),
    Atom = id(atom), Bin = id(<<"abc">>), Minus = id(-1),
    show(fun() -> <<1:32, "xyz", Bin/binary, Atom/binary>> end),
    show(fun() -> <<"xyz", Bin/binary, 1:Minus>> end),
    show(fun() -> <<1:32, 2:16, Atom:32>> end),
    Long = lists:duplicate(5000, x),
    [io:format("~p~n", [try F() catch C:R -> {C, R} end])
     || F <- [fun() -> apply(x, y, Long) end,
              fun() -> apply(x, y, [a | b]) end,
              fun() -> erlang:hibernate(x, y, Long) end,
              fun() -> erlang:hibernate(x, 1, Long) end,
              fun() -> process_flag(max_heap_size, 100) end,
              fun() -> process_flag(scheduler, -1) end,
              fun() -> binary_to_term(<<131, 103, 100, 0, 3, "a@b", 0, 0, 0, 1, 0, 0, 0, 1, 4>>) end]],
    io:format("~p~n", [[process_flag(scheduler, 1), process_flag(scheduler, 0)]]).

edges() ->
    [id(N) || N <- [-(1 bsl 59), -(1 bsl 59) + 1, -1, 0, 1, (1 bsl 59) - 1, 1 bsl 59]].

show(F) ->
    try F() of
        V -> io:format("~p~n", [V])
    catch
        error:R:Trace ->
            {_, _, _, Info} = hd(Trace),
            #{cause := Cause} = proplists:get_value(error_info, Info),
            io:format("~p ~p~n", [R, Cause])
    end.

id(X) -> X.
