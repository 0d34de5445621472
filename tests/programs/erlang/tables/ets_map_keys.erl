%% Uses pseudo-random keys that contain maps, and patterns for them, with all operations that
%% traverse a table: find, count and delete. Each line has a hash of their results for a table and
%% some patterns. In hash tables before OTP 27, a pattern with a whole map in its key also finds
%% other objects of the same bucket, so these are left out there. @stress @shared
-module(ets_map_keys).
-export([main/0]).
main() ->
    [run(S) || S <- lists:seq(1, 300)],
    io:format("done~n").
r(N) -> rand:uniform(N).
pick(L) -> lists:nth(r(length(L)), L).
leaf() -> pick([1, 1.0, 2, a, b, [], <<"x">>, 0.0, 2.0, {}, #{}]).
val(0) -> leaf();
val(D) ->
    case r(9) of
        1 -> leaf();
        2 -> leaf();
        3 -> {val(D-1)};
        4 -> {val(D-1), val(D-1)};
        5 -> [val(D-1)];
        6 -> [val(D-1) | val(D-1)];
        7 -> map(D, fun val/1);
        8 -> map(D, fun val/1);
        9 -> {map(D, fun val/1), val(D-1)}
    end.
map(D, F) -> maps:from_list([{pick([a,b,1,1.0,{x}]), F(D-1)} || _ <- lists:seq(1, r(3)-1)]).
var() -> pick(['_', '$1', '$2', '_', '$1']).
%% A pattern made of a value: parts of it are blanked, maps get fewer pairs.
blank(V, P) ->
    case r(100) =< P of
        true -> var();
        false ->
            if is_tuple(V) -> list_to_tuple([blank(E, P) || E <- tuple_to_list(V)]);
               is_map(V) -> maps:from_list([{K, blank(X, P)} || {K, X} <- lists:sort(maps:to_list(V)), r(3) > 1]);
               is_list(V), V =/= [] -> [blank(hd(V), P) | blank(tl(V), P)];
               true -> V
            end
    end.
key(Vs) ->
    V = case r(4) of 1 -> val(2); _ -> pick(Vs) end,
    blank(V, pick([0, 0, 10, 25])).
head(Vs, Pos) ->
    case r(15) of
        1 -> '_';
        2 -> '$1';
        3 -> {key(Vs)};
        _ when Pos =:= 1 -> {key(Vs), var()};
        _ -> {var(), key(Vs)}
    end.
clause(Vs, Pos) -> {head(Vs, Pos), [], [pick(['$_', '$$', true, x, '$1'])]}.
c(F) -> try F() catch C:E -> {C, E} end.
all('$end_of_table', _) -> [];
all({L, C}, F) -> [L | all(F(C), F)].
ord(ordered_set, L) -> L;
ord(_, L) when is_list(L) -> sorted(L);
ord(_, X) -> X.
types() ->
    case list_to_integer(erlang:system_info(otp_release)) of
        N when N >= 27 -> [set, bag, duplicate_bag, ordered_set, ordered_set];
        _ -> [ordered_set]
    end.
%% 1 and 1.0 have an order here, too.
sorted(L) -> [X || {_, X} <- lists:sort([{erlang:phash2(X), X} || X <- L])].
run(S) ->
    rand:seed(exsss, S),
    Type = pick(types()),
    Pos = pick([1, 1, 2]),
    Opts = pick([[], [], [{write_concurrency, true}], [compressed]]),
    Vs = [val(3) || _ <- lists:seq(1, r(12))],
    mk_insert(Type, Pos, Opts, Vs, S).
mk(Type, Pos, Opts, Vs) ->
    T = ets:new(t, [Type, {keypos, Pos}, public | Opts]),
    ets:insert(T, [case Pos of 1 -> {V, I}; 2 -> {I, V} end || {I, V} <- lists:zip(lists:seq(1, length(Vs)), Vs)]),
    T.
mk_insert(Type, Pos, Opts, Vs, S) ->
    T = mk(Type, Pos, Opts, Vs),
    Spec = [clause(Vs, Pos) || _ <- lists:seq(1, pick([1, 1, 2, 3]))],
    H = head(Vs, Pos),
    N = r(3),
    O = fun(L) -> ord(Type, L) end,
    Fl = fun(X, F) -> c(fun() -> case Type of ordered_set -> all(X(), F); _ -> sorted(lists:append(all(X(), F))) end end) end,
    Rs = [O(c(fun() -> ets:select(T, Spec) end)),
          O(c(fun() -> ets:select_reverse(T, Spec) end)),
          Fl(fun() -> ets:select(T, Spec, N) end, fun ets:select/1),
          Fl(fun() -> ets:select_reverse(T, Spec, N) end, fun ets:select_reverse/1),
          c(fun() -> ets:select_count(T, Spec) end),
          O(c(fun() -> ets:match(T, H) end)),
          O(c(fun() -> ets:match_object(T, H) end)),
          Fl(fun() -> ets:match(T, H, N) end, fun ets:match/1),
          Fl(fun() -> ets:match_object(T, H, N) end, fun ets:match_object/1)],
    TrueSpec = [{Hd, G, [true]} || {Hd, G, _} <- Spec],
    T1 = mk(Type, Pos, Opts, Vs),
    D1 = {c(fun() -> ets:select_delete(T1, TrueSpec) end), O(ets:tab2list(T1))},
    T2 = mk(Type, Pos, Opts, Vs),
    D2 = {c(fun() -> ets:match_delete(T2, H) end), O(ets:tab2list(T2))},
    T3 = mk(Type, Pos, Opts, Vs),
    RSpec = [{Hd, G, ['$_']} || {Hd, G, _} <- Spec],
    D3 = {c(fun() -> ets:select_replace(T3, RSpec) end)},
    T4 = mk(Type, Pos, Opts, Vs),
    K = pick(Vs),
    Rs2 = [c(fun() -> O(ets:lookup(T, K)) end), c(fun() -> ets:member(T, K) end),
           c(fun() -> ets:delete_object(T4, case Pos of 1 -> {K, 1}; 2 -> {1, K} end), O(ets:tab2list(T4)) end),
           c(fun() -> ets:next(T, K), ok end),
           c(fun() -> O(ets:match_spec_run(O(ets:tab2list(T)), ets:match_spec_compile(Spec))) end)],
    io:format("~w ~w ~w~n", [S, Type, [erlang:phash2(R) || R <- Rs ++ [D1, D2, D3 | Rs2]]]),
    [ets:delete(X) || X <- [T, T1, T2, T3, T4]].
