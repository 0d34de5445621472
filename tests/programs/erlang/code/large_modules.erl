%% Modules with more operands per instruction than 16 bits can count load, run and fail like others.
%% The program also makes tuples larger than those of `make_tuple/2`.
-module(large_modules).
-export([main/0]).

main() ->
    io:format("~p~n", [binary(14000)]),
    io:format("~p~n", [[map(K, 33000) || K <- [map_field_assoc, map_field_exact]]]),
    io:format("~p~n", [fields(70000)]),
    io:format("~p~n", [elements(33000)]),
    io:format("~p~n", [select(70000)]),
    io:format("~p~n", [tuples((1 bsl 24) - 1)]).

%% More than 13,107 segments.
binary(N) ->
    V = fun(I) -> {var, 1, lists:nth(I rem 3 + 1, ['A', 'B', 'C'])} end,
    Segment = fun(I) -> {bin_element, 1, V(I), {integer, 1, 8 + I rem 9}, default} end,
    load([{tuple, 1, [V(0), V(1), V(2)]}], {bin, 1, [Segment(I) || I <- lists:seq(1, N)]}),
    B = large:f({1, 2, 3}),
    {bit_size(B), erlang:phash2(B), catch_reason(fun() -> large:f({1, x, 3}) end)}.

%% More than 32,767 pairs.
map(Kind, N) ->
    Pairs = [{Kind, 1, {integer, 1, I}, {integer, 1, I + 1}} || I <- lists:seq(1, N)],
    load([{var, 1, 'M'}], {map, 1, {var, 1, 'M'}, Pairs}),
    Full = maps:from_list([{I, I} || I <- lists:seq(1, N)]),
    M = large:f(Full),
    {map_size(M), lists:all(fun(I) -> maps:get(I, M) =:= I + 1 end, lists:seq(1, N)),
     [catch_reason(fun() -> map_size(large:f(Bad)) end) || Bad <- [#{}, maps:remove(N - 1, Full), none]]}.

%% More than 65,535 keys that are looked for.
fields(N) ->
    assemble(N + 1, [{test, has_map_fields, {f, 3}, {x, 0}, {list, [{integer, I} || I <- lists:seq(1, N)]}},
                     {move, {atom, true}, {x, 0}}, return, {label, 3}, {move, {atom, false}, {x, 0}}, return]),
    Full = maps:from_list([{I, I} || I <- lists:seq(1, N)]),
    [large:f(M) || M <- [Full, #{}, maps:remove(N, Full), maps:remove(1, Full)]].

%% More than 32,767 that are read.
elements(N) ->
    Pairs = [[{integer, I}, {x, 1 + I rem 200}] || I <- lists:seq(1, N)],
    assemble(N + 1, [{get_map_elements, {f, 3}, {x, 0}, {list, lists:append(Pairs)}},
                     {move, {x, 1 + N rem 200}, {x, 0}}, return, {label, 3}, {move, {atom, false}, {x, 0}}, return]),
    Full = maps:from_list([{I, I} || I <- lists:seq(1, N)]),
    [large:f(M) || M <- [Full, #{}, maps:remove(N, Full)]].

select(N) ->
    assemble(2 * N + 3, [{select_val, {x, 0}, {f, 3}, {list, lists:append([[{integer, 3 * I}, {f, 3 + I}] || I <- lists:seq(1, N)])}},
                     {label, 3}, {move, {atom, none}, {x, 0}}, return |
                     lists:append([[{label, 3 + I}, {move, {integer, I}, {x, 0}}, return] || I <- lists:seq(1, N)])]),
    {[large:f(X) || X <- [0, 1, 3, 3 * N, 3 * N + 1, a]], lists:all(fun(I) -> large:f(3 * I) =:= I end, lists:seq(1, N))}.

tuples(Max) ->
    T1 = erlang:insert_element(1, erlang:make_tuple(Max, a), b),
    T2 = erlang:insert_element(Max + 2, T1, c),
    Fail = [catch_reason(F) || F <- [fun() -> erlang:append_element(T2, b) end, fun() -> erlang:make_tuple(Max + 1, a) end]],
    {tuple_size(T1), tuple_size(T2), {element(1, T2), element(2, T2), element(Max + 2, T2)}, Fail}.

load(Args, Body) ->
    Forms = [{attribute, 1, module, large}, {attribute, 1, export, [{f, 1}]}, {function, 1, f, 1, [{clause, 1, Args, [], [Body]}]}],
    Quick = [no_copt, no_bopt, no_ssa_opt, no_bsm_opt, no_fun_opt, no_stack_trimming, no_postopt, no_type_opt, no_recv_opt, no_bool_opt, no_share_opt],
    {ok, large, Bin} = compile:forms(Forms, Quick),
    code:purge(large),
    {module, large} = code:load_binary(large, "large.beam", Bin).

assemble(Labels, Body) ->
    F = {function, f, 1, 2, [{label, 1}, {func_info, {atom, large}, {atom, f}, 1}, {label, 2} | Body]},
    {ok, Bin} = beam_asm:module({large, [{f, 1}], [], [F], Labels + 3}, [], [], []),
    code:purge(large),
    {module, large} = code:load_binary(large, "large.beam", Bin).

catch_reason(F) ->
    try {value, F()} catch C:R -> {C, case R of {badmap, _} -> badmap; _ -> R end} end.
