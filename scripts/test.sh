#!/bin/sh
# Runs every test and ends with one line of counts: N passed, N failed, N skipped.
# TEST_SECONDS bounds the whole (default 1500): what hangs is a failure, and the count is printed all the same.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
export RUST_BACKTRACE="${RUST_BACKTRACE:-0}"
log=$(mktemp)
{ timeout -k 10 "${TEST_SECONDS:-1500}" cargo test --workspace --no-fail-fast 2>&1; echo "exit status $?"; } | tee "$log"
# Counted from cargo's summary of each binary. A run that died before its summaries counts as one failure more.
awk '/^test result:/ { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) f += $i; if ($(i+1) ~ /^ignored/) s += $i } }
     /^exit status / { rc = $3 }
     END { if (rc && !f) f = 1; if (!p && !f) f = 1
           printf "%d passed, %d failed, %d skipped\n", p, f, s; exit (f > 0) }' "$log"
rc=$?
rm -f "$log"
exit $rc
