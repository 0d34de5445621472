%% Collections move long tuples: rows of immediates with lists, tuples and binaries between them and
%% at both ends. The program also makes long lists from a dictionary, and measures terms that share
%% parts. @stress @shared @fence @seconds 120
-module(long_tuples_moved).
-export([main/0]).

main() ->
    [io:format("~w ~w~n", [N, try moved(N) catch C:R:S -> {C, R, S} end]) || N <- [0, 1, 7, 8, 9, 31, 32, 33, 34, 39, 40, 41, 63, 64, 65, 100, 1000, 5000]],
    io:format("~w~n", [promoted()]),
    io:format("~w~n", [made()]),
    io:format("~w~n", [dictionary()]),
    io:format("~w~n", [shared()]).

%% Each place in turn has something else; and all of them.
moved(N) ->
    Kinds = [fun(I) -> lists:seq(I, I + 5) end,
             fun(I) -> [I] end,
             fun(I) -> [{I}, I | I] end,
             fun(I) -> {I, [a, b]} end,
             fun(I) -> integer_to_binary(I * 1000000007) end,
             fun(I) -> #{I => [I]} end,
             fun(I) -> I * 1.5 end,
             fun(I) -> fun() -> I end end],
    Places = lists:usort([P || P <- [1, 2, 7, 8, 9, 16, 17, N div 2, N - 8, N - 7, N - 1, N], P >= 1, P =< N]),
    Ts = [{K, P, setelement(P, erlang:make_tuple(N, x), K(P))} || K <- Kinds, P <- Places]
        ++ [{K, all, list_to_tuple([K(I) || I <- lists:seq(1, N)])} || K <- Kinds],
    erlang:garbage_collect(self(), [{type, minor}]),
    Ts1 = [begin garbage(I), T end || {I, T} <- lists:zip(lists:seq(1, length(Ts)), Ts)],
    erlang:garbage_collect(),
    length([ok = check(K, P, N, T) || {K, P, T} <- Ts1]).

garbage(I) -> [{I, X} || X <- lists:seq(1, 20)].

check(K, all, N, T) ->
    [true = same(K(I), element(I, T)) || I <- lists:seq(1, N)],
    N = tuple_size(T),
    ok;
check(K, P, N, T) ->
    true = same(K(P), element(P, T)),
    true = lists:all(fun(x) -> true; (_) -> false end, tuple_to_list(erlang:delete_element(P, T))),
    N = tuple_size(T),
    ok.

same(A, B) when is_function(A) -> A() =:= B();
same(A, B) -> A =:= B.

%% A long tuple that grows old refers to what is young again and again.
promoted() ->
    T = lists:foldl(fun(I, T) ->
                            T1 = setelement(I rem 300 + 1, T, [I, {I} | I]),
                            I rem 40 =:= 0 andalso erlang:garbage_collect(self(), [{type, case I rem 80 of 0 -> major; _ -> minor end}]),
                            T1
                    end, erlang:make_tuple(300, 0), lists:seq(1, 1200)),
    erlang:phash2(T).

made() ->
    T = list_to_tuple(lists:seq(1, 200000)),
    L = tuple_to_list(T),
    [erlang:phash2(X) || X <- [T, L, setelement(200000, T, a), setelement(1, T, [b]), erlang:append_element(T, {c}), erlang:insert_element(1, T, d),
                               erlang:insert_element(200001, T, e), erlang:delete_element(1, T), erlang:delete_element(200000, T),
                               erlang:make_tuple(200000, [f]), erlang:make_tuple(5, g, [{2, h}])]]
        ++ [try F() catch error:R -> R end || F <- [fun() -> list_to_tuple(L ++ z()) end,
                                                    fun() -> list_to_tuple(z()) end,
                                                    fun() -> list_to_tuple([a | z()]) end,
                                                    fun() -> setelement(0, T, a) end,
                                                    fun() -> setelement(200001, T, a) end,
                                                    fun() -> setelement(1, id({}), a) end,
                                                    fun() -> erlang:delete_element(200001, T) end,
                                                    fun() -> erlang:insert_element(200002, T, a) end,
                                                    fun() -> list_to_tuple([]) end,
                                                    fun() -> erlang:append_element({}, a) end,
                                                    fun() -> erlang:delete_element(1, {a}) end]].

z() -> id(z).
id(X) -> X.

dictionary() ->
    {P, R} = spawn_monitor(fun() ->
        A = {get(), get_keys(), get_keys(x), erase()},
        [put({K}, [K, K rem 3]) || K <- lists:seq(1, 20000)],
        [put(K, K rem 5) || K <- lists:seq(1, 1000)],
        erlang:garbage_collect(),
        All = lists:sort(get()),
        erlang:garbage_collect(),
        Keys = lists:sort(get_keys()),
        Some = lists:sort(get_keys([9, 0])) ++ lists:sort(get_keys(3)) ++ get_keys(none),
        Erased = lists:sort(erase()),
        exit({A, [erlang:phash2(X) || X <- [All, Keys, Some]], length(All), length(Some), All =:= Erased, get(), get_keys(), erase()})
    end),
    receive {'DOWN', R, process, P, What} -> What end.

%% Lists, tuples, maps and binaries that are reached more than once; in the heap, in a message,
%% among literals.
shared() ->
    S = lists:seq(1, 300),
    Terms = [[], {}, a, S, [S, S | S], {S, tl(S), S}, nest(12), [nest(6), nest(6)], lists:duplicate(100, nest(4)), #{a => S, b => S},
             maps:from_list([{I, S} || I <- lists:seq(1, 100)]), [<<1, 2, 3>>, <<1, 2, 3>>], 1 bsl 100, [1.5 | 2.5]],
    Sizes = [erts_debug:size_shared(T) || T <- Terms],
    erlang:garbage_collect(),
    self() ! Terms,
    Got = receive X -> X end,
    Sent = [erts_debug:size_shared(T) =:= N || {T, N} <- lists:zip(Got, Sizes)],
    Copies = [begin
                  C = erts_debug:copy_shared(T, Literals),
                  erlang:garbage_collect(),
                  {C =:= T, erts_debug:size_shared(C) =:= N}
              end || {T, N} <- lists:zip(Terms, Sizes), Literals <- [false, true]],
    {Sizes, Sent, lists:usort(Copies), erts_debug:size_shared({lit(), lit()})}.

lit() -> [{a, "text"}, {b, [c]}].

nest(0) -> id({1, [2], a});
nest(N) -> T = nest(N - 1), {T, [T], N}.
