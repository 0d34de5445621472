#!/bin/sh
# Runs every test and ends with one line of counts: N passed, N failed, N skipped.
set -u
PATH="$HOME/.cargo/bin:$PATH"
log=$(mktemp)
cargo test --workspace --no-fail-fast 2>&1 | tee "$log"
awk '/^test result:/ { for (i = 1; i <= NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) f += $i; if ($(i+1) ~ /^ignored/) s += $i } }
     /^error(\[|:)/ { e = 1 }
     END { if (e && !f) f = 1; printf "%d passed, %d failed, %d skipped\n", p, f, s; exit (f > 0 || p == 0) }' "$log"
rc=$?
rm -f "$log"
exit $rc
