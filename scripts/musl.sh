#!/bin/sh
# Compiles Purlin for Linux with musl, a static executable, runs programs of tests/programs on it
# with the machine's own OTP, and compares them with stock. OTP's modules are the same everywhere;
# a static executable loads no C library, so programs that need one (crypto, asn1rt_nif, drivers)
# are not among the sample. Last, `purlin build` of it makes an executable that runs alone.
# Without musl-gcc or the target's standard library it counts as one skipped test.
#
#   scripts/musl.sh [NAME...]     NAMEs choose programs by part of their names; PROFILE (dev) is the profile
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
machine=x86_64-unknown-linux-musl
skip() {
  echo "test result: ok. 0 passed; 0 failed; 1 ignored; no musl: $1"
  exit 0
}
command -v musl-gcc >/dev/null 2>&1 || skip "no musl-gcc (musl-tools)"
[ -d "$(rustc --print sysroot)/lib/rustlib/$machine" ] || rustup target add "$machine" >&2 || skip "no target $machine"
profile=${PROFILE:-dev}
folder=$profile
[ "$profile" != dev ] || folder=debug
export CC_x86_64_unknown_linux_musl=musl-gcc
[ -n "${PURLIN:-}" ] || cargo build -q --profile "$profile" -p purlin --target "$machine" || {
  echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; it does not build for musl"
  exit 1
}
PURLIN=$(realpath "${PURLIN:-target/$machine/$folder/purlin}")
export PURLIN
test=${PROGRAMS_TEST:-$(cargo test -p purlin --test programs --no-run --message-format=json-render-diagnostics |
  sed -n 's/.*"executable":"\([^"]*\/programs-[0-9a-f]*\)".*/\1/p' | tail -1)}
sample="large_integers map_operations regular_expressions zlib_and_archives compiled_floats compiled_natives
  fused_instructions matched_bit_string_parts purge_during_fun_calls garbage_of_loops two_nodes
  files_and_directories operating_system_signals process_timers process_monitors socket_modes ets_resizing
  message_traces elixir_servers_and_tasks"
status=0
# shellcheck disable=SC2086
(cd crates/purlin && PROGRAMS_MODES="${PROGRAMS_MODES:-plain}" "$test" ${*:-$sample} </dev/null 2>&1) || status=1

# One file that needs nothing of the machine.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/alone.erl" <<'PROGRAM'
-module(alone).
-export([main/1]).
main(Args) -> io:format("~p ~p~n", [Args, lists:sum(lists:seq(1, 100))]).
PROGRAM
built=$(cd "$work" && erlc alone.erl && "$PURLIN" build -o alone alone.beam 2>&1 && env -i ./alone a b 2>&1)
case $built in
  *'["a","b"] 5050') echo "test result: ok. 1 passed; 0 failed; 0 ignored; purlin build with musl" ;;
  *)
    echo "$built"
    echo "test result: FAILED. 0 passed; 1 failed; 0 ignored; purlin build with musl"
    status=1
    ;;
esac
cd "$here" || exit 2
exit $status
