#!/bin/sh
# The programs of tests/programs on another release of OTP: scripts/release_tests.sh ROOT [NAME…].
# ROOT is what scripts/roots.sh made, by its directory or its name (otp27); stock is that release's
# own emulator, and so are compiler and libraries. NAMEs choose programs by part of their names.
# Settings are those of crates/purlin/tests/programs.rs; without any, each runs once, plain.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
root=${1:?the root of a release}
shift
[ -d "$root" ] || root=${ROOTS:-$here/target/roots}/$root
root=$(cd "$root" && pwd)
[ -x "$root/bin/erl" ] || { echo "$root has no bin/erl: scripts/roots.sh makes such roots" >&2; exit 2; }
cd "$here"
export PATH="$root/bin:$HOME/.cargo/bin:$PATH" PURLIN_OTP_ROOT="$root/usr/lib/erlang" PROGRAMS_MODES="${PROGRAMS_MODES:-plain}"
if [ -n "${PROGRAMS_TEST:-}" ]; then
  exec "$PROGRAMS_TEST" "$@"
fi
exec cargo test --release -q -p purlin --test programs -- "$@"
