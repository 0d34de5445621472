%% Compiled with OTP 25 to sample.beam, which the loader's tests take apart and damage:
%%   erlc +deterministic sample.erl
%% Holds one of most kinds of operands and tables.
-module(sample).
-export([build/2, match/1, big/0, floats/2, maps/2, funs/1, mail/1, select/1, tries/1, records/1]).
-record(point, {x = 0, y = 0}).

build(A, Rest) -> <<"header", A:16/little, "mid", A/utf8, Rest/binary, 1.5:64/float>>.

match(<<"magic", N:8, Body:N/binary, _/bitstring>>) -> {N, Body};
match(<<C/utf8, _/binary>>) -> C;
match(<<X:7, _/bitstring>>) -> X.

big() -> [16#123456789abcdef0123456789, -16#8000000000000000, 1 bsl 70, -(1 bsl 90)].

floats(A, B) when is_float(A), is_float(B) -> A * B + A / 2.0 - B.

maps(M, V) -> case M of #{key := W} when W =/= V -> M#{key := V, other => W}; #{} -> #{V => "none"} end.

funs(N) -> F = fun(X) -> X + N end, [F(1), fun lists:map/2, fun erlang:self/0, fun maps/2 | lists:map(F, [1, 2])].

mail(Pid) ->
    Ref = make_ref(),
    Pid ! {self(), Ref},
    receive {Ref, Answer} -> Answer after 1000 -> timeout end.

select(one) -> 1;
select(two) -> 2;
select('drei und vier') -> 34;
select(T) when tuple_size(T) =:= 2 -> element(1, T);
select({_, _, C}) -> C;
select(1) -> "one";
select(1.5) -> <<1:3>>;
select(2) -> {deep, [{nested, [literal]}]}.

tries(F) ->
    try F() of ok -> yes; _ -> no
    catch throw:T -> T; error:R:S -> {R, S}
    after put(done, true)
    end.

records(P = #point{x = X}) -> P#point{y = X + 1}.
