%% Arithmetic on large integers costs at least a certain number of reductions (OTP 29). Earlier
%% releases charge none. @stress @fence
-module(reductions_of_large_arithmetic).
-export([main/0]).

id(X) -> X.

main() ->
    case erlang:system_info(otp_release) >= "29" of
        true -> counted();
        false -> io:format("not counted~n")
    end.

counted() ->
    B = fun(N) -> id(1) bsl (64 * N) end,
    Large = B(60000) - 1,
    [io:format("~w ~w~n", [Op, [at_least(Op, A, C, Min), guarded(Op, A, C, Min), called(Op, A, C, Min)]])
     || {Op, A, C, Min} <- [{'*', B(20), 7, 2}, {'*', B(100), B(50), 322}, {'*', Large, 7, 3700}, {'div', B(100), 7, 7}, {'div', B(100), B(50), 150},
                            {'div', Large, 7, 3700}, {'rem', B(100), 7, 7}, {'rem', Large, 7, 3700}, {'+', B(100), B(75), 7}, {'+', 3, B(1000), 63},
                            {'-', B(1000), B(120), 63}, {'-', 3, B(1000), 63}, {'band', B(1000), -1, 63}, {'bor', B(1000), B(75), 63},
                            {'bxor', B(1000), B(75), 63}, {'bsl', B(1000), 1, 63}, {'bsl', 1, 64000, 62}, {'bsr', B(1000), 1, 62}]],
    [io:format("~w ~w~n", [Op, [at_least1(Op, A, Min), called1(Op, A, Min)]]) || {Op, A, Min} <- [{'-', B(1000), 62}, {'bnot', B(1000), 63}]],
    %% A process that only reckons lets others run.
    Me = self(),
    P = spawn(fun() -> busy(Large, 0) end),
    Q = spawn(fun() -> Me ! {self(), here} end),
    receive {Q, here} -> ok end,
    exit(P, kill),
    io:format("others run~n").

busy(L, N) -> busy(L, (L * 3 + N) rem 5).

reds(F) ->
    erlang:yield(),
    {_, R0} = process_info(self(), reductions),
    _ = F(),
    {_, R1} = process_info(self(), reductions),
    R1 - R0.

at_least(Op, A, B, N) -> reds(fun() -> op(Op, A, B) end) >= N.
guarded(Op, A, B, N) -> C = op(Op, A, B), reds(fun() -> guard(Op, A, B, C) end) >= N.
called(Op, A, B, N) -> reds(fun() -> erlang:Op(A, B) end) >= N.
at_least1(Op, A, N) -> reds(fun() -> op(Op, A) end) >= N.
called1(Op, A, N) -> reds(fun() -> erlang:Op(A) end) >= N.

op('*', A, B) -> A * B;
op('div', A, B) -> A div B;
op('rem', A, B) -> A rem B;
op('+', A, B) -> A + B;
op('-', A, B) -> A - B;
op('band', A, B) -> A band B;
op('bor', A, B) -> A bor B;
op('bxor', A, B) -> A bxor B;
op('bsl', A, B) -> A bsl B;
op('bsr', A, B) -> A bsr B.
op('-', A) -> -A;
op('bnot', A) -> bnot A.

guard('*', A, B, C) when A * B =:= C -> ok;
guard('div', A, B, C) when A div B =:= C -> ok;
guard('rem', A, B, C) when A rem B =:= C -> ok;
guard('+', A, B, C) when A + B =:= C -> ok;
guard('-', A, B, C) when A - B =:= C -> ok;
guard('band', A, B, C) when A band B =:= C -> ok;
guard('bor', A, B, C) when A bor B =:= C -> ok;
guard('bxor', A, B, C) when A bxor B =:= C -> ok;
guard('bsl', A, B, C) when A bsl B =:= C -> ok;
guard('bsr', A, B, C) when A bsr B =:= C -> ok.
