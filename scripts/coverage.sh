#!/bin/sh
# Reports which program of tests/programs exercises each op and each native. It runs all programs on
# a build with debug assertions, which records what runs, and writes target/coverage.txt: for each
# row, how many programs run it and the first of them. Rows that no program runs are compared with
# tests/programs/not_exercised.txt; the status is 1 if they differ. BLESS=1 rewrites that file,
# except its lines that begin with #.
#
#   scripts/coverage.sh [WORD ...]     words choose programs by part of their name; then nothing is compared
#
# PROGRAMS_JOBS: how many run at once. PURLIN: an executable that was built with debug assertions.
set -eu
cd "$(dirname "$0")/.."
PATH="$HOME/.cargo/bin:$PATH"
if [ -z "${PURLIN:-}" ]; then
  cargo build -q -p purlin
  PURLIN=$PWD/target/debug/purlin
fi
dir=$(mktemp -d)
newer=$(mktemp -d)
trap 'rm -rf "$dir" "$newer"' EXIT
# What differs from stock is not the matter here.
PURLIN_COVERAGE=$dir PURLIN=$PURLIN PROGRAMS_MODES=plain cargo test -q -p purlin --test programs -- "$@" || true
compares=$(($# == 0))
root=${ROOTS:-$PWD/target/roots}/otp29
if [ $# -eq 0 ] && [ -x "$root/bin/erl" ]; then
  (cd tests/programs/erlang/releases && ls) | sed 's/\.erl$//' |
    PATH="$root/bin:$PATH" PURLIN_OTP_ROOT="$root/usr/lib/erlang" PURLIN_COVERAGE=$newer PURLIN=$PURLIN PROGRAMS_MODES=plain \
      xargs cargo test -q -p purlin --test programs -- || true
elif [ $# -eq 0 ]; then
  echo "no $root: scripts/roots.sh makes it"
  compares=0
fi
# A file for each program: `row op NAME` and `row bif NAME` of all there are, `op NAME` and `bif
# NAME` of what has run.
(for d in "$dir" "$newer"; do cd "$d"; for program in *; do [ ! -f "$program" ] || sed "s/^/$program /" "$program"; done; done) | sort -u | awk '
  $2 == "row" { all[$3 " " $4]; next }
  { n[$2 " " $3]++; if (!(($2 " " $3) in first)) first[$2 " " $3] = $1 }
  END { for (r in all) printf "%-56s %4d %s\n", r, n[r], first[r] }' | sort >target/coverage.txt
awk '$3 == 0 { print $1, $2 }' target/coverage.txt >"$dir/none"
echo "$(wc -l <target/coverage.txt) ops and natives, $(wc -l <"$dir/none") of them run by no program; the table is target/coverage.txt"
[ $compares = 1 ] || exit 0
list=tests/programs/not_exercised.txt
if [ "${BLESS:-0}" != 0 ]; then
  { grep '^#' "$list" || true; cat "$dir/none"; } >"$dir/list"
  cp "$dir/list" "$list"
else
  (grep -v '^#' "$list" || true) | diff - "$dir/none"
fi
