%% Prints floats as text in all formats: some as they are, and a checksum of many.
-module(floats_as_text).
-export([main/0]).
main() ->
  rand:seed(exsss, 7),
  Fs = [0.0, -0.0, 1.0, 0.1, 1.0e22, 1.0e23, 9007199254740992.0, 9007199254740993.0, 4.35, 5.0e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 123456789012345680.0, 0.0001, 0.00001, 1.0e-5, 1.5e-7, 100.0, 1.0e15, 1.0e16, 9.5367431640625e-7, 2.0e-44, 9007199254740991.0, -1.5, 1.0e100, 5.0e-324 * 3]
     ++ [F || _ <- lists:seq(1, 1000), <<F/float>> <- [<<(rand:uniform(1 bsl 64) - 1):64>>]] ++ [rand:uniform() * math:pow(10, rand:uniform(40) - 20) || _ <- lists:seq(1, 1000)] ++ [rand:uniform(100000) / 100 || _ <- lists:seq(1, 500)] ++ [float(1 bsl N) || N <- lists:seq(0, 1023)] ++ [math:pow(2, -N) || N <- lists:seq(1, 1074)],
  L = [[float_to_binary(F, [short]), float_to_list(F, [short]), catch float_to_binary(F, [{decimals, 4}]), catch float_to_binary(F, [{decimals, 4}, compact]), catch float_to_binary(F, [{decimals, 0}, compact]), float_to_binary(F), float_to_list(F, [{scientific, 3}]), catch float_to_binary(F, [{decimals, 18}, compact]), catch float_to_binary(F, [{decimals, 30}, compact]), catch float_to_list(F, [{scientific, 249}]), catch float_to_list(F, [{decimals, 253}]), io_lib:format("~w", [F])] || F <- Fs],
  [io:format("~s ~0p~n", [float_to_binary(F), R]) || {F, R} <- lists:zip(lists:sublist(Fs, 40), [lists:sublist(X, 9) || X <- lists:sublist(L, 40)])],
  io:format("~p~n", [erlang:md5(term_to_binary(L))]),
  ok.
