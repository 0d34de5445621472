#!/bin/sh
# Runs every test and ends with one line of counts: N passed, N failed, N skipped.
# TEST_SECONDS bounds the whole (default 2700) and BINARY_SECONDS each test program (default 1200): what hangs is a
# failure, what is left still runs, and the count is printed all the same.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
export RUST_BACKTRACE="${RUST_BACKTRACE:-0}"
total=${TEST_SECONDS:-2700}
each=${BINARY_SECONDS:-1200}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$(date +%s)

# Whatever does not compile is one failure.
if ! cargo test --workspace --no-run --message-format=json-render-diagnostics >"$work/built"; then
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi
# Directory of the crate and test program, a line each, in the order in which cargo names the crates.
sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"executable":"\([^"]*\)".*/\1 \2/p' "$work/built" |
  grep '/deps/' | sort -u >"$work/programs"

run() { # seconds, directory, command...
  seconds=$1 dir=$2
  shift 2
  left=$((total - ($(date +%s) - started)))
  [ "$left" -lt "$seconds" ] && seconds=$left
  if [ "$seconds" -le 0 ]; then
    echo "no time left: $*"
    echo "exit status 124"
    return
  fi
  (cd "$dir" && timeout -k 10 "$seconds" "$@" </dev/null 2>&1)
  echo "exit status $?"
}
{
  while read -r dir program; do
    echo "running $program"
    run "$each" "$dir" "$program"
  done <"$work/programs"
  run "$each" . cargo test --workspace --doc --no-fail-fast
} | tee "$work/log"

# Counted from the summary of each program; one that died before its summary counts as one failure more.
awk '/^test result:/ { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) { f += $i; own += $i }; if ($(i+1) ~ /^ignored/) s += $i } }
     /^exit status / { if ($3 && !own) f++; own = 0 }
     END { if (!p && !f) f = 1
           printf "%d passed, %d failed, %d skipped\n", p, f, s; exit (f > 0) }' "$work/log"
