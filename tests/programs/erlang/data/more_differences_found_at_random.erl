%% Repeats calls for which random tests have found differences: incomplete character data, patterns
%% that PCRE rejects, and stack traces that are raised again. @stress
-module(more_differences_found_at_random).
-export([main/0, one/1, call/1, ends/1]).

main() ->
    %% Text of a float ends with a zero.
    [io:format("~0p ~0p~n", [B, [try F() catch C:E -> {C, E} end || F <- [fun() -> binary_to_float(same(B)) end, fun() -> list_to_float(binary_to_list(B)) end, fun() -> string:to_float(binary_to_list(B)) end]]])
     || B <- [<<"3.14", 0>>, <<"3.14", 0, 0>>, <<"3.14", 0, "x">>, <<0>>, <<0, "3.14">>, <<"3.", 0, "14">>, <<"3.1", 0, "e5">>, <<"3.14e", 0, "5">>, <<"3.14 ">>]],
    %% What may be the beginning of a character is told so by its length, and what follows is joined
    %% to it.
    [io:format("~w ~w: ~w~n", [F, A, try apply(unicode, F, A) catch C:E -> {C, E} end])
     || F <- [characters_to_list, characters_to_binary], B <- [<<5, 247, 212>>, <<5, 200>>, <<224, 97>>, <<240, 128>>, <<255>>, <<97, 195>>, <<240, 159, 152>>],
        L <- [[B], [[B]], [$a, B], [B, <<"A">>], [B, <<"A">>, "b"], [B, $b], [$a, [B, <<"A">>], "b"], [[[B] | <<"A">>], "b"], [B, <<>>, <<128>>, <<128>>, $a], [B | <<164, 195>>], B],
        A <- [[L, unicode], [L, utf8]]],
    [io:format("~w ~w: ~w~n", [F, L, try unicode:F(L) catch C:E -> {C, E} end])
     || F <- [characters_to_list, characters_to_binary], L <- [[<<1:9>>], [[<<255>>]], [<<255>>], [<<"a", 255>> | []], [<<255>> | <<"b">>], [<<"é"/utf8>>, 16#D800, "x"]]],
    %% PCRE sees nothing behind a zero.
    [io:format("~p ~p: ~p~n", [P, O, try {element(1, re:compile(P, O)), re:run(<<"xa", 0, "bc">>, P, O)} catch C:E -> {C, E} end])
     || P <- [<<"a", 0, "b[">>, <<"[", 0, "]">>, <<0>>, <<0, "x">>, "a\0(", <<"(a", 0, ")">>, <<"(?", 0>>, <<"a", 0, 255>>, <<"b\\0?c">>, <<"\\x00b">>], O <- [[], [unicode]]],
    %% Calls that come back to where they were called with nothing matched between, and what only
    %% looks so.
    [io:format("~s: ~p~n", [P, case re:compile(P) of {ok, _} -> ok; E -> E end])
     || P <- ["(?R)", "(?R)?", "a(?R)", "(?R)a", "a|(?R)", "(a*(?1))", "(a(?1)?)", "((?1))", "(|(?1)b)", "(?1)(a)", "\\b(?R)", "(?=a)(?R)b", "a?(b|(c)?(?1))", "(?:a|b?)(?0)", "(a|(?1)?b)", "a\\Q\\E(?R)",
              "\\Qab\\E*(?R)", "\\Qa\\E*(?R)", "(?:ab|c)(?R)", "(?(R)a|(?R)b)", "(?(R)a|b)(?R)", "(?(R)a)(?R)", "(?<n>a(?&m))(?<m>(?&n)?)", "(?<n>(?&m)x)(?<m>(?&n)?)", "(?2)(?1)(a)(b)", "(a*)(?1)(?R)", "(a)(?1)(?R)",
              "((?2)a(?1))(b)", "(?<n>(?P>n)b)", "(\\g<1>b)", "(\\g'-1'b)", "(a\\g'-1'b)", "(?+1)((?-1))", "a{0}(?R)", "a{0,}(?R)", "a{1,}(?R)", "a{,1}(?R)", "a+?(?R)", "a*+(?R)", "a+*(?R)", "(a+)+(?R)", "(a+)*?(?R)",
              "(?i)(?R)", "(?x)a *(?R)", "(?#c)(?R)", "(?>a)(?R)", "(*COMMIT)(?R)", "\\1(a)(?R)", "(a)\\1?(?R)", "()\\1(?R)", "[ab]?(?R)", "[ab](?R)", "\\x{41}?(?R)", "\\8(?R)", "|(?R)", "a|b|(?R)c", "((a)|b(?1))",
              "\\1\\8", "(|)\\g1\\81{0}x", "()\\2\\81", "()\\1\\8", "(?<=\\.(?=\\k{n}$))(?P<n>)*?", "(?<=(?=(a)\\1)b)", "(?<=(a)(?:\\1))",
              "x(?:(?:(?R)))", "(x(?:(?1)))(?R)", "((?R)", "(?R)[b-a]"]],
    %% Nor is there anything to repeat in an assertion.
    [io:format("~s: ~p~n", [P, case re:compile(P) of {ok, _} -> ok; E -> E end]) || C <- "abABzZGKdDvRXNCEfte01", T <- ["?)", "{2}", "*+(", "?"], P <- [[$\\, C | T], [$a, $\\, C | T]]],
    %% What ends a walk through a table is no key to go on from.
    [io:format("~w~n", [[try ets:F(X, '$end_of_table') catch C:R -> {C, R} end || F <- [next, prev, lookup, member]]])
     || O <- [set, ordered_set], L <- [[], [{a, 1}, {3, 2}], [{'$end_of_table', 1}, {b}]], X <- [ets:new(x, [O])], true <- [ets:insert(X, L)]],
    %% No copy of what isn't made of whole bytes.
    [io:format("~w~n", [try binary:copy(B, N) catch C:R -> {C, R} end]) || B <- [<<1:7>>, <<1, 2:7>>, <<>>, <<1>>, a], N <- [0, 1, -1, a, 1 bsl 70]],
    %% What no condition begins with.
    [io:format("~s: ~p~n", [P, case re:compile(P) of {ok, _} -> ok; E -> E end])
     || A <- ["*UTF8)", "*", "*UTF8)a)", "*ACCEPT)a)", "*F)a|b)", "@)a)", "(*F))a)", ")a)", "|)a)", "a*)b)", "*a)", "+)a)", "+a)", "-", "+0)a)", "0)a)", "-00)b)", "<", "<a", "<>)a)", "<1>)", "'", "''a)", "'a)", "R&)a)", "R&1)a)", "R&)a)", "R&*)a)", "R*)a)", "\\d)a)", "[a])b)",
              "?#x)a)", "?:a)b)", "?=a)b)", "?<a)b)", "?<=a)b)", "?<*)", " 1)a)", "1 )a)", "?C1)(?=a)b)", "DEFINE)*)"], P <- ["(?(" ++ A, "x(?(" ++ A, "()(?(" ++ A]],
    %% Sizes that stand in the code are looked at with the values; and stock counts the nodes of
    %% large maps twice.
    [io:format("~w ~w ~w: ~0p~n", [N, F, U, try built(N, F, U, S) catch error:R:T -> {R, element(4, hd(T))} end])
     || N <- lists:seq(1, 8), F <- [1.5, a], U <- [$a, a], S <- [0, 32, -1, a]],
    [io:format("~w~n", [erts_debug:size_shared(M)]) || N <- [32, 33, 100, 1000], M <- [maps:from_list([{I, I} || I <- lists:seq(1, N)])]],
    [io:format("~w~n", [erts_debug:size_shared({M, M, maps:put({0}, 1, M)})]) || N <- [31, 32, 40], M <- [maps:from_list([{{I}, I} || I <- lists:seq(1, N)])]],
    %% A trace that is raised again says no more where the function is that has no clause.
    [io:format("~w: ~0p~n", [N, ?MODULE:call(N)]) || N <- lists:seq(1, 22)],
    [io:format("~w: ~0p~n", [X, try_again(X)]) || X <- [function_clause, badarg, exit, throw]],
    %% In what is behind a repetition.
    [io:format("~s: ~p~n", [P, case re:compile(P) of {ok, _} -> ok; E -> E end])
     || A <- ["*", "+", "{2}", "{0}"], B <- ["*", "+", "?", "{2,}", " ", "(?#x)"], C <- ["*", "+", "?", "{2}", ""], T <- ["", ")", "[b-a]"], P <- ["a" ++ A ++ B ++ C ++ T, "(?x)a" ++ A ++ B ++ C ++ T]],
    %% Where one sends to what is nobody.
    [io:format("~0p~n", [try F() catch C:R:S -> {C, R, lists:sublist(S, 2)} end])
     || F <- [fun() -> same(1) ! x, ok end, fun() -> same(1) ! x end, fun() -> same(nobody) ! x, ok end, fun() -> {same(nobody), b, c} ! x end, fun() -> apply(erlang, same('!'), [1, x]) end,
              fun() -> erlang:send(same(1), x), ok end, fun() -> erlang:send(same(nobody), x, []) end]],
    %% The frame of a function stays that ends in a native, which goes on in another function.
    [io:format("~0p~n", [try ?MODULE:ends(N) catch C:R:S -> {C, R, [{M, F, if is_list(A) -> {length(A)}; true -> A end, I} || {M, F, A, I} <- lists:sublist(S, 3)]} end]) || N <- lists:seq(1, 9)],
    [io:format("~w ~0p~n", [N, [ends(N + X) || X <- [1]]]) || N <- [9, 10, 11]],
    %% Libraries that there aren't: what is said of their names.
    [io:format("~0p: ~0p~n", [L, try load(L) catch C:R -> {C, R} end])
     || L <- ["/no/where", "/no/z\x{B0}'", [300], <<"/no/\x{B0}"/utf8>>, <<0, 46>>, [0, 97], ["/no", ["/a", "b"]], <<>>, "", [1 bsl 30], a, ["/no", <<"b">>]]],
    %% A sign is an instruction, which adds an integer of zero.
    [io:format("~w ~w ~w ~w~n", [X, +X, apply(erlang, same('+'), [X]), -X]) || X <- [same(-0.0), same(0.0), same(1.5), same(1 bsl 70)]],
    %% Short traces.
    Depth = erlang:system_flag(backtrace_depth, 8),
    [begin
         erlang:system_flag(backtrace_depth, D),
         Here = [try Call() catch C:R:S -> {C, R, S} end || Call <- [fun() -> same(apply(erlang, same(error), A)) end, fun() -> same((same(fun erlang:error/2))(x, 1)) end, fun() -> same((same(fun erlang:error/1))(x)) end]],
         {P, Ref} = spawn_opt(erlang, error, A, [monitor]),
         There = receive {'DOWN', Ref, _, P, Z} -> Z end,
         io:format("~w: ~0p ~0p~n", [D, Here, There])
     end || D <- [0, 1, 2, 3], A <- [[x], [x, [1, 2]], [x, [1, 2], [{error_info, #{}}]]]],
    erlang:system_flag(backtrace_depth, Depth).

load(Name) -> erlang:load_nif(Name, 0).

ends(1) -> unicode:characters_to_list("a", strange);
ends(2) -> unicode:characters_to_binary([$a | b], utf16);
ends(3) -> X = same(3), same(X), unicode:characters_to_binary([$a | b], X);
ends(4) -> re:run("a", "(", [global]);
ends(5) -> re:run(["a" | b], "(", [global, unicode]);
ends(6) -> same(6), re:run([300], "a", [unicode, strange]);
ends(7) -> re:compile([300], [strange]);
ends(8) -> same(8), re:compile(["(" | a], [unicode]);
ends(9) -> re:run(a, [300], []);
ends(10) -> re:run("abcabc", "b", [global, {capture, all, list}]);
ends(11) -> same(11), unicode:characters_to_binary("ab", utf8, utf16);
ends(12) -> unicode:characters_to_list(<<0, 97>>, utf16).

one(1) -> 1.
same(X) -> X.

call(N) ->
    try again(N) of R -> R
    catch C:R:S -> {C, if is_tuple(R) -> element(1, R); true -> R end, [{M, F, if is_list(A) -> {length(A)}; true -> A end, I} || {M, F, A, I} <- lists:sublist(S, 3)]}
    end.

again(1) -> try one(same(a)), ok catch C:R:S -> erlang:raise(C, R, S) end;
again(2) -> try one(same(a)), ok catch _:R:S -> erlang:raise(exit, R, S) end;
again(3) -> try one(same(a)), ok catch C:_:S -> erlang:raise(C, foo, S) end;
again(4) -> try one(same(a)), ok after same(b) end;
again(5) -> try one(same(a)), ok catch error:badarg -> ok end;
again(6) -> try one(same(a)), ok catch C:R:S -> same(S), erlang:raise(C, R, S) end;
again(7) -> try try one(same(a)), ok catch C:R:S -> erlang:raise(C, R, S) end after ok end;
again(8) -> try try one(same(a)), ok catch throw:R:S -> erlang:raise(error, R, S) end after ok end;
again(9) -> try same(abs(same(a))) catch C:R:S -> erlang:raise(C, R, S) end;
again(10) -> try lists:map(fun same/1, same(1)), ok catch C:R:S -> erlang:raise(C, R, S) end;
again(11) -> try lists:keymap(fun same/1, 1, same(1)), ok catch C:R:S -> erlang:raise(C, R, S) end;
again(12) -> try ets:lookup(same(1), 2), ok catch C:R:S -> erlang:raise(C, R, S) end;
again(13) -> try same(1) + same(a) catch C:R:S -> erlang:raise(C, R, S) end;
again(14) -> try nowhere:same(a), ok catch C:R:S -> erlang:raise(C, R, S) end;
again(15) -> try (same(fun one/1))(2), ok catch C:R:S -> erlang:raise(C, R, S) end;
again(16) -> try (same(fun one/1))(2, 3), ok catch C:R:S -> erlang:raise(C, R, S) end;
again(17) -> try error(function_clause) catch C:R:S -> erlang:raise(C, R, S) end;
again(18) -> try error(function_clause, [1, 2]) catch C:R:S -> erlang:raise(C, R, S) end;
again(19) -> try error(x, [1, 2]) catch _:R:S -> erlang:raise(throw, R, S) end;
again(20) -> try throw(x) catch _:R:S -> erlang:raise(error, R, S) end;
again(21) -> try try one(same(a)), ok catch C:R:S -> erlang:raise(C, R, S) end catch C1:R1:S1 -> erlang:raise(C1, R1, S1) end;
again(22) -> catch try one(same(a)), ok catch C:R:S -> erlang:raise(C, R, S) end.

%% By a process's end.
try_again(X) ->
    logger:set_primary_config(level, none),
    {P, Ref} = spawn_monitor(fun() ->
        try case X of function_clause -> one(same(2)); badarg -> same(abs(same(a))); exit -> exit(x); throw -> throw(x) end
        catch C:R:S -> erlang:raise(C, R, S)
        end
    end),
    receive {'DOWN', Ref, process, P, R} -> R end.

built(1, F, U, _) -> <<F:0/float, U/utf32>>;
built(2, F, U, S) -> <<F:S/float, U/utf32>>;
built(3, F, U, _) -> <<U/utf32, F:0/float>>;
built(4, F, U, S) -> <<U/utf16, F:S/float>>;
built(5, F, U, _) -> <<F:7/float, U/utf16>>;
built(6, F, U, S) -> <<F:7/float, U:S/integer>>;
built(7, F, U, S) -> <<F:S/integer, U:7/float>>;
built(8, F, U, S) -> <<F:0/float, U:S/binary>>.
