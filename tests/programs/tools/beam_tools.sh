# Runs tools that analyse code: beam_lib, xref, the compiler's disassembler, syntax tools, and the
# scanner of edoc.
cat >a.erl <<'X'
-module(a).
-export([f/1]).
-vsn("1").
f(X) -> b:g(X), undefined_mod:h(), lists:reverse(X).
unused() -> ok.
X
cat >b.erl <<'X'
-module(b).
-export([g/1]).
g(X) -> {X, a:f(X)}.
X
erlc +debug_info +nowarn_unused_function a.erl b.erl
erl -noshell -eval '{ok, {a, L}} = beam_lib:chunks("a.beam", [exports, imports, attributes]), io:format("~p~n", [L]), halt().'
erl -noshell -eval '{ok, {a, [{abstract_code, {_, F}}]}} = beam_lib:chunks("a.beam", [abstract_code]), io:put_chars(erl_prettypr:format(erl_syntax:form_list(F))), io:nl(), halt().'
erl -noshell -eval 'xref:start(s), {ok, _} = xref:add_directory(s, "."), io:format("~p ~p~n", [xref:q(s, "X"), xref:analyze(s, undefined_function_calls)]), halt().'
erl -noshell -eval '{beam_file, a, E, _, _, C} = beam_disasm:file("a.beam"), io:format("~p ~p~n", [E, length(C)]), halt().'
erl -noshell -eval 'io:format("~p~n", [beam_lib:md5("a.beam")]), io:format("~p~n", [beam_lib:cmp("a.beam", "b.beam")]), halt().'
