%% Makes, reads, changes, matches, compares, hashes, prints, encodes, sends and stores native
%% records (OTP 29), and keeps them through collections. Earlier releases do not have them.
%% @stress @shared @fence @seconds 240
-module(native_record_operations).
-export([main/0]).
-if(?OTP_RELEASE >= 29).
-export([id/1]).
-export_record([open, big]).
-record #pt{x = 1, y = 2}.
-record #open{a = {some, [literal, "text"]}, b, c = 1 bsl 70}.
-record #none{}.
-record #'strange Name'{'a B' = "x", 'ü' = 'Ö'}.
-record #order{zzzz = 0, true = 1, aaaa = 2, www}.
-record #big{f1 = 1, f2, f3 = 3, f4 = 4, f5 = 5, f6 = 6, f7 = 7, f8 = 8, f9 = 9, f10 = 10, f11 = 11, f12 = 12, f13 = 13,
             f14 = 14, f15 = 15, f16 = 16, f17 = 17, f18 = 18, f19 = 19, f20 = 20}.

id(X) -> X.

main() ->
    [io:format("~w: ~p~n", [F, r(F)]) || F <- [made, missing, fields, changed, own, any, guards, tests, order, hashes, maps, shown, display, encoded,
                                          damaged, create, update, look, definition, sets, sent, large, kept, regions, tables, specs, others, unloaded, reloaded,
                                          timers, sizes, copies, undeclared]].

r(F) ->
    try t(F) catch C:R:S -> {C, R, [{M, N, if is_list(A) -> A; true -> A end} || {M, N, A, _} <- lists:sublist(S, 1)]} end.

%% What an expression gives or raises.
-define(try_(E), (try E catch C__:R__ -> {C__, R__} end)).

%% Code that makes a record of which the file has no definition isn't loaded.
t(undeclared) ->
    Lines = ["-module(undeclared).", "-export([go/0]).", "-record #empty{}.", "go() -> #empty{}."],
    Forms = [begin {ok, Ts, _} = erl_scan:string(L), {ok, F} = erl_parse:parse_form(Ts), F end || L <- Lines],
    {ok, _, B} = compile:forms(Forms, []),
    {ok, _, Chunks} = beam_lib:all_chunks(B),
    {ok, Bad} = beam_lib:build_module(lists:keydelete("Recs", 1, Chunks)),
    logger:set_primary_config(level, none),
    [begin R = code:load_binary(undeclared, "undeclared", F), {R, catch undeclared:go()} end || F <- [Bad, B]];
t(made) ->
    {#pt{}, #pt{x = id(3)}, #pt{x = id([a]), y = id({b})}, #none{}, #open{b = 1}, #open{b = 1, a = id(2), c = id(3)}, #big{f2 = id(2)}};
t(missing) -> {?try_(#?MODULE:open{}), ?try_(#?MODULE:open{a = id(1)}), ?try_(#?MODULE:big{})};
t(fields) ->
    P = id(#pt{x = id(7)}),
    {P#pt.x, P#pt.y, (id(#open{b = 2}))#open.b, ?try_((id({pt, 1, 2}))#pt.x), ?try_((id(#none{}))#pt.x), ?try_((id(#big{f2 = 3}))#big.f20)};
t(changed) ->
    P = id(#pt{x = 1}),
    {P#pt{x = 5}, P#pt{y = id(6), x = id(5)}, P, ?try_((id(a))#pt{x = 1}), ?try_((id(#none{}))#pt{x = 1}), ?try_((id({pt, 1, 2}))#pt{y = 3}),
     (id(#big{f2 = 2}))#big{f19 = x, f1 = y, f10 = z}};
t(own) ->
    {P, O} = {id(#pt{}), id(#open{b = 1})},
    {?try_(#?MODULE:open{b = id(2)}), ?try_(#?MODULE:pt{x = id(2)}), ?try_(O#?MODULE:open{b = 3}), ?try_(P#?MODULE:pt{x = 3}), ?try_(O#?MODULE:open.b),
     ?try_(P#?MODULE:pt.x), ?try_(#?MODULE:open{b = id(1), z = 2, y = 3})};
t(any) ->
    {P, O} = {id(#pt{}), id(#open{b = 1})},
    F = foreign(false),
    G = foreign(true),
    {P#_.x, O#_.b, ?try_(P#_.b), ?try_((id(x))#_.x), ?try_(F#_.x), ?try_(G#_.x), P#_{x = 9}, ?try_(O#_{x = 9}), ?try_(F#_{x = 1}), ?try_(G#_{x = 1}),
     [{?try_(R#pt.x), ?try_(R#pt{x = 5})} || R <- [records:create(elsewhere, pt, [{x, 7}], #{is_exported => E}) || E <- [true, false]]],
     [case R of #_{x = X} -> X; #_{} -> other; _ -> none end || R <- [P, O, F, G, {x, 1}, x]]};
t(guards) ->
    [{case R of #pt{x = 1, y = Y} -> {one, Y}; #pt{x = X} -> {x, X}; #open{a = A} -> {open, A}; #none{} -> empty; _ -> no end, g(R)} || R <- all()];
t(tests) ->
    [{is_record(R), is_record(R, id(pt)), is_record(R, ?MODULE, pt), is_record(R, id(?MODULE), id(open)), is_tuple(R), is_map(R), is_record(R, id(pt), 3)} || R <- all()];
t(order) ->
    L = [1, 1.0, a, make_ref(), self(), {}, {a, b, c}, #{}, #{a => 1}, [], [a], "abc", <<>>, <<"abc">>, fun() -> ok end] ++ recs(),
    S = [ok || A <- L, B <- L, (A < B) =/= (B > A) orelse (A =< B) =/= (B >= A) orelse ((A < B) andalso (B < A))],
    {length(L), S, [{A < B, A =:= B, A == B} || A <- recs(), B <- recs()], [rank(R) || R <- lists:sort(recs() ++ [{z}, #{}, [], 1])]};
t(hashes) ->
    [{erlang:phash2(R), erlang:phash2(R, 1 bsl 32), erlang:phash(R, 1 bsl 32), erlang:phash2({R, R})} || R <- recs(), plain(R)];
t(maps) ->
    M = maps:from_list([{R, N} || {N, R} <- lists:enumerate(recs())]),
    M2 = maps:from_list([{{R, K}, K} || R <- recs(), K <- lists:seq(1, 5)]),
    {map_size(M), [maps:get(copy(R), M) || R <- recs()], map_size(M2), lists:sum([map_get({copy(R), K}, M2) || R <- recs(), K <- lists:seq(1, 5)])};
t(shown) ->
    [io:format("~w~n~p~n~P~n", [R, R, R, 9]) || R <- recs(), plain(R)],
    [iolist_to_binary(io_lib:format("~tw", [#pt{x = #pt{}, y = [#none{}]}])), io_lib:format("~s", [lists:flatten(io_lib:format("~p", [#'strange Name'{'a B' = 1}]))])];
t(display) -> [erts_internal:term_to_string(R, undefined) || R <- [#pt{}, #pt{x = #none{}, y = "text"}, #order{www = 1}, #'strange Name'{}]];
t(encoded) ->
    [begin
         B = term_to_binary(R),
         {B, R =:= binary_to_term(B), R =:= binary_to_term(term_to_binary(R, [compressed])), R =:= binary_to_term(B, [safe]),
          byte_size(B) =:= erlang:external_size(R), element(2, binary_to_term(B, [used])) =:= byte_size(B), term_to_binary(R, [deterministic]) =:= B}
     end || R <- recs(), plain(R)] ++ [length(binary_to_term(term_to_binary(lists:duplicate(1000, #pt{x = id(1)}))))];
t(damaged) ->
    {A, S} = {fun(X) -> <<131, B/binary>> = term_to_binary(X), B end, fun(B) -> ?try_(binary_to_term(B)) end},
    K = fun(N, E, Parts) -> S(iolist_to_binary([131, $C, <<N:32, E>>, [A(P) || P <- Parts]])) end,
    [K(0, 0, [m, n]), K(0, 1, [m, n]), K(0, 2, [m, n]), K(1, 0, [m, n, a, 1]), K(1, 0, [m, n, 1, a]), K(2, 1, [m, n, a, a, 1, 2]), K(2, 1, [m, n, a, b, 1]),
     K(1, 0, [1, n, a, 1]), K(1, 0, [m, {n}, a, 1]), K(16#ffffffff, 0, [m, n, a, 1]), S(<<131, $C>>), S(<<131, $C, 0, 0, 0, 1, 0>>), K(2, 1, [m, n, b, a, 1, 2])];
t(create) ->
    O = #{is_exported => false},
    [?try_(apply(records, create, A)) || A <- [[m, n, [], O], [m, n, [{a, 1}], O], [m, n, [{b, 1}, {a, 2}], #{is_exported => true}], [1, n, [], O], [m, 1, [], O],
        [m, n, [{a, 1}, {a, 2}], O], [m, n, [{a, 1} | b], O], [m, n, [{{a}, 1}], O], [m, n, [a], O], [m, n, [], x], [m, n, [], #{}], [m, n, [], O#{a => 1}],
        [m, n, [], #{is_exported => 1}], [m, n, #{}, O]]] ++ [records:create(?MODULE, pt, [{x, 1}, {y, 2}], O) =:= #pt{}, raised(create, [m, n, [{1, 1}], O])]
        %% So many fields that counting them takes turns.
        ++ [?try_(records:create(m, n, Fs, O)) || Fs <- [lists:duplicate(120000, x), [{1, 1} | lists:duplicate(120000, {a, 1})]]];
t(update) ->
    P = id(#pt{}),
    [?try_(apply(records, update, A)) || A <- [[P, ?MODULE, pt, #{x => 3}], [P, ?MODULE, pt, #{}], [P, ?MODULE, pt, #{y => 4, x => 5}], [P, ?MODULE, none, #{}],
        [P, m, pt, #{}], [P, m, '_', #{x => 8}], [P, 1, pt, #{}], [x, ?MODULE, pt, #{}], [P, ?MODULE, pt, x], [P, ?MODULE, pt, #{zork => 1}],
        [P, ?MODULE, pt, #{x => 1, {y} => 1}], [P, ?MODULE, pt, maps:from_list([{list_to_atom("f" ++ integer_to_list(I)), I} || I <- lists:seq(1, 40)])]]]
        ++ [raised(update, [P, ?MODULE, pt, #{q => 1}]), raised(update, [x, ?MODULE, pt, #{q => 1}])];
t(look) ->
    [[?try_(apply(records, F, [R])) || R <- [#pt{}, #open{b = 1}, #order{www = 1}, {pt, 1}]] || F <- [get_module, get_name, get_field_names, is_exported]]
        ++ [?try_(records:get(K, R)) || K <- [x, zzzz, 1, true], R <- [#pt{}, #order{www = 1}, x]]
        ++ [raised(get, [q, #pt{}]), raised(get_field_names, [x]), raised(is_exported, [1]), raised(get_module, [1])];
t(definition) ->
    [?try_(records:get_definition(?MODULE, N)) || N <- [pt, open, none, order, big, nope, 1]] ++ [?try_(records:get_definition(nowhere, pt)), raised(get_definition, [m, n])];
t(sets) ->
    L = recs() ++ recs(),
    {length(lists:usort(L)), sets:size(sets:from_list(L)), gb_sets:size(gb_sets:from_list(L)), lists:member(copy(#pt{}), L), lists:keyfind(#pt{}, 1, [{copy(#pt{}), 1}])};
t(sent) ->
    E = spawn_link(fun echo/0),
    Echo = fun(R) -> E ! {self(), R}, receive {E, X} -> X end end,
    {[Echo(R) =:= R || R <- recs()], [Echo(#pt{x = #pt{x = N}, y = lists:seq(1, N)}) =:= #pt{x = #pt{x = N}, y = lists:seq(1, N)} || N <- [1, 50, 500]],
     (Echo(#pt{x = fun() -> Echo end}))#pt.y};
t(large) ->
    Fs = [{list_to_atom("field" ++ integer_to_list(I)), I} || I <- lists:seq(1, 300)],
    R = records:create(m, wide, Fs, #{is_exported => true}),
    R2 = records:update(R, m, wide, #{field77 => x, field300 => lists:seq(1, 10)}),
    {length(records:get_field_names(R)), records:get(field77, R2), records:get(field300, R2), R < R2, binary_to_term(term_to_binary(R2)) =:= R2,
     erlang:phash2(R), lists:sum([records:get(K, R) || {K, _} <- Fs])};
t(kept) ->
    R = lists:foldl(fun(I, #pt{x = S, y = L} = P) -> P#pt{x = S + I, y = [#open{b = I, a = {L}} | lists:sublist(L, 20)]} end, #pt{x = 0, y = []}, lists:seq(1, 3000)),
    erlang:garbage_collect(),
    {R#pt.x, length(R#pt.y), [B || #open{b = B} <- R#pt.y], (hd(R#pt.y))#open.c};
t(regions) ->
    L = [#open{b = lists:seq(I, I + 5), a = #pt{x = <<I:800>>, y = {I, make_fun(I)}}} || I <- lists:seq(1, 400)],
    [P1, P2] = [spawn_link(fun() -> receive {From, X} -> From ! {self(), lists:reverse(X)} end end) || _ <- [1, 2]],
    P1 ! {self(), L}, P2 ! {self(), L},
    [R1, R2] = [receive {P, X} -> X end || P <- [P1, P2]],
    erlang:garbage_collect(),
    {R1 =:= R2, lists:reverse(R1) =:= L, lists:sum([F(1) || #open{a = #pt{y = {_, F}}} <- R2])};
t(tables) ->
    [begin
         T = ets:new(t, [Type]),
         ets:insert(T, [{R, N} || {N, R} <- lists:enumerate(recs())]),
         ets:insert(T, {k, #pt{x = lists:seq(1, 20), y = #open{b = 1}}}),
         {Type, [ets:lookup_element(T, copy(R), 2) || R <- recs()], (ets:lookup_element(T, k, 2))#pt.y, ets:update_element(T, k, {2, #none{}}), ets:lookup(T, k),
          length([ok || {#pt{}, _} <- ets:tab2list(T)]), ets:member(T, #pt{x = 4}), ets:match(T, {#pt{}, '$1'}), ets:delete(T)}
     end || Type <- [set, ordered_set]];
t(specs) ->
    T = ets:new(t, [bag]),
    ets:insert(T, [{1, #pt{}}, {2, #open{b = 1}}, {3, x}, {4, {pt, 1}}]),
    M = ?MODULE,
    Pt = #pt{},
    [?try_(lists:sort(ets:select(T, [S]))) || S <- [{{'$1', Pt}, [], ['$1']}, {{'$1', '$2'}, [{is_record, '$2', M, pt}], ['$1']}, {{'$1', '$2'}, [{'=:=', '$2', Pt}], ['$_']},
        {{'$1', '$2'}, [{is_record, '$2'}], ['$1']}, {{'$1', '$2'}, [{'>', '$2', {}}], ['$1']}, {{'$1', '_'}, [], [Pt]}, {{'$1', '_'}, [], [{{'$1', Pt}}]},
        {{'$1', records:create(M, pt, [{x, '_'}, {y, '$2'}], #{is_exported => false})}, [], ['$2']}, {{'$1', '$2'}, [{is_record, '$2', pt, 2}], ['$1']}]];
t(others) ->
    L = #pt{x = [], y = fun() -> ok end},
    F = fun(X) -> X#pt{y = L} end,
    put(#pt{}, 1),
    Old = persistent_term:get(?MODULE, none),
    persistent_term:put(?MODULE, #open{b = #pt{x = id([1, 2, 3])}}),
    P = persistent_term:get(?MODULE),
    persistent_term:erase(?MODULE),
    {(F(#pt{}))#pt.x, get(copy(#pt{})), erase(#pt{}), Old, P, length(lists:flatten([#pt{}, [#none{}]])), ?try_(list_to_binary([#pt{}])), ?try_(#pt{} + id(1)),
     ?try_(element(1, id(#pt{}))), ?try_(tuple_size(id(#pt{}))), ?try_(map_size(id(#pt{}))), ?try_(length(id(#pt{}))), ?try_((id(#pt{}))()), ?try_(size(id(#pt{}))),
     ?try_(hd(id(#pt{}))), ?try_(exit(#pt{})), ?try_(throw(#pt{x = 1})), ?try_(error(#none{})), erts_debug:same(P, P), is_function(id(#pt{})), is_binary(id(#pt{})), is_list(id(#pt{}))};
t(unloaded) ->
    K = id({kept, [1, 2]}),
    [begin
         unload(),
         [load([{x, 10}, {y, {d, [1]}}, {z, 5}, w]) || Loaded],
         [{ok, ?try_(vec(1, 2))}, ?try_(tail_vec(a)), ?try_(bad_vec()), ?try_(no_vec()), ?try_(hidden()), ?try_(nowhere()), caught(), ?try_(many(1, 2, 3, 4, 5, 6, 7, 8)), K]
     end || Loaded <- [true, false]];
t(reloaded) ->
    unload(),
    load([{x, 1}, {y, [old, {text}]}]),
    R = new_other(),
    load([{x, 2}, {z, [new]}]),
    R2 = new_other(),
    Bin = term_to_binary(R),
    code:purge(r_other), erlang:garbage_collect(),
    P = spawn_link(fun echo/0), P ! {self(), {R, R2}},
    Back = receive {P, X} -> X end,
    code:delete(r_other), code:purge(r_other),
    erlang:garbage_collect(),
    {R, R2, Back =:= {R, R2}, R =:= binary_to_term(Bin), R < R2, ?try_(R#r_other:r.y), ?try_(R2#r_other:r.z), ?try_(R2#r_other:r{x = 3}), ?try_(records:get_definition(r_other, r))};
t(timers) ->
    erlang:send_after(1, self(), #pt{x = id([in_a_timer])}),
    A = receive #pt{} = M -> M after 60000 -> none end,
    {_, Ref} = spawn_monitor(fun() -> exit(#open{b = id([left])}) end),
    {A, receive {'DOWN', Ref, _, _, W} -> W end};
t(sizes) ->
    {P, O} = {#pt{x = id(1)}, records:create(m, n, [{a, id(1)}], #{is_exported => true})},
    {erts_debug:flat_size(P), erts_debug:flat_size(O), erts_debug:size([P, P])};
t(copies) ->
    P = #pt{x = id({1, 2}), y = [id({3})]},
    C = erts_debug:copy_shared({P, P}),
    {C =:= {P, P}, erlang:fun_info(fun() -> P end, env) =:= {env, [P]}}.


g(R) when R#pt.x =:= 1 -> x_is_1;
g(R) when is_record(R, pt) -> pt;
g(R) when is_record(R, ?MODULE, open), R#open.b > 0 -> open;
g(R) when is_record(R) -> some;
g(R) when R > {} -> above;
g(_) -> below.

all() -> [#pt{}, #pt{x = 2}, #open{b = 1}, #open{b = 0}, #none{}, #order{www = 4}, {pt, 1, 2}, pt, #{}, foreign(true), []].
recs() ->
    [#pt{}, #pt{x = 1.0}, #pt{x = 2, y = 1}, #pt{x = [self()], y = #pt{}}, #open{b = 1}, #none{}, #order{www = 1}, #order{zzzz = 1, www = 0}, #big{f2 = x},
     foreign(true), foreign(false), records:create(?MODULE, pt, [{x, 1}, {y, 2}], #{is_exported => true}), records:create(?MODULE, pt, [{y, 1}, {x, 2}], #{is_exported => false}),
     records:create(?MODULE, pt, [{z, 1}], #{is_exported => false}), records:create(zz, pt, [], #{is_exported => false})].
plain(R) -> R =/= #pt{x = [self()], y = #pt{}}.
rank(R) when is_record(R) -> {records:get_module(R), records:get_name(R), records:is_exported(R), records:get_field_names(R)};
rank(X) -> X.
foreign(E) -> records:create(elsewhere, thing, [{x, 1}, {q, 2}], #{is_exported => E}).
copy(R) -> binary_to_term(term_to_binary(R)).
make_fun(I) -> fun(X) -> X + I end.
echo() -> receive {From, X} -> From ! {self(), X}, echo() end.
raised(F, A) ->
    try apply(records, F, A) catch C:R:S -> {M, N, As, I} = hd(S), {C, R, M, N, As, proplists:get_value(error_info, I)} end.

%% A module that others make records of.
unload() -> [begin code:purge(M), code:delete(M), code:purge(M) end || M <- [r_other]].
beam(Fields) ->
    {ok, _, B} = compile:forms([{attribute, 1, module, r_other}, {attribute, 1, native_record, {r, [field(F) || F <- Fields]}}, {attribute, 1, native_record, {hid, []}},
                                {attribute, 1, export_record, [r]}], [binary]),
    B.
field({N, D}) -> {record_field, 1, {atom, 1, N}, erl_parse:abstract(D)};
field(N) -> {record_field, 1, {atom, 1, N}}.
load(Fields) -> code:purge(r_other), {module, _} = code:load_binary(r_other, "r_other.beam", beam(Fields)).
new_other() -> #r_other:r{x = id(0)}.
vec(X, W) -> #r_other:r{w = W, x = id(X)}.
tail_vec(W) -> tail(W).
tail(W) -> #r_other:r{w = W}.
bad_vec() -> #r_other:r{w = id(1), q = 1, p = 2}.
no_vec() -> #r_other:r{x = id(1)}.
hidden() -> #r_other:hid{}.
nowhere() -> #r_nowhere:r{x = id(1)}.
caught() -> [try #r_other:r{q = 1} catch _:_ -> raised end].
many(A, B, C, D, E, F, G, H) -> framed(A, B, C, D, E, F, G, H).
framed(A, B, C, D, E, F, G, H) ->
    [X, Y] = [id({A, B}), id([C | D])],
    R = #r_other:r{x = X, y = E, z = {F, Y}, w = {G, H}},
    {R, X, Y, A, B, C, D, E, F, G, H}.
-else.
main() -> io:format("no native records~n").
-endif.
