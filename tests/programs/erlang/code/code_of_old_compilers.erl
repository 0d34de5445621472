%% Code of earlier compilers builds binaries step by step and makes funs without `make_fun3`.
%% Hand-written instructions and functions take the rare branches. @stress @fence
-module(code_of_old_compilers).
-export([main/0]).

main() ->
    [release(R) || R <- [r22, r23, r24]],
    by_hand(),
    trusted(),
    compiled().

release(R) ->
    Text = "-module(old).\n-export([build/3, append/2, text/1, sizes/2, floats/2, parts/1, funs/1, wait/1, utf/1, all/1, long/1]).\n"
        "build(X, Y, Z) -> <<X, Y:16/little, Z:64/float, \"end\", X:3, Y:5>>.\n"
        "append(B, X) -> <<B/binary, X:16, B/binary>>.\n"
        "text(L) -> << <<C/utf8>> || C <- L >>.\n"
        "sizes(N, B) -> <<N:N/unit:4, B:N/binary, B/bitstring>>.\n"
        "floats(X, Y) -> (X + Y) * 2.0 - X / Y.\n"
        "parts(B) -> << <<X:7>> || <<X>> <= B >>.\n"
        "funs(X) -> fun(Y) -> {X, Y} end.\n"
        "wait(P) -> R = make_ref(), P ! {R, x}, receive {R, M} -> M after 1000 -> none end.\n"
        "utf(C) -> <<C/utf8, C/utf16, C/utf32, C/utf16-little>>.\n"
        "all(B) -> <<(byte_size(B)):32, B/binary, 0:(8 * byte_size(B))>>.\n"
        "long(L) -> << <<X:N>> || {X, N} <- L >>.\n",
    {ok, old} = load(Text, [R]),
    B = <<"some bytes">>,
    show(R, [
        fun() -> old:build(1, 2, 3.5) end,
        fun() -> old:build(a, 2, 3.5) end,
        fun() -> old:build(1, 2, a) end,
        fun() -> old:append(B, 77) end,
        fun() -> old:append(<<1:1>>, 77) end,
        fun() -> old:append(old:append(B, 1), 2) end,
        fun() -> old:text("h\x{e9}\x{20ac}\x{10000}") end,
        fun() -> old:text([16#D800]) end,
        fun() -> old:sizes(3, B) end,
        fun() -> old:sizes(-1, B) end,
        fun() -> old:sizes(1 bsl 70, B) end,
        fun() -> old:floats(1.5, 2.5) end,
        fun() -> old:parts(B) end,
        fun() -> (old:funs(1))(2) end,
        fun() -> old:wait(self()) end,
        fun() -> old:utf($a) end,
        fun() -> old:utf(16#10FFFF) end,
        fun() -> old:utf(-1) end,
        fun() -> old:all(B) end,
        fun() -> old:long([{1, 3}, {200, 9}, {-1, 70}]) end,
        fun() -> old:long([{1, x}]) end
    ]).

load(Text, Options) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    Forms = forms(Tokens, [], []),
    {ok, M, Code} = compile:forms(Forms, Options),
    code:purge(M),
    {module, M} = code:load_binary(M, "old.erl", Code),
    {ok, M}.

forms([{dot, _} = D | T], Form, Forms) ->
    {ok, F} = erl_parse:parse_form(lists:reverse([D | Form])),
    forms(T, [], [F | Forms]);
forms([H | T], Form, Forms) ->
    forms(T, [H | Form], Forms);
forms([], [], Forms) ->
    lists:reverse(Forms).

show(What, Funs) ->
    [io:format("~p: ~p~n", [What, result(F)]) || F <- Funs].

result(F) ->
    try F() of V -> V
    catch C:R -> {C, R}
    end.

%% Code by hand. What a module can't be loaded for is shown in place of what it does.
hand(Name, Arity, Is, Calls) ->
    Code = {hand, [{Name, Arity}], [],
            [{function, Name, Arity, 2,
              [{label, 1}, {func_info, {atom, hand}, {atom, Name}, Arity}, {label, 2}] ++ Is}], 9},
    {ok, Beam} = beam_asm:module(Code, [], [], []),
    code:purge(hand),
    case code:load_binary(hand, "hand", Beam) of
        {module, hand} -> show(Name, [fun() -> apply(hand, Name, Args) end || Args <- Calls]);
        {error, _} -> io:format("~p: not loaded~n", [Name])
    end.

by_hand() ->
    hand(floats, 2, [
        {fmove, {x, 0}, {fr, 0}},
        {fconv, {x, 1}, {fr, 1}},
        {bif, fsub, {f, 0}, [{fr, 0}, {fr, 1}], {fr, 2}},
        {bif, fnegate, {f, 0}, [{fr, 2}], {fr, 3}},
        {test_heap, {alloc, [{words, 0}, {floats, 1}, {funs, 0}]}, 0},
        {fmove, {fr, 3}, {x, 0}},
        return],
        [[1.5, 2], [-1.0e308, 1.0e308], [1.0, 7.25]]),
    hand(frames, 1, [
        {allocate, 2, 1},
        {init_yregs, {list, [{y, 0}, {y, 1}]}},
        {move, {x, 0}, {y, 1}},
        {call_ext, 0, {extfunc, erlang, self, 0}},
        {move, {y, 1}, {x, 0}},
        {deallocate, 2},
        {test, is_atom, {f, 3}, [{x, 0}]},
        return,
        {label, 3},
        {move, {atom, other}, {x, 0}},
        return],
        [[a], [1]]),
    hand(drops, 1, [
        {allocate, 0, 1},
        {call_ext, 1, {extfunc, erlang, atom_to_list, 1}},
        {deallocate, 0},
        {test, is_nonempty_list, {f, 3}, [{x, 0}]},
        return,
        {label, 3},
        {move, {atom, other}, {x, 0}},
        return],
        [[a], ['']]),
    hand(selects, 1, [
        {select_val, {x, 0}, {f, 1}, {list, [{float, 1.5}, {f, 3}, {float, 2.5}, {f, 4}]}},
        {label, 3},
        {move, {atom, first}, {x, 0}},
        return,
        {label, 4},
        {move, {atom, second}, {x, 0}},
        return],
        [[1.5], [2.5], [1]]),
    hand(no_case, 1, [
        {test, is_atom, {f, 3}, [{x, 0}]},
        return,
        {label, 3},
        if_end],
        [[a], [1]]).

%% What stock doesn't load, or trusts: registers of a frame that hold nothing when the heap is
%% collected, moves of floats.
trusted() ->
    case catch purlin:sharing() of
        #{} ->
            hand(holes, 1, [
                {allocate, 2, 1},
                {move, {x, 0}, {y, 1}},
                {call_ext, 0, {extfunc, erlang, garbage_collect, 0}},
                {move, {y, 1}, {x, 0}},
                {deallocate, 2},
                return],
                [[a]]),
            hand(heap_holes, 1, [
                {allocate_heap, 2, 2, 1},
                {put_list, {x, 0}, nil, {y, 1}},
                {call_ext, 0, {extfunc, erlang, garbage_collect, 0}},
                {move, {y, 1}, {x, 0}},
                {deallocate, 2},
                return],
                [[$a]]),
            hand(moves, 1, [
                {fmove, {x, 0}, {fr, 0}},
                {fmove, {fr, 0}, {fr, 1}},
                {test_heap, {alloc, [{words, 0}, {floats, 1}, {funs, 0}]}, 0},
                {fmove, {fr, 1}, {x, 0}},
                return],
                [[1.5]]);
        _ ->
            io:format("holes: a~nheap_holes: \"a\"~nmoves: 1.5~n")
    end.

%% A module whose functions are big, or fail in every way.
compiled() ->
    N = 9000,
    Tuple = ["_," || _ <- lists:seq(1, N - 1)],
    Text = ["-module(old).\n-export([far/1, record/1, clauses/2, tries/1, conditions/1, skip/1, next/1, bytes/2, native/1, floats/2, first/1, rest/1]).\n"
        "-record(r, {a, b}).\n-nifs([native/1]).\n"
        "far({", Tuple, "X}) -> X;\nfar(_) -> none.\n"
        "record(X) -> [X#r.b].\n"
        "clauses(1, X) -> X;\nclauses(2, [X]) -> X.\n"
        "tries(X) -> try self(), X of 1 -> a after ok end.\n"
        "conditions(X) -> if X > 1 -> a; X < 0 -> b end.\n"
        "skip(<<_/utf8, _/utf16, _/utf32, B/binary>>) -> B;\nskip(_) -> none.\n"
        "next(<<$a, T/binary>>) -> next(T);\nnext(<<$b, T/binary>>) -> [b | next(T)];\n"
        "next(<<$c, T/binary>>) -> [c | next(T)];\nnext(<<$d, T/binary>>) -> [d | next(T)];\n"
        "next(<<_, T/binary>>) -> T;\nnext(B) -> B.\n"
        "bytes(<<X, T/binary>>, A) when X > 10 -> bytes(T, A + X);\nbytes(<<X, _/binary>> = B, A) -> {X, B, A};\n"
        "bytes(<<>>, A) -> A.\n"
        "native(X) -> {not_loaded, X}.\n"
        "first(B) when is_binary(B) -> case B of <<$a, _/bits>> -> 1; <<$b, _/bits>> -> 2; <<$c, _/bits>> -> 3; <<$d, _/bits>> -> 4;"
        " _ -> 5 end.\n"
        "rest(<<$x, B/binary>>) -> rest_of(B); rest(<<_>>) -> none.\n"
        "rest_of(<<$a, B/bits>>) -> rest_of(B);\nrest_of(<<$b, B/bits>>) -> [b | rest_of(B)];\n"
        "rest_of(<<$c, B/bits>>) -> [c | rest_of(B)];\nrest_of(<<$d, B/bits>>) -> [d | rest_of(B)];\nrest_of(<<>>) -> [].\n"
        "floats(X, Y) when is_float(X), is_float(Y) -> -(X - Y) * 2.0 + X / Y.\n"],
    {ok, old} = load(lists:flatten(Text), []),
    show(compiled, [
        fun() -> old:far(list_to_tuple(lists:seq(1, N))) end,
        fun() -> old:far(x) end,
        fun() -> old:record({r, 1, 2}) end,
        fun() -> old:record({r, 1}) end,
        fun() -> old:clauses(2, [x]) end,
        fun() -> old:clauses(2, x) end,
        fun() -> old:tries(1) end,
        fun() -> old:tries(2) end,
        fun() -> old:conditions(0) end,
        fun() -> old:skip(<<$a/utf8, 1024/utf16, $c/utf32, 1, 2>>) end,
        fun() -> old:skip(<<255>>) end,
        fun() -> old:next(<<"abacdbe", 1, 2>>) end,
        fun() -> old:next(<<"ab", 1:3>>) end,
        fun() -> old:bytes(<<20, 30, 1, 2>>, 0) end,
        fun() -> old:bytes(<<20, 30>>, 0) end,
        fun() -> [old:first(B) || B <- [<<"ab">>, <<"b">>, <<"c">>, <<"d">>, <<"e">>, <<>>, <<1:3>>]] end,
        fun() -> old:first(x) end,
        fun() -> old:rest(<<"xabcd">>) end,
        fun() -> old:rest(<<"xabe">>) end,
        fun() -> old:rest(<<"a">>) end,
        fun() -> old:native(1) end,
        fun() -> old:floats(1.5, 2.5) end,
        fun() -> old:floats(1.5, 0.0) end
    ]).
