%% Checks `erts_debug:size_shared/1` of binaries and funs, which have two parts since OTP 27, and
%% reference counts of funs.
-module(shared_sizes_of_terms).
-export([main/0]).

id(X) -> X.

main() ->
    B = binary:copy(<<1>>, 780),
    S = binary:part(id(B), 1, 700),
    F = fun() -> B end,
    P = <<3:5, B/binary>>,
    <<_:5, Q/bits>> = P,
    T = {a, [1, 2]},
    [io:format("~w: ~w~n", [N, [erts_debug:Size(X) || Size <- [size, flat_size, size_shared]]])
     || {N, X} <- [{whole, B}, {part, S}, {twice, [B, B]}, {part_and_whole, [B, S]}, {part_twice, [S, S]}, {captures, F}, {captures_twice, [F, F]},
                   {captured_and_whole, [F, B]}, {map, #{a => id(B)}}, {same, [T, T, {T}]}, {middle, binary:part(id(binary:copy(<<1>>, 100)), 1, 80)}]],
    io:format("~w~n", [[erts_debug:size_shared(X) || X <- [[Q], [P, Q]], erlang:system_info(otp_release) >= "27"]]),
    io:format("~w~n", [[element(2, erlang:fun_info(X, refc)) =:= 1 || X <- [F, fun id/1, id(fun(Y) -> {Y, T} end)]]]).
