# Checks erlc: warnings, errors, options, output directories, yecc and leex.
cat >a.erl <<'X'
-module(a).
-export([f/1]).
-ifdef(FLAG).
f(_) -> flag.
-else.
f(X) -> Y = 1, ok.
-endif.
X
erlc a.erl; echo "status $?"
erlc -Werror a.erl; echo "status $?"
erlc -DFLAG +debug_info -o . a.erl && erl -noshell -eval 'io:format("~p~n", [a:f(1)]), halt().'
printf -- '-module(b).\nf( -> ok.\n' >b.erl; erlc b.erl; echo "status $?"
erlc missing.erl; echo "status $?"
printf -- '-module(c).\n-export([g/0]).\ng() -> undefined_here().\n' >c.erl; erlc +brief c.erl; echo "status $?"
erlc -S a.erl; ls a.S
erlc -E -DFLAG a.erl; cat a.E
printf 'Nonterminals e. Terminals int. Rootsymbol e. e -> int : element(3, %s).\n' "'\$1'" >p.yrl; erlc p.yrl && erlc p.erl; echo "status $?"
printf 'Definitions.\nRules.\n[0-9]+ : {token, {int, TokenLine, list_to_integer(TokenChars)}}.\nErlang code.\n' >l.xrl; erlc l.xrl && erlc l.erl; echo "status $?"
erl -noshell -eval '{ok, T, _} = l:string("42"), io:format("~p~n", [p:parse(T)]), halt().'
erlc -pa . -I . +'{d, FLAG}' -b beam a.erl; echo "status $?"
