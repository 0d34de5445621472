%% More registers are live where a bit string does not match than where it does: those that only the
%% other clause reads survive every collection. From OTP 26 on, a match is one instruction.
%% @stress @shared @fence
-module(live_registers_of_failed_matches).
-export([main/0]).

main() -> io:format("~p~n", [[run(F, 3000) || F <- [chunk, terms, second, tail, loop]]]).

run(F, N) -> run(F, N, 0).
run(F, 0, Bad) -> {F, Bad};
run(F, N, Bad) ->
    case once(F, N) of
        true -> run(F, N - 1, Bad);
        false -> run(F, N - 1, Bad + 1)
    end.

once(chunk, N) -> B = iolist_to_binary([<<"Code", N:32>>, lists:duplicate(N rem 200, $x)]), chunk(B, N) =:= B;
once(terms, N) -> {A, B, C} = {{N, [N]}, [N | {N}], {"text", N}}, terms(<<N:64, N:64>>, A, B, C) =:= {C, B, A, {{N, [N]}, [N | {N}]}};
once(second, N) -> L = [N, {N}], second(<<1, N:32, 2, 3>>, L, {L}) =:= {[N, {N}], {[N, {N}]}};
once(tail, N) -> T = {N, self()}, tail(<<(N rem 7), N:80>>, T, [T]) =:= case N rem 7 of 3 -> {<<N:80>>, 3}; _ -> {other, T, [T]} end;
once(loop, N) -> loop(list_to_binary([<<(N rem 5), N:72>> || _ <- lists:seq(1, 20)]), {N}, [N], []) =:= lists:duplicate(20, case N rem 5 of 0 -> <<N:72>>; _ -> {{N}, [N]} end).

chunk(<<"FunT", Keep:8/binary, T/binary>>, N) -> {Keep, T, N};
chunk(Chunk, _) -> Chunk.

terms(Bin, A, B, C) ->
    D = {A, B},
    case Bin of
        <<"word", X:12/binary>> -> X;
        <<_:64, "word", Y:4/binary>> -> Y;
        _ -> {C, B, A, D}
    end.

second(<<1, X:32/bitstring, 2, 2>>, _, _) -> X;
second(_, A, B) -> {A, B}.

tail(<<3, R/binary>>, _, _) -> {R, 3};
tail(<<_, _:80>>, T, L) -> {other, T, L}.

loop(<<0, X:9/binary, R/binary>>, A, B, Acc) -> loop(R, A, B, [X | Acc]);
loop(<<_:10/binary, R/binary>>, A, B, Acc) -> loop(R, A, B, [{A, B} | Acc]);
loop(<<>>, _, _, Acc) -> Acc.
