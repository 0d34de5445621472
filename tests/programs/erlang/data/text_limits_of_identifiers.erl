%% Converts text that is too long for an identifier or a name, and computes external sizes of terms
%% with many parts. @stress
-module(text_limits_of_identifiers).
-export([main/0]).

main() ->
    Zeros = fun(N) -> lists:duplicate(N, $0) end,
    [io:format("~p ~p~n", [F, longest(fun(N) -> Before ++ Zeros(N) ++ After end, F)])
     || {F, Before, After} <- [{list_to_pid, "<0.", "1.0>"}, {list_to_pid, "<", "0.1.0>"}, {list_to_pid, "<0.1.", "0>"},
                               {list_to_port, "#Port<0.", "1>"}, {list_to_port, "#Port<", "0.1>"},
                               {list_to_ref, "#Ref<0.", "1.2.3>"}, {list_to_ref, "#Ref<0.1.2.", "3>"}]],
    Long = lists:duplicate(100000, $a),
    [io:format("~p ~p~n", [F, result(F, [T])]) || F <- [list_to_pid, list_to_port, list_to_ref], T <- [Long, [a | b], "<0.1.0>" ++ x, ""]],
    Names = [list_to_binary(Long), binary:copy(<<"é"/utf8>>, 256), binary:copy(<<"é"/utf8>>, 255), <<(binary:copy(<<"a">>, 1019))/binary, 255>>,
             <<(binary:copy(<<"a">>, 1020))/binary, 255>>, <<(binary:copy(<<"a">>, 200))/binary, 255>>, <<255, (list_to_binary(Long))/binary>>,
             binary:copy(<<16#1F600/utf8>>, 255), binary:copy(<<16#1F600/utf8>>, 256)],
    [io:format("~p ~p ~p ~p~n", [F, E, byte_size(N), size_of(result(F, [N, E]))])
     || F <- [binary_to_atom, binary_to_existing_atom], E <- [utf8, latin1], N <- Names],
    F = fun(X) -> fun() -> {X, Names} end end,
    Many = [{X, [X, {x}], <<X:32>>, float(X)} || X <- lists:seq(1, 3000)],
    Terms = [Many, maps:from_list([{X, {X, <<"abc">>}} || X <- lists:seq(1, 3000)]), F(Many), [F(X) || X <- Many], {F(F(Many)), Many, F(a)},
             [[] | Many], [Many, Many | F(Many)], lists:duplicate(5000, F([a])), Many ++ <<1:3>>, list_to_tuple(Many), {Many, binary:copy(<<"x">>, 100000), <<0:12345>>}],
    [io:format("~p ~p ~p~n", [erlang:external_size(T), erlang:external_size(T, [{minor_version, 0}]), erlang:external_size(T, [{minor_version, 1}])]) || T <- Terms].

longest(Make, F) -> lists:max([0 | [length(Make(N)) || N <- lists:seq(0, 100), is_tuple(result(F, [Make(N)]))]]).

result(F, Args) -> try {apply(erlang, F, Args)} catch _:R -> R end.

size_of({A}) when is_atom(A) -> {length(atom_to_list(A))};
size_of(R) -> R.
