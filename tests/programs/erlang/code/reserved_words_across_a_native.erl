%% Hand-made code reserves heap words, calls a native that makes a term without declaring a
%% collection, and then uses the words. A loader that accepts the code must keep the words.
-module(reserved_words_across_a_native).
-export([main/0]).

main() ->
    Code = {hr_m, [{f, 3}], [],
            [{function, f, 3, 2,
              [{label, 1}, {func_info, {atom, hr_m}, {atom, f}, 3},
               {label, 2},
               {test_heap, 2, 3},
               {bif, '+', {f, 0}, [{x, 0}, {integer, 1}], {x, 2}},
               {put_list, {x, 1}, {x, 1}, {x, 1}},
               {move, {x, 1}, {x, 0}},
               return]}], 3},
    {ok, Bin} = beam_asm:module(Code, [], [], []),
    logger:set_primary_config(level, none),
    case code:load_binary(hr_m, "hr_m", Bin) of
        {module, _} ->
            Rs = [spawn_monitor(fun() -> deep(1 bsl 70, K, 2000) end) || K <- lists:seq(1, 50)],
            [receive {'DOWN', R, _, _, normal} -> ok end || {_, R} <- Rs];
        {error, _} ->
            refused
    end,
    io:format("ok~n").

deep(_, _, 0) ->
    0;
deep(B, K, N) ->
    X = {K, N},
    L = lists:seq(1, N rem 7),
    [X | X] = hr_m:f(B, X, L),
    1 + deep(B, K, N - 1).
