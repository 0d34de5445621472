%% Prints funs: the module name of a local fun is never quoted, that of an external fun is quoted
%% where necessary.
-module(funs_of_quoted_modules_as_text).
-export([main/0]).

main() ->
    Names = ['Elixir.M', 'a b', 'a@b', aB, 'Ab', '1', 'a\'b', 'a\\b', 'é', 'É', 'end', 'a-b', '\t', list_to_atom([955])],
    [texts(M, F) || M <- Names, F <- [local(M), fun M:f/0, fun M:'Q q'/1]],
    %% Of a module that is loaded, in texts of all kinds.
    M = 'Elixir.M',
    {ok, M, Code} = compile:forms([{attribute, 1, module, M}, {attribute, 1, export, [{f, 0}]},
        {function, 1, f, 0, [{clause, 1, [], [], [{'fun', 1, {clauses, [{clause, 1, [{var, 1, '_'}], [], [{atom, 1, ok}]}]}}]}]}], [binary]),
    {module, M} = code:load_binary(M, "m", Code),
    F = M:f(),
    [io:format("~ts~n", [cut(io_lib:format(T, [{F, [F], #{F => F}}]))]) || T <- ["~p", "~w", "~tp", "~0p", "~9p"]],
    io:format("~ts~n", [cut(erl_error_text(F))]).

erl_error_text(F) ->
    try F(1, 2) catch error:Reason -> io_lib:format("~p", [Reason]) end.

cut(T) -> re:replace(T, "[0-9]+>", "N>", [unicode, global]).

texts(M, F) ->
    io:format("~w: ~w ~w ~w ~w~n", [atom_to_list(M), erlang:fun_to_list(F) | [lists:flatten(io_lib:format(T, [F])) || T <- ["~w", "~p", "~tp"]]]).

%% A fun of a module that isn't there.
local(M) ->
    N = atom_to_binary(M),
    Parts = <<1, 0:128, 0:32, 0:32, 119, (byte_size(N)), N/binary, 97, 1, 97, 5, 103, 119, 3, "a@b", 1:32, 2:32, 3>>,
    binary_to_term(<<131, 112, (byte_size(Parts) + 4):32, Parts/binary>>).
