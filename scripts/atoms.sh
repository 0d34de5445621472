#!/bin/sh
# The atoms that stock's emulator has before it runs its first function, in its order: scripts/atoms.sh RELEASE… asks the emulators of
# the roots of these names (otp27), which scripts/roots.sh has made in ROOTS, and writes crates/isa/atoms/RELEASE.txt. In the external
# term format a number stands for an atom of the runtime itself, so that all are found by counting. The last is the one before
# what the command line says. Names of protocols are left out: they are what the machine's list of protocols has.
set -eu
cd "$(dirname "$0")/.."
for release in "$@"; do
  root=${ROOTS:-target/roots}/$release
  [ -x "$root/bin/erl" ] || { echo "$root has no bin/erl: scripts/roots.sh makes such roots" >&2; exit 2; }
  "$root/bin/erl" -noshell -eval '
    All = fun F(N) -> try binary_to_term(<<131, 75, N:24>>) of A -> [A | F(N + 1)] catch error:badarg -> [] end end,
    Before = lists:takewhile(fun(A) -> A =/= progname end, All(0)),
    {First, [sockets | Rest]} = lists:splitwith(fun(A) -> A =/= sockets end, Before),
    Behind = lists:dropwhile(fun(A) -> A =/= address_info end, Rest),
    [io:format("~ts~n", [A]) || A <- First ++ [sockets | Behind]],
    halt().' >"crates/isa/atoms/$release.txt"
done
