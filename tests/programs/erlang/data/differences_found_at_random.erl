%% Repeats calls for which random tests have found differences between the runtimes. @stress
-module(differences_found_at_random).
-export([main/0]).

main() ->
    %% A sum beyond its modulus is brought within it by a binary, even an empty one.
    [io:format("~w ~w: ~w~n", [S, L, erlang:adler32(S, L)])
     || S <- [0, 1, 65520, 65521, 268435455, 16#FFFFFFFF], L <- [[], "", <<>>, [<<>>], [[] | <<>>], [<<>>, <<>>], "a", [<<>>, $a], [$a | <<>>], <<1:4, 2:4>>]],
    %% Where a binary is one of the parts, or becomes a part of one.
    Long = binary:copy(<<"0123456789">>, 300),
    <<_:3, Odd/bits>> = Long,
    Bits = [binary:part(Long, 0, N) || N <- [63, 64, 65, 66, 255, 256, 257, 3000]] ++ [<<0:(N * 8), 1:3>> || N <- [63, 64, 65, 66]] ++ [<<0:3>>]
        ++ [begin <<R:N/bits, _/bits>> = Odd, R end || N <- [64 * 8, 65 * 8, 65 * 8 + 3]] ++ [begin <<_:8, R:N/bits, _/bits>> = Long, R end || N <- [64 * 8, 65 * 8, 65 * 8 + 3]],
    [io:format("~w: ~w~n", [bit_size(B), [sizes(T) || T <- [B, [B, B], {B, "text", [B | B]}, #{a => B}]]]) || B <- Bits],
    Pieces = ["", "a", lists:duplicate(100, $x), lists:duplicate(255, $x), <<>>, <<"ab">>] ++ [binary:part(Long, 1, N) || N <- [100, 127, 128, 200, 255, 256, 257, 300, 511, 512, 513, 2999]]
        ++ [begin <<R:N/bytes, _/bits>> = Odd, R end || N <- [100, 255, 256, 400, 600]],
    [io:format("~w ~w ~w~n", [iolist_size(A), iolist_size(B), parts(L)]) || A <- Pieces, B <- Pieces, L <- [[A, B], [A, B | <<"end">>], [A, [B, A], $b]]],
    [io:format("~w~n", [parts([lists:duplicate(N, P)])]) || N <- [30, 33, 40, 100, 200], P <- [$a, <<"a">>, <<"0123456789">>, binary:part(Long, 0, 250), binary:part(Long, 0, 256)]],
    %% What can't be a character is told before what is no character data, if it comes before.
    [io:format("~w ~w: ~0p~n", [F, A, try apply(unicode, F, A) of R -> R catch C:E -> {C, E} end])
     || F <- [characters_to_binary, characters_to_list], X <- [-1, 1 bsl 70, -(1 bsl 63), 1.5, a, 16#110000, 16#D800, -(1 bsl 59) - 1], T <- [2.4, [], [b], <<"x">>, "ok"],
        L <- [[X | T], ["a", X | T], [[X] | T], [<<"b">>, [X] | T], [[X | 2.5], "k"]], A <- [[L], [L, latin1]]],
    [io:format("~w: ~0p~n", [T, try erlang:dt_restore_tag(T) catch C:E -> {C, E} end]) || T <- [true, false, {1, []}, a, []]],
    %% Large floats without decimals lose zeros before the point, too.
    [io:format("~w ~w ~w: ~w~n", [X, D, C, try float_to_binary(X, [{decimals, D} | C]) catch _:E -> E end])
     || X <- [1.0e15, 9007199254740992.0, 9007199254740994.0, 1.0e16, -1.0e20, 1.23e22, 1.5e300, 3.8624711231878076e113, 0.0, 100.0],
        D <- [0, 1, 3, 18, 19, 30], C <- [[], [compact]]],
    %% The first word of a reference of this node, and of any in the older formats.
    [io:format("~w ~s ~w ~w ~w: ~0p~n", [T, Node, N, Cr, W, try is_reference(binary_to_term(list_to_binary([131, T, <<N:16, 100, (length(Node)):16>>, Node, Cr, <<W:32>>, lists:duplicate(N - 1, <<2:32>>)]))) catch C:E -> {C, E} end])
     || {T, Cs} <- [{90, [<<0:32>>, <<7:32>>]}, {114, [0, 3, 4]}], Node <- ["nonode@nohost", "no@where"], N <- [1, 2, 3, 4, 5, 6], Cr <- Cs, W <- [1, 16#3FFFF, 16#40000, 16#FE0000DE]],
    %% UTF-8 by the pattern's own word: what comes after a match goes from byte to byte.
    [io:format("~w ~s: ~w~n", [F, P, try apply(re, F, [S, P | A]) catch C:E -> {C, E} end])
     || {F, A} <- [{run, [[global]]}, {split, []}, {replace, ["x", [global]]}, {run, [[global, {capture, all, binary}]]}], S <- [<<65, 67, 45, 224, 160, 128>>, <<"a\x{1F600}b\x{E4}"/utf8>>, <<"abc">>, <<>>],
        P <- ["(*UTF8)", "(*UTF8)a?", "(*UTF8)(?<=(.))", "(*UTF8)\\b|(?=(.))", "(*UTF8).*?", "(*UTF8)()[^a]?"]],
    %% Equal keys that look otherwise.
    All = fun() -> [E || {{?MODULE, K}, _} = E <- persistent_term:get(), K == 0] end,
    [io:format("~w ~w ~w: ~w~n", [A, B, V, [{Do(), All()} || Do <- [fun() -> persistent_term:put({?MODULE, A}, 1) end, fun() -> persistent_term:put({?MODULE, B}, V) end, fun() -> persistent_term:get({?MODULE, A}) end,
                                                                   fun() -> persistent_term:erase({?MODULE, B}) end, fun() -> persistent_term:put({?MODULE, B}, V) end, fun() -> persistent_term:put({?MODULE, A}, V) end,
                                                                   fun() -> persistent_term:erase({?MODULE, A}) end, fun() -> persistent_term:erase({?MODULE, B}) end]]])
     || A <- [0.0, -0.0], B <- [0.0, -0.0], V <- [1, 2]],
    %% What a process is asked to do for another must be something.
    [io:format("~w: ~w~n", [A, try erlang:check_process_code(P, A) catch C:E -> {C, E} end]) || P <- [self(), spawn(fun() -> ok end), whereis(init)], A <- [lists, [], 1.5, #{}]],
    [io:format("~w ~w: ~w~n", [K, A, try erts_internal:request_system_task(whereis(init), normal, {K, none, A}) catch C:E -> {C, E} end])
     || K <- [check_process_code, garbage_collect, strange], A <- [lists, [], 1.5, #{}, major, minor]],
    %% Floats as older encoders write them.
    [io:format("~p: ~p~n", [T, try binary_to_term(<<131, 99, (list_to_binary(T))/binary, 0:((31 - length(T)) * 8)>>) catch error:E -> E end])
     || T <- [" 1.5", "1.5 ", "1", "1.", ".5", "1,5", "1e5", "1.5e", "1.5e+", "+1.5", "--1.5", "inf", "nan", "1.5e400", "1.5x", "1.5e5x", "1.5E5", "1.5e-400", "", "-", "\t1.5", "-0.0", "00001.50"]],
    %% Names that are too long and no UTF-8 either.
    [io:format("~w ~w: ~w~n", [A, N, [try is_atom(binary_to_atom(B)) catch error:E -> E end
                                      || B <- [<<131, (binary:copy(<<A>>, N - 1))/binary>>, <<(binary:copy(<<A>>, N - 1))/binary, 131>>,
                                               <<(binary:copy(<<A>>, N - 2))/binary, 195>>, binary:copy(<<A>>, N)]]])
     || A <- [97, 195], N <- [10, 255, 256, 257, 300, 1020, 1021, 5000]],
    %% No heap is to be smaller than it may be.
    [io:format("~w ~w: ~w~n", [Min, Max, try is_pid(spawn_opt(fun() -> ok end, Min ++ [{max_heap_size, #{size => Max, kill => false, error_logger => false}}])) catch _:E -> E end])
     || Min <- [[], [{min_heap_size, 100}], [{min_heap_size, 1000}]], Max <- [0, 1, 232, 233, 500, 1000, 2000]],
    %% A character that is none, and a size that is too big, by older instructions.
    Forms = [begin {ok, Ts, _} = erl_scan:string(Text), {ok, Form} = erl_parse:parse_form(Ts), Form end
             || Text <- ["-module(older).", "-export([a/3, b/3, c/3]).", "a(A, B, C) -> <<A:B/binary, C/utf8>>.", "b(_, B, C) -> <<1:B, C/utf16>>.", "c(A, B, C) -> <<C/utf8, A:B/binary>>."]],
    {ok, older, Beam} = compile:forms(Forms, [r23]),
    {module, older} = code:load_binary(older, "older.erl", Beam),
    [io:format("~w ~w ~w: ~w~n", [F, B, Ch, try older:F(<<"abc">>, B, Ch) catch _:E -> E end])
     || F <- [a, b, c], B <- [0, 2, 1 bsl 80, -1, 1 bsl 61, x], Ch <- ["abc", [], $a, 16#10FFFF, 16#110000, 16#D800, -1, 1 bsl 70, x]],
    applied().

%% More arguments than a function may have.
applied() ->
    Logged = logger:get_primary_config(),
    logger:set_primary_config(level, none),
    Shape = fun({R, {F, As}}) when is_list(As) -> {R, is_function(F), length(As)}; (R) -> R end,
    Frame = fun({M, F, A, _}) -> {M, F, if is_list(A) -> {length(A)}; true -> A end} end,
    [begin
         L = lists:seq(1, N),
         Here = [try Call() of R -> R catch C:R:T -> {C, Shape(R), [Frame(X) || X <- lists:sublist(T, 2)]} end
                 || Call <- [fun() -> {apply(M, F, L)} end, fun() -> apply(M, F, L) end, fun() -> apply(erlang, apply, [M, F, L]) end, fun() -> erlang:hibernate(M, F, [L | x]) end]],
         There = [begin
                      {P, Ref} = spawn_monitor(A, B, C),
                      receive {'DOWN', Ref, _, P, {R, T}} -> {Shape(R), [Frame(X) || X <- T]}; {'DOWN', Ref, _, P, R} -> R after 1000 -> exit(P, kill), none end
                  end || {A, B, C} <- [{M, F, L}, {erlang, apply, [M, F, L]}, {erlang, apply, [M, F, [1 | lists:seq(2, N) ++ tail]]}]],
         io:format("~w:~w ~w: ~w ~w~n", [M, F, N, Here, There])
     end || {M, F} <- [{lists, nothing}, {nowhere, nothing}, {erlang, abs}, {erlang, apply}, {erlang, error}], N <- [255, 256, 257, 1022, 1023, 1024, 1025, 3000], M =/= nowhere orelse N =:= 256],
    [begin
         L = lists:seq(1, N),
         Here = [try Call() of R -> R catch C:R:T -> {C, Shape(R), [Frame(X) || X <- lists:sublist(T, 2)]} end
                 || Call <- [fun() -> {apply(F, L)} end, fun() -> apply(F, L) end, fun() -> apply(erlang, apply, [F, L]) end, fun() -> apply(F, L ++ tail) end]],
         {P, Ref} = spawn_monitor(erlang, apply, [F, L]),
         There = receive {'DOWN', Ref, _, P, {R, T}} -> {Shape(R), [Frame(X) || X <- T]}; {'DOWN', Ref, _, P, R} -> R end,
         io:format("~w: ~w ~w~n", [N, Here, There])
     end || F <- [fun() -> ok end, fun(X) -> X end, fun(_, _) -> Logged end, fun lists:nothing/3, nothing], N <- [254, 255, 300, 1021, 1022, 1023, 1024, 3000]],
    logger:set_primary_config(Logged).

sizes(T) ->
    L = erlang:term_to_iovec(T),
    true = iolist_to_binary(L) =:= term_to_binary(T),
    [byte_size(B) || B <- L].

parts(L) ->
    V = erlang:iolist_to_iovec(L),
    true = iolist_to_binary(V) =:= iolist_to_binary(L),
    [byte_size(B) || B <- V].
