# Reads standard input: lines, characters, end of file, binary mode, Unicode.
printf 'one\ntwo\n' | erl -noshell -eval 'io:format("~p ~p ~p~n", [io:get_line("p> "), io:get_line(""), io:get_line("")]), halt().'
printf 'abcdef' | erl -noshell -eval 'io:format("~p ~p~n", [io:get_chars("", 4), io:get_chars("", 4)]), halt().'
printf '{a, 1}.\n[x|Y].\n' | erl -noshell -eval 'io:format("~p ~p~n", [io:read(""), io:read("")]), halt().'
printf '12 word' | erl -noshell -eval 'io:format("~p~n", [io:fread("", "~d ~s")]), halt().'
printf 'h\303\251\n' | LC_ALL=C.UTF-8 erl -noshell -eval 'io:format("~w~n", [io:get_line("")]), halt().'
printf 'h\303\251\n' | erl -noshell -eval 'io:setopts([binary, {encoding, latin1}]), io:format("~w~n", [io:get_line("")]), halt().'
head -c 200000 /dev/zero | tr '\0' 'x' | erl -noshell -eval 'io:setopts([binary]), io:format("~p~n", [byte_size(io:get_line(""))]), halt().'
seq 1 20000 | erl -noshell -eval 'F = fun F(N) -> case io:get_line("") of eof -> N; L -> F(N + list_to_integer(string:trim(L))) end end, io:format("~p~n", [F(0)]), halt().'
erl -noshell -eval 'io:format("~p~n", [io:get_line("")]), halt().' </dev/null
erl -noshell -eval 'io:format("~p~n", [io:getopts()]), halt().' </dev/null | tr -d ' \n' | grep -c encoding
