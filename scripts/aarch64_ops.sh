#!/bin/sh
# Compiles the tests of operations of the processor for aarch64 and runs them under qemu-user:
# machine code itself, on operands at their limits (crates/jit/tests/machine_ops.rs). With `all`,
# also the test that compares each op's machine code with its step
# (crates/runtime/tests/compiled_ops.rs), which compiles the crates up to the runtime. Installs
# nothing: where the compiler, the emulator or the target's standard library is missing, it says so
# and counts as one skipped test.
#
#   scripts/aarch64_ops.sh [all]     the last lines are those of the tests: `test result: …`
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
machine=aarch64-unknown-linux-gnu
skip() {
  echo "test result: ok. 0 passed; 0 failed; 1 ignored; no operations of aarch64: $1"
  exit 0
}
command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 || skip "no aarch64-linux-gnu-gcc"
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip "no qemu-aarch64"
[ -d "$(rustc --print sysroot)/lib/rustlib/$machine" ] || skip "no target $machine: rustup target add $machine"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
  CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar

# test CRATE NAME
test_of() {
  program=$(cargo test -p "purlin-$1" --test "$2" --target "$machine" --no-run --message-format=json-render-diagnostics |
    sed -n "s/.*\"executable\":\"\([^\"]*\/$2-[0-9a-f]*\)\".*/\1/p" | tail -1)
  if [ -z "$program" ]; then
    echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; $2 does not compile for aarch64"
    return 1
  fi
  # The emulator takes memory for each page that is reserved, and a test forks it repeatedly.
  (ulimit -v 33554432 && cd "crates/$1" && exec "$emulator" -L /usr/aarch64-linux-gnu "$program")
}
status=0
test_of jit machine_ops || status=1
if [ "${1:-}" = all ]; then
  test_of runtime compiled_ops || status=1
fi
exit $status
