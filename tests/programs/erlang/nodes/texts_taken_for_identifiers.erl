%% Texts of pids, ports and references of this node, well formed or not: which are taken, and for
%% what. Numbers wrap at 64 bits; the second number of a reference names a scheduler.
-module(texts_taken_for_identifiers).
-export([main/0]).

main() ->
    Numbers = [
        "0", "1", "07", "32768", "262143", "262144", "268435456", "4294967295", "4294967296",
        "18446744073709551615", "18446744073709551616", "99999999999999999999999", "", "+1", " 1",
        "1a", "0x1", "1."
    ],
    each(fun erlang:list_to_pid/1, lists:append([
        ["<0." ++ N ++ ".0>", "<0.1." ++ N ++ ">", "<" ++ N ++ ".1.0>"]
     || N <- Numbers
    ]) ++ ["", "<", "<0.1", "<0.1.0", "<0.1.0>>", "<0.1>", "<0.1.0.0>", "<0.1.0> ", "#Ref<0.1.0>"]),
    each(fun erlang:list_to_port/1, lists:append([
        ["#Port<0." ++ N ++ ">", "#Port<" ++ N ++ ".1>"]
     || N <- Numbers
    ]) ++ ["", "#Port", "#Port<0.1", "#Port<0.1>>", "#Port<0.1.0>", "#port<0.1>", "<0.1>", "#Port<>"]),
    S = erlang:system_info(schedulers),
    Makers = [
        (High bsl 18) bor (Bits bsl 16) bor Low
     || High <- [0, 1, 16#3fff], Bits <- [0, 1, 2, 3], Low <- [0, 1, S, S + 1, 65535]
    ],
    Refs = [
        "#Ref<0." ++ Last ++ "." ++ integer_to_list(M) ++ "." ++ First ++ ">"
     || M <- Makers, {First, Last} <- [{"1", "1"}, {"262143", "4294967295"}, {"262144", "1"}]
    ],
    Longer = [
        "#Ref<0." ++ More ++ ".5." ++ integer_to_list(M) ++ ".7>"
     || M <- Makers, M band (1 bsl 16) =:= 0, More <- ["1", "0.0", "9.4294967295", "1.2.3"]
    ],
    Odd = [["#Ref<0." ++ N ++ ".1.3>", "#Ref<0.1.1." ++ N ++ ">", "#Ref<" ++ N ++ ".1.1.3>"] || N <- Numbers],
    each(fun erlang:list_to_ref/1, ["#Ref<0.4.3.2>", "#Ref<0.1>", "#Ref<>", "#Ref<0.1.2>"] ++ Refs ++ Longer
        ++ lists:append(Odd)),
    %% Those that exist are taken, whoever made them.
    Me = self(),
    Made = lists:append([
        begin
            spawn(fun() -> Me ! [make_ref() || _ <- lists:seq(1, 5000)] end),
            receive Rs -> Rs end
        end
     || _ <- lists:seq(1, 4)
    ]),
    io:format("~w~n", [lists:usort([list_to_ref(ref_to_list(R)) =:= R || R <- Made])]).

each(F, Texts) ->
    [
        io:format("~s ~0p~n", [T, try F(T) of X -> {X, node(X) =:= node()} catch E:R -> {E, R} end])
     || T <- Texts
    ].
