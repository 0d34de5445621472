#!/bin/sh
# Runs a program with machine code of all functions on an x86-64 Purlin under qemu-user, which
# ignores the flag that asks for low addresses and misses what a second mapping changes: as in an
# amd64 image on an aarch64 machine. Without the emulator it says so and counts as one skipped
# test.
#
#   scripts/emulated.sh     PURLIN (target/debug/purlin) is the executable
set -u
cd "$(dirname "$0")/.." || exit 2
program=${PURLIN:-target/debug/purlin}
emulator=$(command -v qemu-x86_64 || command -v qemu-x86_64-static) || emulator=""
if [ -z "$emulator" ] || [ "$(uname -m)" != x86_64 ] || ! command -v erlc >/dev/null; then
  echo "test result: ok. 0 passed; 0 failed; 1 ignored; no qemu-x86_64 here"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/emulated.erl" <<'PROGRAM'
-module(emulated).
-export([main/0]).
main() ->
    R = [fib(15), lists:foldl(fun(X, A) -> X * 3 + A end, 0, lists:seq(1, 500)), pieces(<<"ab", 7:16, 9:24>>)],
    io:format("~p ~p~n", [R, erlang:system_info(emu_flavor)]),
    halt(0).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
pieces(<<A, B, N:16, M:24>>) -> {A, B, N, M}.
PROGRAM
erlc -o "$work" "$work/emulated.erl" || exit 1
# A fence of the usual size takes tens of GiB there.
got=$(PURLIN_FENCE_BITS=38 PURLIN_JIT=always timeout -k 1 "${EMULATED_SECONDS:-300}" "$emulator" "$program" erl +S 1 -noshell -pa "$work" \
  -run emulated main 2>&1)
status=$?
if [ "$status" = 0 ] && [ "$got" = "[610,375750,{97,98,7,9}] jit" ]; then
  echo "test result: ok. 1 passed; 0 failed; 0 ignored; machine code under qemu-x86_64"
else
  printf 'under qemu-x86_64: status %s: %s\n' "$status" "$got"
  echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; machine code under qemu-x86_64"
  exit 1
fi
