#!/bin/sh
# Runs scripts/tidy.sh, scripts/check_apple.sh, the formatter and clippy. All run, whatever the
# others find. The status is 1 if one of them found something, 77 if formatter and clippy are
# missing.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
# The least toolchain comes without them.
have() { cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; }
have || rustup component add rustfmt clippy >&2
status=0
sh scripts/tidy.sh || status=1
sh scripts/check_apple.sh || status=1
if ! have; then
  echo "cargo fmt and cargo clippy are missing: rustup component add rustfmt clippy" >&2
  [ $status = 1 ] || status=77
  exit $status
fi
cargo fmt --all --check || status=1
cargo clippy --workspace --all-targets -- -D warnings || status=1
exit $status
