%% Uses the library of `rustled.rs`; `scripts/nif_rustler.sh` compares what it prints on both
%% runtimes.
-module(rustled).
-export([main/0]).
-export([add/2, fail/1, panics/0, make/0, bump/2, reverse/1, words/1, floats/1, slow/1, slow_panics/0, later/0, kinds/1, external_size/1]).
-nifs([add/2, fail/1, panics/0, make/0, bump/2, reverse/1, words/1, floats/1, slow/1, slow_panics/0, later/0, kinds/1, external_size/1]).

add(_, _) -> erlang:nif_error(stub).
fail(_) -> erlang:nif_error(stub).
panics() -> erlang:nif_error(stub).
make() -> erlang:nif_error(stub).
bump(_, _) -> erlang:nif_error(stub).
reverse(_) -> erlang:nif_error(stub).
words(_) -> erlang:nif_error(stub).
floats(_) -> erlang:nif_error(stub).
slow(_) -> erlang:nif_error(stub).
slow_panics() -> erlang:nif_error(stub).
later() -> erlang:nif_error(stub).
kinds(_) -> erlang:nif_error(stub).
external_size(_) -> erlang:nif_error(stub).

show(What, F) ->
    R = try F() catch C:E:T -> {C, E, element(1, hd(T)), element(2, hd(T))} end,
    io:format("~p: ~tp~n", [What, R]).

next() -> receive M -> M after 60000 -> late end.

%% What each of several processes comes to.
each(N, F) ->
    Ps = [spawn_monitor(fun() -> exit(F(I)) end) || I <- lists:seq(1, N)],
    [receive {'DOWN', R, process, P, Why} -> Why end || {P, R} <- Ps].

main() ->
    show(load, fun() -> erlang:load_nif("./rustled", 0) end),
    show(add, fun() -> {add(1, 2), add(1 bsl 62, (1 bsl 62) - 1)} end),
    show(no_number, fun() -> add(1, x) end),
    show(too_large, fun() -> add(1 bsl 63, 0) end),
    show(fail, fun() -> fail({a, "b", <<"c">>, 1.5, #{k => [1, 2 | 3]}}) end),
    show(panics, fun() -> panics() end),
    show(panics, fun() -> each(8, fun(_) -> try panics() catch error:E -> E end end) end),
    show(slow_panics, fun() -> slow_panics() end),
    show(resource, fun() -> C = make(), {bump(C, 5), bump(C, 6), is_reference(C)} end),
    show(no_resource, fun() -> bump(make_ref(), 1) end),
    erlang:garbage_collect(),
    show(ended, fun() -> next() end),
    show(resources, fun() ->
        each(8, fun(N) -> [bump(make(), N * 1000 + I) || I <- lists:seq(1, 100)], erlang:garbage_collect(),
                          lists:sum([element(2, next()) || _ <- lists:seq(1, 100)]) end) end),
    show(reverse, fun() -> {reverse(<<"abc">>), erlang:md5(reverse(binary:copy(<<1, 2, 3>>, 100000))), reverse(<<>>)} end),
    show(no_binary, fun() -> reverse(<<1:3>>) end),
    show(words, fun() -> words(<<"a b a c ü"/utf8>>) end),
    show(no_text, fun() -> words(<<255>>) end),
    show(floats, fun() -> floats([1.5, 2.25, -1.0e10]) end),
    show(no_floats, fun() -> floats([1.5, x]) end),
    show(slow, fun() -> [slow(1000000) | each(20, fun(N) -> slow(N) end)] end),
    show(later, fun() -> {later(), next()} end),
    show(later, fun() -> [later() || _ <- lists:seq(1, 100)], lists:usort([next() || _ <- lists:seq(1, 100)]) end),
    show(kinds, fun() -> kinds([a, 1, 1 bsl 80, 1.5, <<"b">>, [1], [], {}, #{}, self(), make_ref(), fun() -> ok end]) end),
    show(external, fun() -> {external_size({a, [1, 2, 3], lists:seq(1, 1000)}), external_size(binary:copy(<<"x">>, 10000))} end),
    halt().
