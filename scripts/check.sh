#!/bin/sh
# Formatter, clippy, and what the prose says of the tree. All three run, whatever the others find. Status 1 if any found
# something, 77 if formatter and clippy can't be had.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
# The least toolchain comes without them.
have() { cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; }
have || rustup component add rustfmt clippy >&2
status=0
sh scripts/tidy.sh || status=1
if ! have; then
  echo "cargo fmt and cargo clippy are missing: rustup component add rustfmt clippy" >&2
  [ $status = 1 ] || status=77
  exit $status
fi
cargo fmt --all --check || status=1
cargo clippy --workspace --all-targets -- -D warnings || status=1
exit $status
