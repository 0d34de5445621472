#!/bin/sh
# Lists the atoms that stock's emulator has before it runs its first function, in its order.
# `scripts/atoms.sh RELEASE…` asks the emulators of the roots of these names (otp27), which
# scripts/roots.sh makes in ROOTS, and writes crates/isa/atoms/RELEASE.txt. The external term format
# can name an atom of the emulator by its number, so counting finds all of them. The last one is
# that before the words of the command line. Names of protocols are left out: they depend on the
# machine's list of protocols.
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
