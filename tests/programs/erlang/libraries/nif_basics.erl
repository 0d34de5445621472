%% Runs a native library of our own: conversion of terms, exceptions, resources, scheduled and dirty
%% calls. @nif basics @stress @shared @fence
-module(nif_basics).
-export([main/0]).
-compile([nowarn_unused_function]).
-on_load(load/0).

load() -> erlang:load_nif("../ebin/basics", []).

tell(_) -> erlang:nif_error(undef).
print(_) -> erlang:nif_error(undef).
print_short() -> erlang:nif_error(undef).
compare(_, _) -> erlang:nif_error(undef).
many(_) -> erlang:nif_error(undef).
reverse(_) -> erlang:nif_error(undef).
sub(_, _, _) -> erlang:nif_error(undef).
grow(_) -> erlang:nif_error(undef).
pairs(_) -> erlang:nif_error(undef).
map_of(_) -> erlang:nif_error(undef).
change(_, _, _) -> erlang:nif_error(undef).
raise(_) -> erlang:nif_error(undef).
pending(_) -> erlang:nif_error(undef).
atoms() -> erlang:nif_error(undef).
external(_) -> erlang:nif_error(undef).
decode(_) -> erlang:nif_error(undef).
make_thing(_) -> erlang:nif_error(undef).
number(_) -> erlang:nif_error(undef).
dynamic(_, _, _) -> erlang:nif_error(undef).
bytes_of(_) -> erlang:nif_error(undef).
watch(_, _, _) -> erlang:nif_error(undef).
count() -> erlang:nif_error(undef).
step(_, _) -> erlang:nif_error(undef).
fails_later(_) -> erlang:nif_error(undef).
many_later(_) -> erlang:nif_error(undef).
thread() -> erlang:nif_error(undef).
dirty_cpu() -> erlang:nif_error(undef).
dirty_io() -> erlang:nif_error(undef).
dirty_raise(_) -> erlang:nif_error(undef).
dirty_many(_) -> erlang:nif_error(undef).
bad_flags() -> erlang:nif_error(undef).
through_env(_) -> erlang:nif_error(undef).
times() -> erlang:nif_error(undef).
short_binaries(_) -> erlang:nif_error(undef).

show(What, F) ->
    R = try F() catch C:E:T -> {C, E, T} end,
    io:format("~0p: ~0p~n", [What, R]).

main() ->
    Big = binary:copy(<<"0123456789">>, 20),
    <<_:3, Crooked:80/bitstring, _/bitstring>> = Big,
    <<_:8, Part:100/binary, _/binary>> = Big,
    Terms = [0, -1, 17, 1 bsl 31 - 1, 1 bsl 31, -(1 bsl 31), -(1 bsl 31) - 1, 1 bsl 32 - 1, 1 bsl 32, 1 bsl 59, -(1 bsl 59) - 1, 1 bsl 63 - 1,
             1 bsl 63, -(1 bsl 63), -(1 bsl 63) - 1, 1 bsl 64 - 1, 1 bsl 64, 1.5, -0.0, ok, '', 'an atom', 'ÅÄÖ', 'ж', [], "abc", "abcde", "abcdef", [a | b],
             [1, 2, 300], {}, {a, "b", <<"c">>}, <<>>, <<1, 2, 3>>, <<1:3>>, Big, Part, Crooked, ["io", <<"list">>, [[$s] | <<"tail">>]],
             #{}, #{a => 1}, fun lists:map/2, fun(X) -> X end],
    [show({tell, case is_function(T) of true -> a_fun; false -> T end}, fun() -> tell(T) end) || T <- Terms],
    [show(print, fun() -> print(T) end) || T <- [a, "text", {1, 2.5, [b, c | d]}, <<"bin">>, #{k => v}, 1 bsl 70, []]],
    [show({short_binaries, T}, fun() -> short_binaries(T) end) || T <- [<<"bytes">>, Big, Crooked, ["io", <<"list">>], atom]],
    show(print_short, fun() -> print_short() end),
    [show({compare, A, B}, fun() -> compare(A, B) end)
     || {A, B} <- [{1, 1.0}, {1, 2}, {b, a}, {"x", "x"}, {Big, binary:copy(Big)}, {#{a => 1}, #{a => 1.0}}]],
    show(many, fun() -> erlang:phash2(many(20000)) end),
    show(many, fun() -> [erlang:phash2(many(I)) || I <- lists:seq(1, 100)] end),
    show(dirty_many, fun() -> erlang:phash2(dirty_many(20000)) end),
    show(many_later, fun() -> erlang:phash2(many_later(5000)) end),
    show(reverse, fun() -> {reverse([1, 2, 3]), reverse([])} end),
    show(reverse, fun() -> reverse([1 | 2]) end),
    show(sub, fun() -> {sub(Big, 3, 90), sub(<<"short">>, 1, 2), sub(Crooked, 1, 3)} end),
    show(grow, fun() -> grow(<<"begin ">>) end),
    show(grow, fun() -> grow(binary:part(Big, 0, 70)) end),
    Small = maps:from_list([{I, I * I} || I <- lists:seq(1, 20)]),
    Large = maps:from_list([{I, I * I} || I <- lists:seq(1, 500)]),
    show(pairs, fun() -> pairs(Small) end),
    show(pairs, fun() -> {F, B} = pairs(Large), {lists:sort(F) =:= lists:sort(maps:to_list(Large)), F =:= lists:reverse(B)} end),
    show(pairs, fun() -> {pairs(#{}), pairs(nomap)} end),
    show(map_of, fun() -> {map_of([]), map_of([{a, 1}, {b, 2}]), map_of([{a, 1}, {a, 2}])} end),
    show(map_of, fun() -> maps:size(map_of([{I, I} || I <- lists:seq(1, 90)])) end),
    [show(change, fun() -> change(M, K, new) end) || M <- [#{}, #{a => 1}, #{a => 1, b => 2}, nomap], K <- [a, c]],
    show(change, fun() -> erlang:phash2(change(Large, 77, new)) end),
    [show(raise, fun() -> F(R) end) || F <- [fun raise/1, fun pending/1, fun dirty_raise/1, fun fails_later/1], R <- [badarg, why, {a, "reason", <<"of">>}]],
    show(atoms, fun() -> atoms() end),
    [show(external, fun() -> external(T) end) || T <- [1, "abc", {a, Big}, #{a => [1.5]}, [a | b], 1 bsl 100]],
    [show(decode, fun() -> decode(B) end)
     || B <- [term_to_binary({ok, [1]}), <<131, 100, 0, 5, "xyzzy">>, <<>>, <<131>>, <<131, 97, 1, 99>>, term_to_binary(lists:seq(1, 1000), [compressed])]],
    show(step, fun() -> step(20, []) end),
    show(threads, fun() -> {thread(), dirty_cpu(), dirty_io()} end),
    show(bad_flags, fun() -> bad_flags() end),
    show(time, fun() -> times() end),
    Env = through_env({Big, Part, [<<"x">>, 1.5]}),
    show(env, fun() -> erlang:phash2(Env) end),
    show(env, fun() -> [receive M -> erlang:phash2(M) end || _ <- [1, 2, 3]] end),
    things(),
    show(nifs, fun() -> length(?MODULE:module_info(nifs)) end),
    show(again, fun() -> load() end),
    show(taints, fun() -> erlang:system_info(taints) end).

things() ->
    A = make_thing(1),
    show(thing, fun() -> {is_reference(A), number(A), number(binary_to_term(term_to_binary(A))) =:= number(A)} end),
    show(no_thing, fun() -> number(make_ref()) end),
    show(no_thing, fun() -> number(a) end),
    show(dynamic, fun() -> {dynamic(A, ?MODULE, thing), dynamic(A, ?MODULE, other), dynamic(A, other, thing), dynamic(a, ?MODULE, thing)} end),
    B = bytes_of(A),
    show(dynamic, fun() -> dynamic(B, ?MODULE, thing) end),
    show(bytes, fun() -> {B, bytes_of(A) =:= B, number(B)} end),
    B2 = element(2, spawn_and_wait(fun() -> B end)),
    show(bytes, fun() -> B2 =:= B end),
    %% What watches a process.
    P = spawn(fun() -> receive stop -> ok end end),
    show(watch, fun() -> {watch(A, P, ok), watch(A, P, no), element(2, process_info(P, monitored_by)) =:= [A]} end),
    P ! stop,
    show(down, fun() -> receive {down, 1, P} -> ok after 5000 -> late end end),
    show(dead, fun() -> {watch(A, P, ok), watch(A, self(), no)} end),
    %% What nobody refers to.
    Me = self(),
    spawn_link(fun() -> lists:foreach(fun(I) -> make_thing(100 + I) end, lists:seq(1, 50)), receive after 1 -> ok end,
                        erlang:garbage_collect(), Me ! {made, gone(50)} end),
    show(gone, fun() -> receive {made, L} -> lists:sort(L) end end),
    show(kept, fun() -> {number(A), count()} end).

gone(0) -> [];
gone(N) -> receive {gone, I} -> [I | gone(N - 1)] after 5000 -> [late] end.

spawn_and_wait(F) ->
    {P, R} = spawn_monitor(fun() -> exit({value, F()}) end),
    receive {'DOWN', R, process, P, V} -> V end.
