# Runs eunit and cover on a module.
cat >u.erl <<'X'
-module(u).
-export([f/1]).
-include_lib("eunit/include/eunit.hrl").
f(X) when X > 0 -> X * 2;
f(_) -> zero.
f_test() -> ?assertEqual(4, f(2)).
bad_test() -> ?assertEqual(5, f(2)).
gen_test_() -> [?_assert(f(1) =:= 2), {"named", ?_assertError(function_clause, lists:nth(0, []))}].
setup_test_() -> {setup, fun() -> 3 end, fun(_) -> ok end, fun(X) -> ?_assertEqual(6, f(X)) end}.
X
erlc +debug_info u.erl
erl -noshell -eval 'io:format("~p~n", [eunit:test(u)]), halt().' | sed 's/[0-9.]* s\]/T s]/'
erl -noshell -eval '{ok, u} = cover:compile_beam(u), u:f(1), u:f(1), {ok, L} = cover:analyse(u, calls, line), io:format("~p~n", [L]), halt().' </dev/null 2>&1 | head -12
