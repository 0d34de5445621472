%% Funs are decoded from external terms before their module is loaded. Calls of them fail at first;
%% later they run the module's code and equal the funs that the module makes. @stress @shared
-module(funs_before_their_module).
-export([main/0]).

main() ->
    Forms = [begin {ok, Ts, _} = erl_scan:string(Text), {ok, Form} = erl_parse:parse_form(Ts), Form end
             || Text <- ["-module(late).", "-export([one/2, two/1]).", "first(X) -> X.",
                         "one(A, B) -> fun(X) -> {first(A), B, X} end.", "two(A) -> fun() -> [A | fun() -> A end] end."]],
    {ok, late, Beam} = compile:forms(Forms, []),
    {ok, {late, [{"FunT", <<_:32, Table/binary>>}]}} = beam_lib:chunks(Beam, ["FunT"]),
    Uniq = code:module_md5(Beam),
    Parts = [{Arity - Free, Index, Free, Old} || <<_:32, Arity:32, _:32, Index:32, Free:32, Old:32>> <= Table],
    External = [external(Uniq, P) || P <- Parts],
    Funs = [binary_to_term(E) || E <- External],
    [io:format("~p~n", [told(F)]) || F <- Funs],
    [io:format("~p~n", [call(F)]) || F <- Funs],
    {module, late} = code:load_binary(late, "late.beam", Beam),
    show(Funs, External),
    true = code:delete(late),
    false = code:purge(late),
    [io:format("~p~n", [call(F)]) || F <- Funs],
    {module, late} = code:load_binary(late, "late.beam", Beam),
    show(Funs, External).

show(Funs, External) ->
    [io:format("~p ~p~n", [told(F), call(F)]) || F <- Funs],
    One = (late:one({a}, "b"))(3),
    [Two | Three] = (late:two({c}))(),
    io:format("~p ~p ~p~n", [One, Two, Three()]),
    [io:format("~p ~p~n", [binary_to_term(E) =:= F, term_to_binary(F) =:= E]) || {E, F} <- lists:zip(External, Funs)].

told(F) -> [erlang:fun_info(F, I) || I <- [module, name, arity, env, index, new_index]].

call(F) ->
    {arity, N} = erlang:fun_info(F, arity),
    try apply(F, lists:seq(1, N)) of
        [A | G] when is_function(G) -> [A, G()];
        R -> R
    catch C:R -> {C, R} end.

external(Uniq, {Arity, Index, Free, Old}) ->
    <<_, Pid/binary>> = term_to_binary(self()),
    Env = << <<104, 1, 97, I>> || I <- lists:seq(1, Free) >>,
    <<_, Module/binary>> = term_to_binary(late),
    Tail = <<Module/binary, (int(Index))/binary, (int(Old))/binary, Pid/binary, Env/binary>>,
    <<131, 112, (byte_size(Tail) + 29):32, Arity, Uniq/binary, Index:32, Free:32, Tail/binary>>.

int(N) ->
    <<_, B/binary>> = term_to_binary(N),
    B.
