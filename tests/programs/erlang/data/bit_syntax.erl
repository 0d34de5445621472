%% Builds and matches every segment type, sub-binaries and appended binaries. @stress @shared @fence
-module(bit_syntax).
-export([main/0]).

main() ->
    B = <<1:3, 2:5, 1024:16/little, -1:8/signed, 3.14:32/float, 2.5:64/float-little, "abc", "åß"/utf8, 16#1F600/utf16>>,
    io:format("~p~n", [B]),
    <<A:3, C:5, D:16/little, E:8/signed, F:32/float, G:64/float-little, "abc", Rest/binary>> = B,
    io:format("~p~n", [{A, C, D, E, F, G, Rest}]),
    <<U1/utf8, U2/utf8, U3/utf16>> = Rest,
    io:format("~p~n", [[U1, U2, U3]]),
    io:format("~p~n", [<< <<X:4>> || X <- [1, 2, 3] >>]),
    io:format("~p~n", [<< <<X, X>> || <<X>> <= <<1, 2, 3>> >>]),
    io:format("~p~n", [[X || <<X:12>> <= <<1, 2, 3, 4, 5, 6>>]]),
    io:format("~p~n", [lists:foldl(fun(X, Acc) -> <<Acc/binary, X>> end, <<>>, lists:seq(1, 100))]),
    L = lists:foldl(fun(X, Acc) -> <<Acc/bitstring, X:7>> end, <<>>, lists:seq(1, 300)),
    io:format("~p ~p~n", [bit_size(L), erlang:phash2(L)]),
    io:format("~p~n", [split(<<"one,two,,three">>, <<>>)]),
    Big = binary:copy(<<"0123456789">>, 1000),
    <<_:500/binary, Sub:20/binary, _/binary>> = Big,
    io:format("~p ~p~n", [Sub, binary:referenced_byte_size(Sub)]),
    io:format("~p~n", [binary:referenced_byte_size(binary:copy(Sub))]),
    io:format("~p~n", [case <<5:3, 9:13>> of <<N:3, V:N, R/bitstring>> -> {N, V, R}; _ -> no end]),
    Size = 12,
    <<S:Size/binary-unit:4, T/bitstring>> = <<"abcdefgh">>,
    io:format("~p~n", [{S, T}]),
    io:format("~p~n", [[case X of <<>> -> empty; <<_>> -> one; <<_, _/binary>> -> more; _ -> bits end || X <- [<<>>, <<1>>, <<1, 2>>, <<1:1>>]]]),
    io:format("~p~n", [<<(<<1, 2, 3>>):2/binary, 16#123456789ABCDEF0123456789:100>>]),
    <<H:100, _/bitstring>> = <<16#123456789ABCDEF0123456789:100, 0:4>>,
    io:format("~.16b~n", [H]),
    io:format("~p~n", [binary_part(<<"hello world">>, {11, -5})]),
    io:format("~p~n", [[binary:split(<<"a b c">>, <<" ">>), binary:split(<<"a b c">>, <<" ">>, [global]), binary:matches(<<"abcabc">>, [<<"bc">>, <<"a">>])]]),
    io:format("~p~n", [[binary:decode_unsigned(<<1, 0>>), binary:encode_unsigned(65537), binary:longest_common_prefix([<<"abc">>, <<"abd">>])]]),
    io:format("~p~n", [binary:replace(<<"a-b-c">>, <<"-">>, <<"+">>, [global])]),
    io:format("~p~n", [[integer_to_binary(-255, 16), binary_to_integer(<<"zz">>, 36), float_to_binary(1.5, [{decimals, 3}]), float_to_binary(0.1), binary_to_float(<<"1.0e10">>)]]),
    io:format("~p~n", [[list_to_binary([1, [2, <<3>>], "x"]), iolist_size([1, [2, <<3>>]]), list_to_bitstring([<<1:1>>, <<2:2>>])]]),
    io:format("~p~n", [base64:encode(<<"purlin">>)]),
    io:format("~p~n", [binary:bin_to_list(<<1, 2, 3, 4>>, {1, 2})]),
    <<NaN:64/bits>> = <<16#7FF8000000000000:64>>,
    io:format("~p~n", [case NaN of <<_:64/float>> -> float; _ -> not_float end]),
    io:format("~p~n", [<<1.0:16/float>>]),
    %% Rounded once, to even: by way of 32 bits some would be rounded twice.
    io:format("~w~n", [[<<(id(F)):16/float>> || F <- [1.000488282181322574615478515625, 1.00048828125, 2.9802322387695312e-8, 2.9802322387695316e-8,
                                                      65519.999, 65520.0, 6.1005353927612305e-5, 5.0e-324, -1.000488282181322574615478515625, -0.0]]]),
    io:format("~p~n", [catch <<(id(1 bsl 70)):8>>]),
    io:format("~w~n", [<<1:1>>]),
    io:format("~p~n", [<<"text", 0>>]).

id(X) -> X.

split(<<",", R/binary>>, Acc) -> [Acc | split(R, <<>>)];
split(<<C, R/binary>>, Acc) -> split(R, <<Acc/binary, C>>);
split(<<>>, Acc) -> [Acc].
