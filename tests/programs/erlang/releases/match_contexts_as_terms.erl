%% Tests whether a match context is a bit string, as OTP 27's compiler does where a match cannot
%% succeed. With earlier compilers the first function crashes stock. @stress @shared @fence
-module(match_contexts_as_terms).
-export([main/0]).

main() ->
    case list_to_integer(erlang:system_info(otp_release)) >= 27 of
        true -> io:format("~0p~n", [[catch_generator(fun of_size/1, X) || X <- [<<42>>, <<>>, <<1, 2>>, <<3:3>>, a, [<<1>>]]]]);
        false -> ok
    end,
    io:format("~0p~n", [[catch_generator(fun after_some/1, X) || X <- [<<42>>, <<>>, <<1, 2>>, <<3, 4, 5:5>>, {}]]]),
    Long = binary:copy(<<7>>, 1000),
    io:format("~0p~n", [lists:usort([catch_generator(fun after_some/1, <<N, Long/binary>>) || N <- lists:seq(1, 200)])]).

catch_generator(F, X) ->
    try F(X) of R -> R
    catch error:E -> {error, E}
    end.

of_size(<<_:8>>) -> ok;
of_size(A) -> try << (ok) || <<_:ok>> <= A>> after ok end.

after_some(<<_, A/bits>>) -> try << (ok) || <<_:ok>> <= A>> after self() ! A, receive A -> ok end end;
after_some(A) -> A.
