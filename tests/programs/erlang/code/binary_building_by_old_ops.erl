%% Hand-made code begins a binary with the ops of OTP 24, forces a collection, and goes on writing
%% to the freed binary. Purlin must refuse the code. Stock loads it and writes to freed memory, so
%% it is not run on stock.
-module(binary_building_by_old_ops).
-export([main/0]).

main() ->
    Put = fun(X) -> {bs_put_integer, {f, 0}, {integer, 64}, 1, {field_flags, [unsigned, big]}, {x, X}} end,
    Begin = {bs_init2, {f, 0}, 16, 0, 2, {field_flags, []}, {x, 2}},
    logger:set_primary_config(level, none),
    io:format("~w~n", [run(hb_m1, [Begin, Put(0), Put(1)])]),
    case catch purlin:sharing() of
        #{} -> io:format("~w ~w~n", [run(hb_m2, [Begin, {test_heap, 100000, 3}, Put(0), Put(1)]),
                                     run(hb_m3, [{move, {x, 0}, {x, 2}}, Put(0)])]);
        _ -> io:format("refused refused~n")
    end.

run(M, Is) ->
    Code = {M, [{f, 2}], [],
            [{function, f, 2, 2,
              [{label, 1}, {func_info, {atom, M}, {atom, f}, 2}, {label, 2}]
              ++ Is ++ [{move, {x, 2}, {x, 0}}, return]}], 3},
    {ok, Bin} = beam_asm:module(Code, [], [], []),
    case code:load_binary(M, "m", Bin) of
        {module, _} -> M:f(-1, -1);
        {error, _} -> refused
    end.
