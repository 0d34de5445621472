%% Writes programs of the hunt: modules whose steps build, match, keep and refuse values at every
%% kind of place. A program depends on its seed alone. The recipe of each value is written beside
%% the code that makes it, so what runs checks itself.
%%
%%   erl -noshell -run hunt_gen main DIR SEED COUNT     modules hunt_SEED, hunt_SEED+1 … with their sources
%%
%% KINDS="loop regions" in the environment: steps of these kinds alone (which seeds then mean
%% something else).
%% Most programs have steps of a few kinds only. Seed 0 is the program with each kind of step, which
%% hunt_v crosses with each kind of value in turn.
-module(hunt_gen).
-export([main/1, source/1]).

-define(STEPS, 24).

main([Dir, Seed0, Count]) ->
    Seed = list_to_integer(Seed0),
    [write(Dir, S) || S <- lists:seq(Seed, Seed + list_to_integer(Count) - 1)],
    halt(0).

write(Dir, Seed) ->
    {Options, Text} = source(Seed),
    Name = "hunt_" ++ integer_to_list(Seed),
    ok = file:write_file(filename:join(Dir, Name ++ ".erl"), Text),
    compile(Dir, Name, Text, Options),
    Literals = [io_lib:format("-module(~s_l).~n-export([pad/0, lit/1]).~npad() -> {pad, []}.~n", [Name]),
                lists:join(";\n", [io_lib:format("lit(~w) -> ~w", [I, literal(Seed, I)]) || I <- lists:seq(0, 15)]), ".\n"],
    compile(Dir, Name ++ "_l", iolist_to_binary(Literals), []).

compile(Dir, Name, Text, Options) ->
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Text)),
    Forms = [begin {ok, F} = erl_parse:parse_form(Ts), F end || Ts <- forms(Tokens, [])],
    case compile:forms(Forms, [binary, return_errors | Options]) of
        {ok, _, Beam} ->
            ok = file:write_file(filename:join(Dir, Name ++ ".beam"), Beam),
            [ok = file:write_file(filename:join(Dir, io_lib:format("~s.~w", [Name, K])), moved(Beam, K)) || K <- [1, 2]];
        %% Not all options go together, in stock's own compiler.
        _ when Options =/= [] -> compile(Dir, Name, Text, []);
        Failed -> io:format(standard_error, "~s isn't compiled: ~P~n", [Name, Failed, 40])
    end.

%% The module with its literals at other places: the one that it has for this is longer.
moved(Beam, K) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Beam),
    {ok, Moved} = beam_lib:build_module([{Id, case Id of "LitT" -> moved_literals(C, K); _ -> C end} || {Id, C} <- Chunks]),
    Moved.

moved_literals(<<0:32, Plain/binary>>, K) -> <<0:32, (longer(Plain, K))/binary>>;
moved_literals(<<_:32, Packed/binary>>, K) -> Plain = longer(zlib:uncompress(Packed), K), <<(byte_size(Plain)):32, (zlib:compress(Plain))/binary>>.

longer(<<N:32, Literals/binary>>, K) ->
    All = [case binary_to_term(L) of {pad, _} -> term_to_binary({pad, lists:duplicate(K * 7, {K})}); _ -> L end || <<S:32, L:S/binary>> <= Literals],
    N = length(All),
    <<N:32, << <<(byte_size(L)):32, L/binary>> || L <- All >>/binary>>.

forms([], []) -> [];
forms([{dot, _} = D | Ts], Acc) -> [lists:reverse([D | Acc]) | forms(Ts, [])];
forms([T | Ts], Acc) -> forms(Ts, [T | Acc]).

literal(Seed, I) ->
    N = erlang:phash2({Seed, I}),
    case I of
        0 -> lists:seq(1, N rem 400);
        1 -> {N, [N], #{N => {N}}};
        2 -> binary:copy(<<N:16>>, 20);
        3 -> binary:copy(<<N:32>>, 50);
        4 -> <<N:27>>;
        5 -> {N bsl 200, 1.5, [{I2, I2 bsl 70} || I2 <- lists:seq(1, 20)]};
        6 -> list_to_tuple(lists:seq(1, 240));
        7 -> maps:from_list([{I2, [N]} || I2 <- lists:seq(1, 50)]);
        8 -> [a, {b, N} | N];
        9 -> #{1 => [N], 2 => binary:copy(<<N:32>>, 30)};
        _ -> [{N, I, <<N:64>>}, "literal", [[[N]]], N]
    end.

%% ---- Text ----

t(F, A) -> io_lib:format(F, A).
r(N) -> rand:uniform(N).
pick(L) -> lists:nth(r(length(L)), L).
%% A number that no other name has.
n() -> N = get(n) + 1, put(n, N), N.
var(P) -> t("~s~w", [P, n()]).
%% A function beside.
also(F) -> put(also, [F | get(also)]).
seq(S, L) -> lists:join(S, L).

source(Seed) ->
    rand:seed(exsss, Seed),
    put(n, 0),
    put(also, []),
    put(cheap, false),
    put(wide, []),
    Kinds = kinds(),
    Wanted = case os:getenv("KINDS") of
                 false -> Kinds;
                 Names -> [list_to_existing_atom(N) || N <- string:lexemes(Names, " ")]
             end,
    Steps = case Seed of
                0 -> [K || _ <- [1, 2], K <- Kinds];
                _ ->
                    %% Most programs have few kinds of steps, so that what needs many of one kind
                    %% happens in some of them.
                    Few = case r(3) of 1 -> Wanted; _ -> some(r(4), lists:usort(Wanted)) end,
                    [pick(Few) || _ <- lists:seq(1, ?STEPS)]
            end,
    Texts = [step(I, K) || {I, K} <- lists:zip(lists:seq(1, length(Steps)), Steps)],
    %% Where a segment of variable size is built to be compared with what is bound, OTP 25's
    %% compiler makes a call of error(badarg) of it if it is to do without bs_create_bin.
    Options = case re:run([Texts, get(also)], "case {?<<[0Y]:\\(Y") of
                  nomatch -> options(Seed);
                  _ -> options(Seed) -- [no_bs_create_bin, r22, r23, r24]
              end,
    {Options, iolist_to_binary(
        [t("%% Options: ~w~n-module(hunt_~w).~n-export([pad/0, step/3, steps/0]).~n", [Options, Seed]),
         "-import(hunt_v, [opaque/0, id/1, ids/1, idb/1, idl/1, v/1, chk/2, chkl/1, chk0/2, via/3, wrap/3, deliver/6, junk/2, drain/1, grow/1, collect/2, reload/0, table/2, server/2, fault/2, scaled/1]).\n"
         "-record(rec, {a, b = 1, c, d = [], e, f, g = {}, h}).\n",
         [t("-record(wide_~w, {~s}).~n", [W, seq(", ", [t("f~w", [F]) || F <- lists:seq(2, W)])]) || W <- lists:usort(get(wide))],
         "pad() -> {pad, []}.\n",
         t("steps() -> ~w.~n", [length(Steps)]),
         seq(";\n", [t("step(~w, I, E) -> s~w(I, E)", [I, I]) || I <- lists:seq(1, length(Steps))]), ".\n\n",
         Texts, lists:reverse(get(also))])}.

options(0) -> [];
options(_) ->
    case r(3) of
        1 -> [];
        _ -> [O || O <- [no_bsm_opt, no_bs_create_bin, no_type_opt, no_recv_opt, no_share_opt, no_ssa_opt, no_copt, inline, no_stack_trimming,
                         no_fun_opt, no_bool_opt, no_module_opt, no_postopt, r22, r23, r24], r(8) =:= 1]
    end.

%% A step of a kind: what it does has V with recipe R at hand, X (small) with RX, the small number
%% Y, and O, that nothing equals.
step(N, Kind) ->
    Deep = r(4) =:= 1,
    Name = case Deep of true -> "b"; false -> "s" end,
    %% What is done for each piece of a long value doesn't make megabytes each time.
    put(cheap, lists:member(Kind, [parsing, bit_comprehension, lists, refusing])),
    Id = case Kind of
             _ when Kind =:= binaries; Kind =:= appending; Kind =:= raw_receive; Kind =:= parsing; Kind =:= bit_comprehension -> "idb";
             lists -> "idl";
             _ -> pick(["id", "id", "id", "idb", "ids", "ids", "idl"])
         end,
    [t("%% ~w~n", [Kind]),
     [t("s~w(I, E) -> d~w(I rem ~w, I, E).~nd~w(0, I, E) -> b~w(I, E);~nd~w(D, I, E) -> R = ids(I + D), V = v(R), T = {D, [V]}, L = d~w(D - 1, I, E), chk0(V, R), {D, [W]} = T, chk0(W, R), L.~n",
        [N, N, pick([3, 20, 60, 300]), N, N, N, N]) || Deep],
     t("~s~w(I, E) ->~n    O = opaque(), Y = I rem 97 + 1,~n    R = ~s(I + ~w), V = via(~s, E, R),~n    RX = ids(I + ~w), X = via(~s, E, RX),~n",
       [Name, N, Id, r(1000), how(), r(1000), how()]),
     [t("    put({~w, pd}, {X, [V | X]}),~n", [N]) || r(3) =:= 1],
     t("    L = ~s,~n", [kind(Kind)]),
     t("    case get({~w, pd}) of {PX, [PV | PX]} -> chk(PX, RX), chk(PV, R), erase({~w, pd}); undefined -> ok end,~n", [N, N]),
     pick(["    chk(X, RX),\n", "", "    chk(V, R), chk(X, RX),\n", "    collect(1, E),\n    chk(V, R),\n"]),
     pick(["    chkl(L),\n", "    chkl(L),\n", ""]),
     "    L.\n\n"].

how() -> pick(["0", "0", "0", "I", "I bsr 3", "1", "2", "5"]).

kinds() -> [heads, cases, funs, receive_tagged, receive_tagged, receive_tagged, receive_many, raw_receive, raw_receive, trying, throwing, catching, comprehension, down,
            loop, loop, binaries, appending, parsing, maps, records, capturing, ets, ets_select, dictionary, persistent, timers,
            spawning, natives, lists, match_spec, refusing, refusing, regions, bit_comprehension, told, polling, exits, leaving, updating, updating].

%% ---- Guards ----

%% An expression that a guard may have, that builds something of the variables given, `{Name,
%% Type}`.
built(Vs) ->
    A = name(pick(Vs)), B = name(pick(Vs)),
    case case get(cheap) of true -> pick([1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13]); false -> r(14) end of
        1 -> t("{~s, ~s}", [A, B]);
        2 -> t("[~s | ~s]", [A, B]);
        3 -> t("#{k => ~s, 2 => ~s}", [A, B]);
        4 -> t("<<Y:~w>>", [pick([7, 32, 200, 600, 1000])]);
        5 -> t("<<0:(Y * ~w)>>", [pick([8, 80, 800, 8000, 40000])]);
        6 -> t("{<<Y:32, 7:8>>, {~s}}", [seq(", ", lists:duplicate(pick([5, 60, 240]), A))]);
        7 -> t("{~s, [~s, {~s, X} | Y], ~s}", [A, B, A, B]);
        8 -> "((Y bsl 100) + Y)";
        9 -> "float(Y)";
        10 -> t("{element(1, {~s, X}), ~s}", [A, B]);
        11 -> t("[~s, X | <<Y:9>>]", [A]);
        12 -> t("{{{~s}}, [[~s]], #{}}", [A, B]);
        13 -> case [V || {V, bits} <- Vs] of
                  [] -> t("{~s}", [A]);
                  L -> t("<<~s/bits, Y:~w, ~s/bits>>", [pick(L), pick([1, 8, 40]), pick(L)])
              end;
        14 -> t("{<<0:(Y * ~w)>>, <<Y:(Y * ~w)>>, ~s}", [pick([80, 8000, 40000]), pick([80, 8000, 40000]), A])
    end.
name({V, _}) -> V.

untrue(Vs) ->
    case r(7) of
        1 -> t("is_map_key(O, #{1 => ~s})", [name(pick(Vs))]);
        2 -> t("~s =:= O, ~s =:= O", [built(Vs), built(Vs)]);
        3 -> t("(~s =:= O orelse ~s =:= O)", [built(Vs), built(Vs)]);
        4 -> t("element(Y, {~s}) =:= O, Y > 90", [seq(", ", lists:duplicate(97, name(pick(Vs))))]);
        5 -> t("hd([~s | X]) =:= O, ~s =/= O", [built(Vs), built(Vs)]);
        _ -> t("~s =:= O", [built(Vs)])
    end.

true(Vs) ->
    case r(5) of
        1 -> t("~s =/= O, ~s =/= O", [built(Vs), built(Vs)]);
        2 -> t("(~s =:= O orelse ~s =/= O)", [built(Vs), built(Vs)]);
        3 -> t("~s =:= O; ~s =/= O", [built(Vs), built(Vs)]);
        _ -> t("~s =/= O", [built(Vs)])
    end.

%% ---- Clauses that take a value apart ----

%% `{Pattern, Guard, Body}`; a body gives values with their recipes. The last takes anything.
clauses(R) ->
    Some = [refined(clause(K, R)) || K <- some(1 + r(7), [cons, cons2, one, tuple, tuple2, tuple3, bin, bin, bits, int, map, map2, funct, number, same])],
    A = var("A"),
    lists:append(Some) ++ [{A, guard_of(r(3), [{A, any}]), body([{R, A, any}])} || r(2) =:= 1] ++ [last(R)].

last(R) -> A = var("A"), {A, "", body([{R, A, any}])}.

some(N, L) -> lists:sublist([X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- L])], N).

%% First with a guard that refuses, perhaps.
refined({P, [{A, funct}], Parts}) -> [{P, t("is_function(~s, 0)", [A]), body(Parts)}];
refined({P, [{A, number}], Parts}) -> [{P, t("is_integer(~s), ~s", [A, "(Y bsl 70) =/= O"]), body(Parts)}];
refined({P, Vs, Parts}) ->
    Names = [{V, T} || {V, T} <- Vs] ++ [{"X", any}],
    [{P, untrue(Names), body(Parts)} || r(3) =:= 1] ++ [{P, guard_of(r(3), Names), body(Parts)}].

guard_of(1, Vs) -> true(Vs);
guard_of(_, _) -> "".

clause(K, R) ->
    A = var("A"), B = var("B"), C = var("C"),
    case K of
        cons -> {t("[~s | ~s]", [A, B]), [{A, any}, {B, any}], [{t("{hd, ~s}", [R]), A, any}, {t("{tl, ~s}", [R]), B, any}]};
        cons2 -> {t("[~s, ~s | ~s]", [A, B, C]), [{A, any}, {B, any}, {C, any}],
                  [{t("{hd, ~s}", [R]), A, any}, {t("{hd, {tl, ~s}}", [R]), B, any}, {t("{tl, {tl, ~s}}", [R]), C, any}]};
        one -> {t("[~s]", [A]), [{A, any}], [{t("{hd, ~s}", [R]), A, any}]};
        tuple -> {t("{~s}", [A]), [{A, any}], [{t("{el, 1, ~s}", [R]), A, any}]};
        tuple2 -> {t("{~s, ~s}", [A, B]), [{A, any}, {B, any}], [{t("{el, 1, ~s}", [R]), A, any}, {t("{el, 2, ~s}", [R]), B, any}]};
        tuple3 -> {t("{_, ~s, ~s}", [A, B]), [{A, any}, {B, any}], [{t("{el, 2, ~s}", [R]), A, any}, {t("{el, 3, ~s}", [R]), B, any}]};
        bin ->
            N = pick([0, 1, 5, 25, 40, 64, 65, 100, 200, 280]),
            {t("<<~s:~w/binary, ~s/binary>>", [A, N, B]), [{A, bits}, {B, bits}],
             [{t("{bits, 0, ~w, ~s}", [8 * N, R]), A, bits}, {t("{rest, ~w, ~s}", [8 * N, R]), B, bits}]};
        bits ->
            N = pick([1, 7, 13, 63, 65, 201, 500, 513, 600]),
            {t("<<~s:~w/bits, ~s/bits>>", [A, N, B]), [{A, bits}, {B, bits}],
             [{t("{bits, 0, ~w, ~s}", [N, R]), A, bits}, {t("{rest, ~w, ~s}", [N, R]), B, bits}]};
        int ->
            N = pick([8, 16, 32, 61, 64, 65, 200, 1000]), M = pick([8, 9, 64, 400]),
            {t("<<~s:~w, ~s:~w/bits, ~s/bits>>", [A, N, B, M, C]), [{A, any}, {B, bits}, {C, bits}],
             [{t("{int, 0, ~w, ~s}", [N, R]), A, any}, {t("{bits, ~w, ~w, ~s}", [N, M, R]), B, bits}, {t("{rest, ~w, ~s}", [N + M, R]), C, bits}]};
        map -> {t("#{1 := ~s}", [A]), [{A, any}], [{t("{key, 1, ~s}", [R]), A, any}]};
        map2 -> {t("#{2 := ~s, {3} := ~s}", [A, B]), [{A, any}, {B, any}], [{t("{key, 2, ~s}", [R]), A, any}, {t("{key, {3}, ~s}", [R]), B, any}]};
        funct -> {t("~s", [A]), [{A, funct}], [{t("{call, ~s}", [R]), t("~s()", [A]), funct}]};
        number -> {t("~s", [A]), [{A, number}], [{t("{mul, 3, ~s}", [R]), t("(~s * 3)", [A]), any}]};
        same -> {t("~s = [_ | ~s]", [A, B]), [{A, any}, {B, any}], [{R, A, any}, {t("{tl, ~s}", [R]), B, any}]}
    end.

body(Parts) ->
    Pairs = [pair(P) || P <- Parts],
    L = t("[~s]", [seq(", ", some(3, Pairs))]),
    case r(6) of
        1 -> t("begin collect(~w, E), ~s end", [r(2), L]);
        2 -> t("begin grow(~w), ~s end", [pick([100, 1000, 10000]), L]);
        _ -> L
    end.

pair({R, V, T}) ->
    case r(10) of
        1 -> t("{{t, [~s, RX]}, {~s, X}}", [R, V]);
        2 -> t("{{l, [~s, {q, Y}]}, [~s, Y]}", [R, V]);
        3 -> t("{{m, [{k, ~s}, {2, RX}]}, #{k => ~s, 2 => X}}", [R, V]);
        4 when T =:= bits -> t("{{b, [~s, {q, <<Y:~w>>}, ~s]}, <<~s/bits, Y:~w, ~s/bits>>}", [R, 9, R, V, 9, V]);
        5 when T =:= bits -> t("{{b, [{q, <<Y:32>>}, ~s]}, <<Y:32, ~s/bits>>}", [R, V]);
        6 when T =/= funct ->
            N = pick([4, 60, 240]),
            t("{{t, [{q, <<Y:32, 7:8>>}, {t, lists:duplicate(~w, ~s)}]}, {<<Y:32, 7:8>>, {~s}}}", [N, R, seq(", ", lists:duplicate(N, V))]);
        7 -> t("{{c, ~s, RX}, [~s | X]}", [R, V]);
        _ -> t("{~s, ~s}", [R, V])
    end.

%% ---- Places ----

%% The clauses, in text, with what stands around each pattern.
written(Clauses) -> written(Clauses, fun(P) -> P end).
written(Clauses, Around) -> seq(";\n", [["        ", Around(P), when_(G), " -> ", B] || {P, G, B} <- Clauses]).
when_("") -> "";
when_(G) -> [" when ", G].

wrapped(0, P) -> t("{Tag, ~s}", [P]);
wrapped(1, P) -> t("{~s, Tag}", [P]);
wrapped(2, P) -> t("#{tag := Tag, v := ~s}", [P]);
wrapped(3, P) -> t("[Tag | ~s]", [P]);
wrapped(4, P) -> t("[~s, Tag]", [P]);
wrapped(5, P) -> t("{Tag, {x, [~s, _]}, _}", [P]);
wrapped(6, P) -> t("#{Tag := ~s}", [P]);
wrapped(7, P) -> t("{Tag, ~s, _}", [P]);
wrapped(8, P) -> t("{_, Tag, ~s, _}", [P]);
%% What is in angle brackets comes behind the tag.
wrapped(9, P) ->
    case lists:flatten(P) of
        "<<" ++ Segments -> "<<Tag:32, " ++ Segments;
        A -> t("<<Tag:32, ~s/bits>>", [A])
    end.

in(T, Shape) ->
    fun(P) -> string:replace(lists:flatten(wrapped(Shape, P)), "Tag", T, all) end.

wait() -> pick(["    after 600000 -> fault(lost, R) end", "    end", "    after infinity -> [] end"]).
tag() -> pick(["make_ref()", "erlang:unique_integer()", "{I, make_ref()}", "<<I:40, (erlang:unique_integer([positive])):64>>"]).

%% Of every kind, an expression that gives values with their recipes.
kind(heads) ->
    F = t("f~w", [n()]),
    also([seq(";\n", [t("~s(~s, R, X, RX, Y, O, E)~s -> ~s", [F, P, when_(G), B]) || {P, G, B} <- clauses("R")]), ".\n\n"]),
    pick([t("~s(V, R, X, RX, Y, O, E)", [F]), t("~s(V, R, X, RX, Y, O, E) ++ ~s(X, RX, V, R, Y, O, E)", [F, F])]);
kind(cases) -> t("case V of~n~s end", [written(clauses("R"))]);
kind(funs) ->
    F = var("F"),
    t("begin ~s = fun~n~s end, ~s(V)~s end", [F, written(clauses("R"), fun(P) -> ["(", P, ")"] end), F, pick(["", t(" ++ ~s(V)", [F])])]);
kind(receive_tagged) -> 
    T = var("Tag"), S = r(9) - 1,
    t("begin ~s = ~s, junk(I, ~w), deliver(~s, E, ~s, ~w, R, V), receive~n~s~n~s end", [T, tag(), pick([0, 1, 5]), delivery(), T, S, written(clauses("R"), in(T, S)), wait()]);
kind(raw_receive) ->
    Cs = lists:append([refined(clause(K, "R")) || K <- some(2 + r(3), [bin, bin, bin, bits, int])]) ++ [last("R")],
    T = var("Tag"),
    t("begin ~s = I, junk(I, ~w), deliver(~s, E, ~s, 9, R, V),~n    receive~n~s~n~s end",
      [T, pick([0, 1, 4, 30]), delivery(), T, written(Cs, in(T, 9)), wait()]);
kind(receive_many) ->
    Ts = [{var("Tag"), r(9) - 1} || _ <- lists:seq(1, 1 + r(3))],
    t("begin ~s,~n    lists:append([~s]) end",
      [seq(", ", [t("~s = ~s, deliver(~s, E, ~s, ~w, R, V), junk(I, ~w)", [T, tag(), delivery(), T, S, r(4)]) || {T, S} <- Ts]),
       seq(",\n    ", [t("receive~n~s~n~s", [written(clauses("R"), in(T, S)), wait()]) || {T, S} <- some(9, Ts)])]);
kind(refusing) ->
    T = var("Tag"), U = var("Tag"), A = var("A"), B = var("B"), C = var("C"),
    N = pick([1, 3, 20, 60]),
    t("begin ~s = make_ref(), [~s ! {~s, K, [K], {K}} || K <- lists:seq(1, ~w)], ~s = ~s, deliver(~s, E, ~s, 0, R, V),~n    receive~n        {~s, ~s, ~s, ~s} when ~s -> fault(refused, {q, ~s});~n~s~n~s",
      [U, "self()", U, N, T, tag(), delivery(), T, U, A, B, C, seq(", ", [untrue([{A, any}, {B, any}, {C, any}, {"X", any}]) || _ <- lists:seq(1, r(2))]),
       A, written([{t("{~s, ~s}", [T, P]), G, Bo} || {P, G, Bo} <- clauses("R")]), wait()])
    ++ t(" ++ [receive {~s, K, [K], {K} = M} when ~s -> {{q, {K}}, M} after 600000 -> fault(lost, {q, K}) end || K <- lists:seq(1, ~w)] end",
         [U, true([{"X", any}, {"K", any}, {"M", any}]), N]);
kind(polling) ->
    T = var("Tag"), S = r(9) - 1,
    t("begin ~s = ~s, junk(I, ~w), receive~n~s~n    after ~w -> deliver(~w, E, ~s, ~w, R, V) end, receive~n~s~n    after 0 -> fault(lost, R) end end",
      [T, tag(), r(5), written([{P, G, "fault(early, R)"} || {P, G, _} <- clauses("R")], in(T, S)), pick([0, 0, 1]), pick([0, 5]), T, S,
       written(clauses("R"), in(T, S))]);
kind(trying) ->
    t("try hunt_v:same(~s) of~n~s~n    catch CC:CE:CS -> fault({CC, CE, CS}, R)~s end",
      ["V", written(clauses("R")), pick(["", "", " after chk0(V, R), chk0(X, RX)"])]);
kind(throwing) ->
    F = t("f~w", [n()]),
    Class = pick(["throw", "error", "exit"]),
    also(t("~s(0, V) -> ~s({tag, V});~n~s(N, V) -> A = {N, <<N:300>>}, [A | ~s(N - 1, V)] ++ A.~n~n", [F, Class, F, F])),
    St = pick(["", t(":~s", [var("St")])]),
    t("try ~s(I rem ~w, V) catch~n~s end", [F, pick([2, 30, 300]), written(clauses("R"), fun(P) -> t("~s:{tag, ~s}~s", [Class, P, St]) end)]);
kind(catching) ->
    {E, P1} = pick([{"throw(V)", "~s"}, {"error(V)", "{'EXIT', {~s, _}}"}, {"exit(V)", "{'EXIT', ~s}"}, {"([nope] = V)", "{'EXIT', {{badmatch, ~s}, _}}"},
                    {"(case V of [nope] -> 1 end)", "{'EXIT', {{case_clause, ~s}, _}}"},
                    {"apply(erlang, element, [0, V])", "{'EXIT', {badarg, [{erlang, element, [_, ~s], _} | _]}}"},
                    {"apply(erlang, atom_to_list, [{V, X}])", "{'EXIT', {badarg, [{erlang, atom_to_list, [{~s, _}], _} | _]}}"},
                    {"throw({X, V, [V | X]})", "{_, ~s, _}"}]),
    t("case catch ~s of~n~s end", [E, written(clauses("R"), fun(P) -> t(P1, [P]) end)]);
kind(comprehension) ->
    {P, Vs, Parts} = clause(pick([cons, tuple2, tuple3, bin, bits, int, map]), "RV"),
    Names = [{"X", any} | Vs],
    t("lists:append([~s || {RV, ~s} <- [{R, V}, {RX, X}, {{t, [R, RX]}, {V, X}}, {{c, RX, R}, [X | V]}, {R, V}, {{m, [{1, R}]}, #{1 => V}}, {{b, [{q, <<Y:900>>}]}, <<Y:900>>}]~s])",
      [body(Parts), P, pick(["", [", ", built(Names), " =/= O"], [", ", built(Names), " =/= O, ", built(Names), " =/= O"]])]);
kind(down) ->
    t("begin {_, Mon} = spawn_monitor(fun() -> ~sexit({why, V}) end), junk(I, ~w), receive~n~s~n~s end",
      [pick(["", "grow(1000), ", "put(x, X), "]), r(6) - 1, written(clauses("R"), fun(P) -> t("{'DOWN', Mon, process, _, {why, ~s}}", [P]) end), wait()]);
kind(exits) ->
    t("begin Lin = spawn_link(fun() -> ~sexit({why, V}) end), junk(I, ~w), receive~n~s~n~s end",
      [pick(["", "grow(1000), ", "receive after 1 -> ok end, "]), r(6) - 1, written(clauses("R"), fun(P) -> t("{'EXIT', Lin, {why, ~s}}", [P]) end), wait()]);
kind(loop) ->
    F = t("f~w", [n()]),
    Vs = [{"X", any}, {"V", any}, {"T", any}],
    B = built(Vs),
    also(t("~s(0, _, _, _, _, T) -> T;~n~s(N, Y, X, V, O, T) -> ~s.~n~n",
           [F, F, pick([t("U = ~s, hunt_v:same(U), ~s(N - 1, (Y + 1) rem 9, X, V, O, ~s)", [B, F, pick(["T", "T", "N", "[N]"])]),
                        t("case ~s of O -> T; ~s -> hunt_v:same(Z), ~s(N - 1, (Y + 1) rem 9, X, V, O, {Z, N}) end", [built([{"X", any}, {"V", any}, {"N", any}]), "Z", F]),
                        t("if ~s -> T; ~s -> ~s(N - 1, N, X, V, O, T) end", [untrue([{"X", any}, {"V", any}, {"N", any}]), "true", F]),
                        t("hunt_v:same({<<N:32, 7:8>>, {~s}}), ~s(N - 1, Y, X, V, O, T)", [seq(", ", lists:duplicate(pick([10, 240, 240]), "N")), F]),
                        t("Z = [<<N:~w>> | T], ~s(N - 1, Y, X, V, O, case N rem 50 of 0 -> []; _ -> Z end)", [pick([9, 64, 600, 3000]), F])])])),
    t("begin put({~s, pd}, {X, [V | X], {X, {V}}}), ~s(scaled(~w), Y rem 5, X, V, O, []), {PA, [PB | PA], {PA, {PB}}} = erase({~s, pd}), [{R, PB}, {RX, PA}] end",
      [F, F, pick([200, 1000, 3000]), F]);
kind(binaries) ->
    N = pick([1, 3, 8, 9, 32, 64, 300]),
    M = pick([0, 1, 8, 500]),
    RB = var("RB"),
    t("begin ~s = {b, [{q, <<Y:~w>>}, R, {q, <<(Y + 1):~w>>}]}, case <<Y:~w, V/bits, (Y + 1):~w>> of~n~s end end",
      [RB, N, M, N, M, written(lists:append([refined(clause(K, RB)) || K <- some(3, [bin, bits, int, bin])]) ++ [last(RB)])]);
kind(appending) ->
    F = t("f~w", [n()]),
    W = pick([8, 8, 16, 64, 72, 5]),
    Rec = t("{b, [R, {ap, hunt_v, numbers, [{q, N}, {q, Top}, {q, ~w}]}]}", [W]),
    also(t("~s(0, _, _, _, _, K) -> K;~n"
           "~s(N, Top, B, R, E, K) ->~n    A = <<B/bits, N:~w>>,~n    K1 = case N rem ~w of~n        0 -> [{~s, A} | K];~n        1 -> [{{b, [~s, {q, <<N:24>>}]}, <<A/bits, N:24>>} | K];~n"
           "        2 -> self() ! {junk, ~s, A}, K;~n        3 when bit_size(A) >= 20 -> <<C:20/bits, D/bits>> = A, [{{bits, 0, 20, ~s}, C}, {{rest, 20, ~s}, D} | K];~n        4 -> server(E, N) ! {hold, {self(), N rem 3}, ~s, A}, K;~n"
           "        5 -> collect(N rem 3, E), K;~n        6 -> self() ! {junk, ~s, {A, <<A/bits, 0:9>>, A}}, K;~n        _ -> K end,~n    ~s(N - 1, Top, ~s, R, E, lists:sublist(K1, 9)).~n~n",
           [F, F, W, pick([7, 20, 60]), Rec, Rec, Rec, Rec, Rec, Rec, ["{t, [", Rec, ", {b, [", Rec, ", {q, <<0:9>>}]}, ", Rec, "]}"], F, "A"])),
    N = pick([10, 60, 300]),
    t("~s(~w, ~w, ~s, R, E, [])", [F, N, N, pick(["V", "<<V/bits>>", "V"])]);
kind(parsing) ->
    F = t("f~w", [n()]),
    N = pick([1, 8, 40, 65, 13]),
    also(t("~s(<<A:~w/bits, B/bits>>, K, X, Y, O)~s -> ~s(B, [A | K], X, Y, O);~n~s(B, K, _, _, _) -> lists:reverse([B | K]).~n~n",
           [F, 8 * N, pick(["", [" when ", true([{"A", bits}, {"B", bits}, {"X", any}])]]), F, F])),
    T = var("Tag"), A = var("A"), B = var("B"), C = var("C"),
    t("begin ~s = I, junk(I, ~w), deliver(~s, E, ~s, 9, R, V), receive~n        <<~s:32, ~s:~w/bits, ~s/bits>> -> [{{ap, hunt_v, chunks, [{q, ~w}, R]}, ~s(~s, [~s], X, Y, O)}];~n        <<~s:32, ~s/bits>> -> [{R, ~s}]~n~s end",
      [T, r(8), delivery(), T, T, A, 8 * N, B, 8 * N, F, B, A, T, C, C, wait()]);
kind(maps) ->
    N = pick([3, 20, 31, 33, 60, 200]),
    Z = N + r(40),
    t("begin Ma = lists:foldl(fun(K, M) -> M#{K => [K | V]} end, #{0 => X}, lists:seq(1, ~w)), Mb = Ma#{1 := {V, X}, ~w => X, {V} => Y}, #{1 := {Va, Xa}} = Mb,~n"
      "    Mc = ~s, [{{m, [{0, RX} | [{K, {c, {q, K}, R}} || K <- lists:seq(1, ~w)]]}, Ma}, {{ap, maps, merge, [{m, [{0, RX} | [{K, {c, {q, K}, R}} || K <- lists:seq(1, ~w)]]}, {ap, maps, from_list, [{l, [{t, [{q, 1}, {t, [R, RX]}]}, {t, [{q, ~w}, RX]}, {t, [{t, [R]}, {q, Y}]}]}]}]}, Mc}, {R, Va}, {RX, Xa}] end",
      [N, Z, pick(["Mb", "maps:map(fun(_, A) -> A end, Mb)", "maps:from_list(maps:to_list(Mb))", "maps:merge(Ma, Mb)", "maps:filter(fun(_, A) -> {A, X} =/= O end, Mb)"]), N, N, Z]);
kind(records) ->
    W = pick([9, 64, 600]),
    t("begin Ra = hunt_v:same(#rec{a = V, c = X, f = <<Y:~w>>}), collect(~w, E), Rb = Ra#rec{b = [V | X], d = {X}, e = <<Y:77>>, h = V}, Rc = setelement(3, setelement(5, setelement(2, Rb, X), [V]), ~s),~n"
      "    [{{t, [{q, rec}, R, {q, 1}, RX, {q, []}, {q, undefined}, {q, <<Y:~w>>}, {q, {}}, {q, undefined}]}, Ra}, {{t, [{q, rec}, R, {c, R, RX}, RX, {t, [RX]}, {q, <<Y:77>>}, {q, <<Y:~w>>}, {q, {}}, R]}, Rb}, {{t, [{q, rec}, RX, {t, [R, RX]}, RX, {l, [R]}, {q, <<Y:77>>}, {q, <<Y:~w>>}, {q, {}}, R]}, Rc}] end",
      [W, r(3), "{V, X}", W, W, W]);
%% Copies of a wide tuple with literals of this module, which is loaded anew meanwhile. Some
%% compilers make the copy first, and write into it then. Now and then there is so much beside it
%% that the copy is old at once. No recipe is a literal of the module: it would hold what must be
%% held by others.
kind(updating) ->
    W = pick([13, 13, 40, 120, 700, 1300]),
    put(wide, [W | get(wide)]),
    [A, B, C] = lists:sort(some(3, lists:seq(3, W - 1))),
    Seldom = pick([20, 100]),
    [LA, LB, LC, LD] = [r(16) - 1 || _ <- [1, 2, 3, 4]],
    T = var("T"),
    Copy = pick([t("~s#wide_~w{f~w = ~w, f~w = ~w, f~w = ~w, f~w = K}", [T, W, A, hunt_v:lit(LA), B, hunt_v:lit(LB), C, hunt_v:lit(LC), W]),
                 t("~s#wide_~w{f~w = ~w, f~w = V, f~w = ~w, f~w = K}", [T, W, A, hunt_v:lit(LA), B, C, hunt_v:lit(LC), W]),
                 t("setelement(~w, setelement(~w, setelement(~w, setelement(~w, ~s, K), ~w), ~w), ~w)", [A, B, C, W, T, hunt_v:lit(LC), hunt_v:lit(LB), hunt_v:lit(LA)])]),
    %% What element B is: a literal or the value, as the copy's text says.
    RB = case string:find(Copy, "= V,") of nomatch -> t("{lit, Y * 16 + ~w}", [LB]); _ -> "R" end,
    F = t("f~w", [n()]),
    N = pick([1, 5, 40]),
    also(t("~s(0, ~s, _, L) -> [~s | L];~n~s(K, ~s, V, L) -> ~s~s(K - 1, ~s, V, [~s | L]).~n~n",
           [F, T, T, F, T, pick(["", "", "erlang:yield(), ", "K rem 4 =:= 0 andalso reload(), "]), F, Copy, T])),
    t("begin {_, Fs} = process_info(self(), fullsweep_after), Bu = case (I + Y) rem ~w of 0 -> process_flag(fullsweep_after, 0), lists:seq(1, scaled(~w)); _ -> [] end,~n"
      "    [_ | Ls] = lists:reverse(~s(~w, hunt_v:wide(~w, [{2, Y}]), V, [])), ~s, collect(~w, E), grow(~w), ~s, process_flag(fullsweep_after, Fs), chk0(length(Bu) > 0, {q, (I + Y) rem ~w =:= 0}),~n"
      "    [{{wide, ~w, [{2, {q, Y}}, {~w, {lit, Y * 16 + ~w}}, {~w, ~s}, {~w, {lit, Y * 16 + ~w}}, {~w, {q, K}}]}, U} || {K, U} <- lists:zip(lists:seq(~w, 1, -1), Ls)] ++ [{{lit, Y * 16 + ~w}, ~w}] end",
      [Seldom, pick([515000, 523000, 524200]),
       F, N, W, pick(["reload()", "ok", "[reload() || _ <- [1, 2]]"]), r(3), pick([100, 3000]), pick(["reload()", "ok"]), Seldom,
       W, A, LA, B, RB, C, LC, W, N, LD, hunt_v:lit(LD)]);
kind(capturing) ->
    t("begin Fa = fun() -> {V, X} end, Fb = fun(Z) -> [Fa(), Z | X] end, collect(~w, E), Fc = ~s, grow(~w), Fd = fun Lo(0, A) -> {A, V}; Lo(N, A) -> Lo(N - 1, [N | A]) end,~n    {Va, Xa} = Fa(), [Vb | Xb] = tl(Fc(V)),~n"
      "    [{{t, [R, RX]}, {Va, Xa}}, {R, Vb}, {RX, Xb}, {{t, [{ap, lists, seq, [{q, 1}, {q, Y}]}, R]}, Fd(Y, [])}] end",
      [r(3), pick(["Fb", "binary_to_term(term_to_binary(Fb))", "hunt_v:echoed(Fb)", "hunt_v:echoed(Fb)", "begin put(fb, Fb), grow(2000), erase(fb) end"]), pick([100, 5000])]);
kind(ets) ->
    t("begin Ta = table(E, ~w), Ka = {make_ref(), X}, ~s, true = ets:insert(Ta, {Ka, V, X, [V, X]}), Tk = ets:member(Ta, Ka), collect(~w, E), ets:info(Ta, type) =/= bag andalso ets:update_element(Ta, Ka, {3, {X, V}}),~n"
      "    case ~s of~n~s end ++ begin ets:delete(Ta, Ka), [{{q, true}, Tk}] end end",
      [r(4) - 1, pick(["grow(100)", "true = ets:insert(Ta, {Ka, X, X, X}), true = ets:delete(Ta, Ka)", "ets:insert_new(Ta, {Ka, V, V, V}), ets:delete(Ta, Ka)"]), r(3),
       pick(["ets:lookup(Ta, Ka)", "ets:take(Ta, Ka)", "ets:match_object(Ta, {Ka, '_', '_', '_'})", "ets:select(Ta, [{{Ka, '_', '_', '_'}, [], ['$_']}])"]),
       written(clauses("R"), fun(P) -> t("[{_, ~s, _, _}]", [P]) end)]);
kind(ets_select) ->
    N = pick([1, 3, 12]),
    t("begin Ta = ets:new(t, [~s, ~s]), ets:insert(Ta, [{K, V, {K, X}, [K]} || K <- lists:seq(1, ~w)]), "
      "La = lists:sort(ets:select(Ta, [{{'$1', '$2', '$3', '_'}, ~s, [{{'$1', {{'$2', '$3'}}, {const, X}}}]}])), collect(~w, E), [ets:delete(Ta, K) || K <- lists:seq(1, ~w, 2)],~n"
      "    {Lb, Co} = case ets:select(Ta, [{{'_', '$2', '$3', '_'}, [], [['$2' | '$3']]}], 3) of '$end_of_table' -> {[], '$end_of_table'}; Se -> Se end, Fo = ets:foldl(fun({_, A, _, _}, N) -> case ~s of O -> N; _ -> chk0(A, R), N + 1 end end, 0, Ta), Le = ets:select_delete(Ta, [{{'_', {const, X}, '_', '_'}, [], [true]}]),~n"
      "    Lc = case Co of '$end_of_table' -> []; _ -> case ets:select(Co) of {Lm, _} -> Lm; _ -> [] end end, ets:delete(Ta),~n"
      "    [{{t, [{q, K}, {t, [R, {t, [{q, K}, RX]}]}, RX]}, A} || {K, A} <- lists:zip(lists:seq(1, length(La)), La)] ++ [{R, A} || [A | _] <- Lb ++ Lc] ++ [{{q, Fo}, Fo}, {{q, Le}, Le}] end",
      [pick(["set", "ordered_set"]), pick(["public", "compressed", "private"]), N, pick(["[]", "[{'=/=', '$2', {{'$3', nope}}}]", "[{'=/=', {{'$1', '$2'}}, {const, {X}}}]", "[{is_integer, '$1'}, {'=/=', ['$2' | '$3'], nope}]"]),
       r(3), N, built([{"A", any}, {"X", any}])]);
kind(match_spec) ->
    t("begin Ms = ets:match_spec_compile([{{'$1', ~s, '$3'}, ~s, [~s]}]), collect(~w, E), La = ets:match_spec_run([{V, K, X} || K <- lists:seq(1, ~w)], Ms), [{{t, [R, {l, [RX, R]}, RX]}, A} || A <- La] end",
      ["'$2'", pick(["[]", "[{'=/=', {{'$1', '$2'}}, '$3'}]", "[{'<', '$2', 10}, {is_tuple, {const, {X}}}]"]), "{{'$1', ['$3', '$1'], {const, X}}}", r(3), pick([1, 10, 60])]);
kind(dictionary) ->
    A = t("d~w", [n()]),
    N = pick([1, 4, 40]),
    t("begin [put({~s, K}, {K, V, [X]}) || K <- lists:seq(1, ~w)], ~s, Da = [D || {{~s, K}, _} = D <- get(), is_integer(K)], Db = [erase({~s, K}) || K <- lists:seq(1, ~w)], [{{t, [{q, K}, R, {l, [RX]}]}, D} || {{_, K}, D} <- Da] ++ [{{t, [{q, K}, R, {l, [RX]}]}, D} || {K, _, _} = D <- Db] end",
      [A, N, pick(["grow(1000)", "grow(30000)", "collect(1, E)", "collect(2, E)"]), A, A, N]);
kind(persistent) ->
    t("begin Ka = {self(), ~w, I rem 3}, persistent_term:put(Ka, {V, [X | V]}), {Va, [Xa | Va]} = persistent_term:get(Ka), ~s, case Va of~n~s end ++ [{RX, Xa}] end",
      [n(), pick(["persistent_term:erase(Ka)", "persistent_term:erase(Ka)", "persistent_term:put(Ka, X), persistent_term:erase(Ka)", "collect(1, E), persistent_term:erase(Ka), grow(100)"]), written(clauses("R"))]);
kind(timers) ->
    t("begin Ti = erlang:start_timer(~w, self(), {V, X}), Tj = erlang:send_after(100000, self(), [V | X]), junk(I, ~w), collect(~w, E), receive~n~s~n~s ++ begin true = is_integer(erlang:cancel_timer(Tj)), [] end end",
      [r(3) - 1, r(5), r(3), written(clauses("R"), fun(P) -> t("{timeout, Ti, {~s, _}}", [P]) end), wait()]);
kind(spawning) ->
    F = t("f~w", [n()]),
    also([seq(";\n", [t("~s(~s, R, X, RX, Y, O, E)~s -> ~s", [F, P, when_(G), B]) || {P, G, B} <- clauses("R")]), ".\n\n"]),
    t("begin Se = self(), Re = make_ref(), {Pi, Mo} = spawn_opt(fun() -> ~sLs = ~s(V, R, X, RX, Y, O, E), ~sSe ! {Re, Ls} end, [monitor, {min_heap_size, ~w}, {fullsweep_after, ~w}, {message_queue_data, ~s}]), ~sreceive {Re, Lr} -> receive {'DOWN', Mo, _, Pi, Wh} -> Wh =:= normal orelse fault(Wh, R) end, Lr after 600000 -> fault(lost, R) end end",
      [pick(["", "junk(I, 5), ", "grow(5000), "]), F, pick(["", "collect(1, E), ", "chkl(Ls), collect(2, E), "]), pick([10, 233, 9000]), pick([0, 1, 65535]), pick(["on_heap", "off_heap"]),
       pick(["", "", "erlang:garbage_collect(Pi), ", "(catch erlang:suspend_process(Pi)), grow(2000), (catch erlang:resume_process(Pi)), "])]);
kind(natives) ->
    Calls = some(4, [{"binary_to_term(term_to_binary({V, X}))", "{t, [R, RX]}"},
                     {"lists:reverse(lists:seq(1, Y), V)", "{ap, lists, reverse, [{q, lists:seq(1, Y)}, R]}"},
                     {"lists:sort([{K rem 7, V} || K <- lists:seq(1, 60)])", "{ap, lists, sort, [{l, [{t, [{q, K rem 7}, R]} || K <- lists:seq(1, 60)]}]}"},
                     {"maps:to_list(maps:map(fun(_, A) -> [A] end, #{1 => V, 2 => X}))", "{l, [{t, [{q, 1}, {l, [R]}]}, {t, [{q, 2}, {l, [RX]}]}]}"},
                     {"list_to_tuple([V, X | lists:duplicate(Y, V)])", "{t, [R, RX | lists:duplicate(Y, R)]}"},
                     {"tuple_to_list({V, X, <<Y:500>>})", "{l, [R, RX, {q, <<Y:500>>}]}"},
                     {"erlang:append_element({V, X}, [V])", "{t, [R, RX, {l, [R]}]}"},
                     {"[V, X, Y] ++ X", "{ap, erlang, '++', [{l, [R, RX, {q, Y}]}, RX]}"},
                     {"[V, X, V, Y] -- [V]", "{ap, erlang, '--', [{l, [R, RX, R, {q, Y}]}, {l, [R]}]}"},
                     {"element(3, lists:keyfind(V, 2, [{1, x, Y}, {1, V, X}]))", "RX"},
                     {"binary_to_term(term_to_binary([V, V, X], [compressed]))", "{l, [R, R, RX]}"},
                     {"binary_to_term(iolist_to_binary(erlang:term_to_iovec({X, V})))", "{t, [RX, R]}"},
                     {"begin {Mx, Mp} = {maps:merge(#{1 => V}, maps:from_list([{K, X} || K <- lists:seq(2, 50)])), 3}, {map_get(1, Mx), map_get(Mp, Mx)} end", "{t, [R, RX]}"},
                     {"element(3, (self() ! {junk, R, V}))", "R"},
                     {"erlang:make_tuple(Y, V, [{1, X}])", "{ap, erlang, setelement, [{q, 1}, {t, lists:duplicate(Y, R)}, RX]}"}]),
    t("[~s]", [seq(",\n     ", [t("{~s, ~s}", [R, C]) || {C, R} <- Calls])])
    ++ case r(2) of 1 -> " ++ case V of <<_/binary>> -> " ++ bytes() ++ "; _ -> [] end"; 2 -> "" end;
%% What is so long that natives leave for a thread of their own with their arguments.
kind(leaving) ->
    Calls = some(2, ["lists:nthtail(100001, lists:duplicate(100001, x) ++ [V | X])",
                     "lists:nthtail(100001, lists:reverse(lists:duplicate(100001, x), [V | X]))",
                     "element(2, lists:keyfind(k, 1, lists:reverse([{k, [V | X]} | lists:duplicate(100001, {j, 1})])))",
                     "hd(binary_to_term(term_to_binary([[V | X] | lists:duplicate(100001, x)])))",
                     "element(1, list_to_tuple([[V | X] | lists:duplicate(100001, x)]))",
                     "hd(tuple_to_list(erlang:make_tuple(100001, x, [{1, [V | X]}])))",
                     "begin 100003 = length([V, X | lists:duplicate(100001, x)]), [V | X] end",
                     "map_get(k, maps:from_list([{k, [V | X]} | lists:duplicate(100001, {j, 1})]))"]),
    %% It takes a hundred times as long as other steps.
    t("case I rem 16 of 0 -> [~s]; _ -> [{R, V}, {RX, X}] end", [seq(",\n     ", [t("{{c, R, RX}, ~s}", [C]) || C <- Calls])]);
kind(lists) ->
    {C, R} = pick([{"lists:reverse(V)", "{ap, lists, reverse, [R]}"}, {"lists:sort(V)", "{ap, lists, sort, [R]}"}, {"lists:usort(V)", "{ap, lists, usort, [R]}"},
                   {"V ++ V", "{ap, lists, append, [R, R]}"}, {"[A || A <- V, {A, X} =/= O]", "R"}, {"lists:append([[A] || A <- V])", "R"},
                   {"begin {La, Lb} = lists:split(length(V) div 2, V), La ++ Lb end", "R"}, {"tl([X | V])", "R"}, {"[A || {_, A} <- lists:zip(lists:seq(1, length(V)), V)]", "R"},
                   {"tuple_to_list(list_to_tuple(V))", "R"}, {"lists:append(V, [X])", "{ap, lists, append, [R, {l, [RX]}]}"},
                   {"lists:foldr(fun(A, B) -> [A | B] end, [], V)", "R"}]),
    t("[{~s, ~s}, {R, V}] ++ case V of~n~s end", [R, C, written(clauses("R"))]);
kind(regions) ->
    F = t("f~w", [n()]),
    T = var("Tag"),
    N = pick([10, 600, 3000, 20000]),
    Kind = r(5),
    also(t("~s(T, N) -> receive {T, B} -> {element(N, B), element(5, B)} after 600000 -> fault(lost, {q, N}) end.~n~n", [F])),
    %% What is large itself, and comes from somewhere else, goes into something large.
    Inner = pick(["{27, I div 3 * 3}", "{27, I}", "R"]),
    t("begin ~s = make_ref(), Na = 6 + I rem (5 + scaled(~w)), Rl = ~s, Vl = via(~s, E, Rl), Ra = {ap, hunt_v, big, [{q, Na}, {q, 11 + scaled(~w)}, {q, ~w}, Rl, RX]}, deliver(~s, E, ~s, 0, Ra, hunt_v:big(Na, 11 + scaled(~w), ~w, Vl, X)), {Va, Xa} = ~s(~s, Na),~n"
      "    [begin collect((K + ~w) rem 2 + 1, E), grow(~w) end || K <- lists:seq(1, ~w)], ~s end",
      [T, N, Inner, pick(["0", "5", "9", "I"]), N, Kind, delivery(), T, N, Kind, F, T, r(2), pick([0, 1000]), r(4) - 1,
       pick(["[{{t, [{q, Na}, Rl]}, Va}, {{t, [{q, 5}, RX]}, Xa}]", 
             "begin {Na, Vb} = Va, Vc = hunt_v:part(3, hunt_v:part(1, hunt_v:part(1, Vb))), [collect(1, E) || _ <- [1, 2, 3]], [{{t, [{q, Na}, Rl]}, Va}, {{part, 3, {part, 1, {part, 1, Rl}}}, Vc}] end",
             "begin {Na, Vb} = Va, Vc = hunt_v:part(I, Vb), collect(1, E), [{{part, I, Rl}, Vc}, {{t, [{q, 5}, RX]}, Xa}] end"])]);
kind(bit_comprehension) ->
    W = pick([1, 7, 8, 13, 33, 65]),
    C = pick([8, 40, 13, 520]),
    t("begin Zs = [(I + K) band ((1 bsl ~w) - 1) || K <- lists:seq(1, ~w)], Bz = << <<Z:~w>> || Z <- Zs >>, By = << <<V/bits, Z:~w, Y:7>> || Z <- [1, 2, 3], ~s =/= O >>, Yz = [Z || <<Z:~w>> <= Bz], Vc = [{A, <<A/bits, 1:1>>} || <<A:~w/bits>> <= V],~n"
      "    Vd = [{Y, A, B} || <<A:~w/bits, B:9>> <= <<V/bits, V/bits>>, ~s =/= O], chk0(length(Vd), {q, (2 * bit_size(V)) div ~w}),~n"
      "    [{{q, Zs}, Yz}, {{ap, hunt_v, whole_chunks, [{q, ~w}, R]}, [A || {A, _} <- Vc]}, {{b, [R, {q, <<1:~w, Y:7>>}, R, {q, <<2:~w, Y:7>>}, R, {q, <<3:~w, Y:7>>}]}, By}] end",
      [W, pick([3, 40, 200]), W, W, built([{"X", any}, {"Z", any}]), W, C, C, built([{"A", bits}, {"X", any}, {"B", any}]), C + 9, C, W, W, W]);
kind(told) ->
    N = n(),
    t("begin Ta = make_ref(), self() ! {Ta, V, X}, put({~w, told}, [V]), [{messages, La}, {dictionary, Lb}, {backtrace, Lc} | _] = process_info(self(), [messages, dictionary, backtrace, ~s]), collect(~w, E), receive {Ta, _, _} -> ok end, [{Ta, Va, Xa}] = [M || {Ta_, _, _} = M <- La, Ta_ =:= Ta], [{_, [Vb]}] = [D || {{~w, told}, _} = D <- Lb], erase({~w, told}), [{R, Va}, {RX, Xa}, {R, Vb}, {{q, true}, is_binary(Lc)}] end",
      [N, pick(["heap_size", "binary", "garbage_collection_info", "links"]), r(3), N, N]).

delivery() -> pick(["0", "0", "I", "I", "I bsr 4", "1", "2", "4", "7"]).

bytes() ->
    t("[~s]", [seq(", ", some(3, [t("{{ap, ~s, ~s, [~s]}, ~s:~s(~s)}", [M, F, seq(", ", [recipe(A) || A <- As]), M, F, seq(", ", As)])
                                  || {M, F, As} <- [{"binary", "split", ["V", "<<1>>", "[global]"]}, {"binary", "replace", ["V", "<<1>>", "<<\"long\">>", "[global]"]},
                                                    {"re", "run", ["V", "<<\".(5.)\">>", "[{capture, all, binary}]"]}, {"re", "split", ["V", "<<\"\\\\001\">>"]},
                                                    {"unicode", "characters_to_binary", ["V", "latin1"]}, {"unicode", "characters_to_list", ["V", "latin1"]},
                                                    {"binary", "copy", ["V", "3"]}, {"binary", "matches", ["V", "[<<1>>, <<5>>]"]}, {"erlang", "binary_to_list", ["V"]},
                                                    {"erlang", "iolist_to_binary", ["[V, [V | V]]"]}, {"erlang", "split_binary", ["V", "0"]}, {"erlang", "term_to_binary", ["V"]},
                                                    {"binary", "encode_hex", ["V"]}, {"erlang", "iolist_to_iovec", ["[V, [V | V]]"]}]]))]).
recipe("V") -> "R";
recipe("[V, [V | V]]") -> "{l, [R, {c, R, R}]}";
recipe(A) -> ["{q, ", A, "}"].
