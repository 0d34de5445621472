%% Checks which key `{badkey, Key}` names if several keys of an update are missing: the first in the
%% order of keys of small maps, which differs between releases. The keys are preset atoms and other
%% terms.
-module(first_of_several_missing_keys).
-export([main/0]).

main() ->
    Large = maps:from_list([{K, K} || K <- lists:seq(1, 40)]),
    [io:format("~p~n", [updates(M)]) || M <- [#{}, #{normal => 1}, #{true => 1, "x" => 2}, Large, Large#{error => 1}]],
    io:format("~p~n", [maps:keys(id(#{error => 1, normal => 1, undefined => 1, true => 1, false => 1, ok => 1}))]),
    io:format("~p~n", [with_variables(#{}, id(normal), id(error))]).

updates(M) ->
    [key(F) || F <- [
        fun() -> M#{error := 1, normal := 2} end,
        fun() -> M#{normal := 1, error := 2} end,
        fun() -> M#{error := 1, normal := 2, undefined := 3, true := 4, false := 5} end,
        fun() -> M#{ok := 1, undefined := 2, error := 3} end,
        fun() -> M#{"b" := 1, error := 2, 101 := 3, {true} := 4} end,
        fun() -> M#{{true} := 1, [error] := 2, 1.5 := 3} end,
        fun() -> M#{{undefined, 1} := 1, {ok, 1} := 2, {error, 1} := 3} end,
        fun() -> M#{103 := 1, 101 := 2, 102 := 3} end,
        fun() -> M#{new => 1, undefined := 2, error := 3} end,
        fun() -> (M#{undefined := 1})#{error := 2} end
    ]].

with_variables(M, A, B) ->
    [key(F) || F <- [
        fun() -> M#{A := 1, B := 2} end,
        fun() -> M#{B := 1, A := 2} end,
        fun() -> M#{B := 1, undefined := 2} end,
        fun() -> M#{undefined := 1, true := 2, B := 3} end
    ]].

key(F) -> try F() catch error:{badkey, K} -> K end.
id(X) -> X.
