# Checks init's handling of -s, -run, -eval, -extra, --, unknown flags, and get_argument.
cat >m.erl <<'X'
-module(m).
-export([a/0, a/1, b/0, b/1]).
a() -> io:format("a/0~n").
a(L) -> io:format("a ~p~n", [L]).
b() -> io:format("b/0~n").
b(L) -> io:format("b ~p~n", [L]).
X
erlc m.erl
erl -noshell -s m a -run m b -s init stop; echo "status $?"
erl -noshell -s m a x 1 -run m b x 1 -s init stop; echo "status $?"
erl -noshell -eval 'io:format("~p~n", [init:get_plain_arguments()]), halt().' -extra one -two three; echo "status $?"
erl -noshell -eval 'io:format("~p ~p ~p~n", [init:get_argument(my), init:get_argument(none), init:get_arguments() =/= []]), halt().' -my flag -my second value; echo "status $?"
erl -noshell plain -eval 'io:format("~p~n", [init:get_plain_arguments()]), halt().' -- after; echo "status $?"
erl -noshell -kernel mykey '{a, "b"}' -eval 'io:format("~p~n", [application:get_env(kernel, mykey)]), halt().'; echo "status $?"
erl -noinput -noshell -s m -s init stop; echo "status $?"
erl -noshell -eval 'one, two syntax.' -s init stop; echo "status $?"
erl -noshell -run nomod -s init stop; echo "status $?"
rm -f erl_crash.dump
