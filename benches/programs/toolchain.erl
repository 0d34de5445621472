%% What developers wait for: the compiler and the cross reference, on modules of the installed
%% libraries.
-module(toolchain).
-export([names/0, expected/1]).
-export([compile_modules/0, lint_forms/0, print_forms/0, xref_modules/0]).

names() -> [compile_modules, lint_forms, print_forms, xref_modules].

%% What is counted holds with every release whose libraries these are.
expected(compile_modules) -> 3;
expected(lint_forms) -> 5;
expected(print_forms) -> true;
expected(xref_modules) -> {ok, 8}.

modules() -> [lists, maps, gb_trees, string, proplists].
forms(M) -> {ok, {M, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(M), [abstract_code]), Forms.

compile_modules() -> length([B || M <- [maps, gb_trees, proplists], {ok, _, B} <- [compile:forms(forms(M), [binary, debug_info])]]).
lint_forms() -> length([ok || M <- modules(), {ok, _} <- [erl_lint:module(forms(M))]]).
print_forms() -> lists:all(fun(M) -> iolist_size([erl_pp:form(F) || F <- forms(M)]) > 5000 end, modules()).

xref_modules() ->
    {ok, X} = xref:start([{xref_mode, functions}]),
    xref:set_default(X, [{warnings, false}, {verbose, false}]),
    Added = [M || M <- modules() ++ [dict, ordsets, array], {ok, _} <- [xref:add_module(X, code:which(M))]],
    {ok, _} = xref:q(X, "closure E | lists"),
    {ok, _} = xref:analyze(X, undefined_function_calls),
    xref:stop(X),
    {ok, length(Added)}.
