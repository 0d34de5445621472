%% Changes each byte of an encoding of each kind of term to many values, removes it, doubles it, or
%% cuts the encoding there. Prints a sum of the terms and errors for each kind and position. Then
%% decodes external funs of large arity, references without words, and, safely, functions that
%% another term has named. @seconds 120
-module(external_terms_with_changed_bytes).
-export([main/0]).

main() ->
    %% The emulator of OTP 27 may end at such funs.
    Funs = erlang:system_info(otp_release) =/= "27",
    [kind(N, B) || {N, B = <<T, _/binary>>} <- seeds(), Funs orelse T =/= 112 andalso T =/= 113],
    Funs andalso funs(),
    [io:format("no words ~w: ~0p~n", [T, reference(<<T, 0:16, (node_name())/binary, C/binary, 0:32>>)]) || {T, C} <- [{114, <<0>>}, {90, <<0:32>>}]],
    [io:format("only no words ~w: ~0p~n", [T, used(<<T, 0:16, N/binary, C/binary, R/binary>>)]) || {T, C} <- [{114, <<0>>}, {90, <<0:32>>}], N <- [node_name(), <<119, 3, "a@b">>], R <- [<<7:32>>, <<7:64>>]],
    [io:format("no words elsewhere ~w: ~0p~n", [T, elsewhere(<<T, 0:16, 119, 3, "a@b", C/binary, 0:32>>)]) || {T, C} <- [{114, <<1>>}, {90, <<7:32>>}]],
    io:format("safe: ~0p~n", [safe()]),
    ok.

used(B) -> try element(2, binary_to_term(<<131, B/binary>>, [used])) catch error:badarg -> badarg end.

%% Named functions count as known when code has changed.
safe() ->
    Named = fun(M, F) -> <<131, 113, 119, (byte_size(M)), M/binary, 119, (byte_size(F)), F/binary, 97, 3>> end,
    [A, B, Native, Own] = [Named(M, F) || {M, F} <- [{<<"m">>, <<"safe1">>}, {<<"m">>, <<"safe2">>}, {<<"erlang">>, <<"setelement">>}, {<<"lists">>, <<"foldl">>}]],
    {ok, x_m, Code} = compile:forms([{attribute, 1, module, x_m}]),
    Known = fun(X) -> try binary_to_term(X, [safe]) of F when is_function(F) -> known catch error:badarg -> unknown end end,
    _ = [safe1, safe2],
    First = [Known(X) || X <- [A, B, Native, Own]],
    Funs = [binary_to_term(A), erlang:make_fun(m, list_to_atom("safe2"), 3)],
    Second = [Known(X) || X <- [A, B]],
    {module, x_m} = code:load_binary(x_m, "x_m", Code),
    {First, Second, [Known(X) || X <- [A, B]], Funs}.

funs() ->
    [io:format("arity ~0p: ~0p~n", [N, named(<<113, 119, 1, "m", 119, 1, "f", B/binary>>)]) || {N, B} <- arities()],
    [io:format("fun of ~w and ~w: ~0p~n", [A, F, own(local_fun(A, 1, F))]) || {A, F} <- [{0, 255}, {1, 255}, {255, 0}, {255, 1}, {255, 255}, {0, 256}, {3, 300}]],
    ok.

node_name() -> <<119, 13, "nonode@nohost">>.

seeds() ->
    N = <<119, 3, "a@b">>,
    H = node_name(),
    [{atom100, <<100, 2:16, "ok">>}, {atom115, <<115, 2, "ok">>}, {atom118, <<118, 2:16, "ok">>}, {atom119, <<119, 3, 195, 169, "x">>},
     {integer97, <<97, 200>>}, {integer98, <<98, -5:32>>}, {integer110, <<110, 9, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9>>}, {integer111, <<111, 9:32, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9>>},
     {float70, <<70, 1.5/float>>}, {float99, <<99, "1.50000000000000000000e+00", 0, 0, 0, 0, 0>>}, {nil, <<106>>},
     {string107, <<107, 3:16, "abc">>}, {list108, <<108, 2:32, 97, 1, 97, 2, 106>>}, {tuple104, <<104, 2, 97, 1, 119, 1, "a">>}, {tuple105, <<105, 2:32, 97, 1, 119, 1, "a">>},
     {map116, <<116, 2:32, 97, 1, 97, 2, 119, 1, "b", 97, 3>>}, {binary109, <<109, 3:32, "abc">>}, {bits77, <<77, 2:32, 3, 255, 255>>},
     {pid103, <<103, N/binary, 1:32, 2:32, 1>>}, {own_pid103, <<103, H/binary, 90:32, 0:32, 0>>}, {pid88, <<88, N/binary, 1:32, 2:32, 3:32>>}, {own_pid88, <<88, H/binary, 90:32, 0:32, 0:32>>},
     {port102, <<102, N/binary, 1:32, 1>>}, {own_port102, <<102, H/binary, 1:32, 0>>}, {port89, <<89, N/binary, 1:32, 7:32>>}, {own_port89, <<89, H/binary, 1:32, 0:32>>},
     {port120, <<120, N/binary, 1:64, 7:32>>}, {own_port120, <<120, H/binary, 1:64, 0:32>>}, {reference101, <<101, N/binary, 1:32, 1>>}, {own_reference101, <<101, H/binary, 1:32, 0>>},
     {reference114, <<114, 3:16, N/binary, 1, 1:32, 2:32, 3:32>>}, {own_reference114, <<114, 3:16, H/binary, 0, 1:32, 2:32, 3:32>>},
     {reference90, <<90, 3:16, N/binary, 1:32, 1:32, 2:32, 3:32>>}, {own_reference90, <<90, 3:16, H/binary, 0:32, 1:32, 2:32, 3:32>>},
     {long_reference90, <<90, 5:16, N/binary, 1:32, 1:32, 2:32, 3:32, 4:32, 5:32>>},
     {export113, <<113, 119, 1, "m", 119, 1, "f", 97, 3>>}, {export113_98, <<113, 119, 1, "m", 119, 1, "f", 98, 256:32>>},
     {export113_110, <<113, 119, 1, "m", 119, 1, "f", 110, 2, 0, 0, 1>>}, {export113_111, <<113, 119, 1, "m", 119, 1, "f", 111, 2:32, 0, 0, 1>>},
     {fun112, local_fun(2, 0, 2)}].

local_fun(Arity, Index, Free) ->
    B = <<Arity, 1:128, Index:32, Free:32, 119, 2, "mm", 97, Index, 98, 77:32, 88, (node_name())/binary, 1:32, 0:32, 0:32, (binary:copy(<<97, 1>>, Free))/binary>>,
    <<112, (byte_size(B) + 4):32, B/binary>>.

%% Those at which stock reads what is no part of the term are left out: tags of its own tables,
%% sizes of funs, and references of no words.
values(B) -> lists:usort([B - 1, B + 1, B bxor 128] ++ lists:seq(0, 10) ++ lists:seq(97, 121) ++ [31, 32, 33, 63, 64, 70, 77, 88, 89, 90, 127, 128, 129, 192, 195, 224, 240, 253, 254, 255]) -- ([-1, 256] ++ lists:seq(71, 76)).

kind(N, B) ->
    L = byte_size(B),
    Cut = [result(binary:part(B, 0, K)) || K <- lists:seq(0, L - 1), N =/= fun112],
    Removed = [result(<<X/binary, Y/binary>>) || N =/= fun112, I <- lists:seq(0, L - 1), <<X:I/binary, _, Y/binary>> <- [B]],
    Doubled = [result(<<X/binary, V, V, Y/binary>>) || N =/= fun112, I <- lists:seq(0, L - 1), <<X:I/binary, V, Y/binary>> <- [B]],
    Changed = [[result(<<X/binary, W, Y/binary>>) || W <- values(V)] || I <- lists:seq(0, L - 1), N =/= fun112 orelse I =:= 5, <<X:I/binary, V, Y/binary>> <- [B]],
    io:format("~w: ~0p ~w ~w ~w ~0p~n", [N, result(B), erlang:phash2(Cut), erlang:phash2(Removed), erlang:phash2(Doubled), [erlang:phash2(R) || R <- Changed]]).

result(<<T, 0:16, _/binary>>) when T =:= 90; T =:= 114 -> no_words;
%% Whether a safe decoder finds an export that another term has named depends on stock's generations
%% of code.
result(<<113, _/binary>> = B) -> result(B, []);
result(B) -> [result(B, Options) || Options <- [[], [safe]]].

result(B, Options) ->
    try binary_to_term(<<131, B/binary>>, [used | Options]) of
        {T, Used} -> {text(T), Used, erlang:crc32(term_to_binary(T)), erlang:phash2(T)}
    catch error:badarg -> badarg
    end.

text(T) when is_reference(T); is_pid(T); is_port(T) -> {kind(T), node(T)};
text(T) -> lists:flatten(io_lib:format("~0W", [T, 30])).

kind(T) when is_reference(T) -> reference;
kind(T) when is_pid(T) -> pid;
kind(_) -> port.

arities() ->
    [{A, <<98, A:32>>} || A <- [0, 255, 256, 257, 65535, 65536, 1 bsl 27, (1 bsl 31) - 1, -1, -256]]
        ++ [{{A, S}, <<110, 8, S, A:64/little>>} || S <- [0, 1], A <- [0, 1, 256, 1 bsl 31, (1 bsl 32) - 1, 1 bsl 32, (1 bsl 59) - 1, 1 bsl 59, 1 bsl 63]]
        ++ [{{long, A}, <<111, 9:32, 0, A:72/little>>} || A <- [1, 256, 1 bsl 64]].

named(B) ->
    try binary_to_term(<<131, B/binary>>) of
        F ->
            {arity, A} = erlang:fun_info(F, arity),
            {erlang:fun_to_list(F), A, is_function(F, A), is_function(F, 256), erlang:phash2(F), term_to_binary(F),
             binary_to_term(term_to_binary(F)) =:= F, F =:= fun m:f/0, F < fun m:f/3, attempt(fun() -> apply(F, lists:duplicate(A + 1 - 2 * (A div 255), x)) end)}
    catch error:badarg -> badarg
    end.

own(B) ->
    try binary_to_term(<<131, B/binary>>) of
        F ->
            [{arity, A}, {env, E}] = [erlang:fun_info(F, I) || I <- [arity, env]],
            {A, length(E), term_to_binary(F) =:= <<131, B/binary>>, attempt(fun() -> apply(F, lists:duplicate(A, x)) end)}
    catch error:badarg -> badarg
    end.

attempt(F) -> try F() catch error:{badarity, _} -> badarity; C:E -> {C, E} end.

reference(B) ->
    R = binary_to_term(<<131, B/binary>>),
    Zeros = binary_to_term(<<131, 90, 3:16, (node_name())/binary, 0:32, 0:96>>),
    {ref_to_list(R), R =:= Zeros, erlang:phash2(R), term_to_binary(R), demonitor(R), erlang:cancel_timer(R), unalias(R)}.

elsewhere(B) ->
    R = binary_to_term(<<131, B/binary>>),
    {node(R), erlang:phash2(R), term_to_binary(R), attempt(fun() -> demonitor(R) end),
     [binary_to_term(<<131, 90, N:16, 119, 3, "a@b", (case B of <<114, _/binary>> -> 1; _ -> 7 end):32, 0:(32 * N)>>) =:= R || N <- [1, 2, 3]]}.
