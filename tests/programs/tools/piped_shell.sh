# Feeds the shell from a pipe: banner, prompts, values, errors, shell commands.
printf 'X = 1 + 1.\nX * 21.\nfoo(.\nlists:map(fun(Y) -> Y * X end, [1, 2, 3]).\n1/0.\nunknown_mod:f().\nb().\nself() =:= self().\nf(X).\nrr(nothing).\nspawn(fun() -> ok end) =/= x.\n"string".\n<<"bin">>.\n#{a => 1}.\nreceive after 10 -> done end.\nv(2).\nexit(over).\nhalt(6).\n' | erl 2>&1
echo "status $?"
