#!/bin/sh
# A program as one executable, which runs without Erlang, Purlin and variables.
cat >hello.erl <<'END'
-module(hello).
-export([main/1]).
main(Names) -> [io:format("Hello, ~s!~n", [N]) || N <- Names].
END
purlin build hello.erl -o hello
env -i ./hello Ann Bob
