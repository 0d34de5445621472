#!/bin/sh
# Runs OTP's own test suites, unmodified, on the stock runtime and on Purlin, and says case by case where they differ.
#
#   scripts/conformance.sh [SUITE ...]      none: those listed in tests/otp/suites
#
# OTP's sources come from the distribution (`apt-get source erlang`) into CACHE (~/.cache/purlin/conformance); OTP_SOURCE names
# a tree that is there already. What stock gives is measured once and kept in the cache; STOCK=again measures anew.
# PURLIN: the executable (target/release/purlin); `PURLIN=stock` compares stock with itself. SUITE_SECONDS (600): the limit of
# a suite. A case that takes the runtime down counts as failed, and the suite goes on without it, RESTARTS (15) times.
# The table goes to standard output, the cases that differ to CACHE/differences.txt.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
here=$PWD
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/purlin/conformance}
limit=${SUITE_SECONDS:-600} restarts=${RESTARTS:-15}
mkdir -p "$cache/stock" "$cache/purlin" "$cache/suites"
cache=$(cd "$cache" && pwd)
suites=${*:-$(grep -v '^#' tests/otp/suites)}

command -v ct_run >/dev/null 2>&1 || ls -d /usr/lib/erlang/lib/common_test-* >/dev/null 2>&1 || {
  echo "common_test is missing: apt-get install erlang-common-test erlang-src" >&2
  exit 2
}
if [ -z "${PURLIN:-}" ]; then
  cargo build --release -q || exit 1
  PURLIN=$PWD/target/release/purlin
fi

# The distribution's source package; an entry for sources is added to a list of our own, not to the system's.
if [ -n "${OTP_SOURCE:-}" ]; then
  otp=$OTP_SOURCE
else
  if ! ls -d "$cache"/erlang-*/ >/dev/null 2>&1; then
    mkdir -p "$cache/apt/lists/partial" || exit 1
    . /etc/os-release
    echo "deb-src http://deb.debian.org/debian ${VERSION_CODENAME:-stable} main" >"$cache/apt/sources.list"
    opts="-o Dir::Etc::sourcelist=$cache/apt/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$cache/apt/lists"
    # shellcheck disable=SC2086
    apt-get $opts update -qq && (cd "$cache" && apt-get $opts source -qq erlang >/dev/null) || {
      echo "the sources of OTP cannot be fetched" >&2
      exit 1
    }
  fi
  otp=$(ls -d "$cache"/erlang-*/)
fi
otp=$(cd "$otp" && pwd)

erlc -o "$cache" "$here"/tests/otp/*.erl || exit 1

# prepare SUITE: sets dir, where its compiled form and its data are
prepare() {
  file=$(ls "$otp"/lib/*/test/"$1".erl "$otp"/erts/*/test/"$1".erl 2>/dev/null | head -1)
  [ -n "$file" ] || return 1
  from=$(dirname "$file")
  app=$(basename "$(dirname "$from")")
  dir=$cache/suites/$app
  # Suites write beside their data, so they get a copy; helpers that they call are compiled with the first of them.
  if [ ! -d "$dir" ]; then
    cp -r "$from" "$dir.new"
    include="-I $dir.new -I $otp/lib/$app/src -I $otp/lib/$app/include -I $otp/lib/kernel/src -I $otp/lib/kernel/include -I $otp/lib/stdlib/src -I $otp/lib/compiler/src -I $otp/lib/stdlib/test"
    for f in "$dir.new"/*.erl; do
      case $f in *_SUITE.erl) continue ;; esac
      # shellcheck disable=SC2086
      (cd "$dir.new" && erlc -W0 +debug_info $include "$f") >/dev/null 2>&1
    done
    mv "$dir.new" "$dir"
  fi
  if [ ! -e "$dir/$1.beam" ]; then
    include="-I $dir -I $otp/lib/$app/src -I $otp/lib/$app/include -I $otp/lib/kernel/src -I $otp/lib/kernel/include -I $otp/lib/stdlib/src -I $otp/lib/compiler/src -I $otp/lib/stdlib/test"
    # shellcheck disable=SC2086
    (cd "$dir" && erlc -W0 +debug_info $include "$1.erl") >"$cache/compile-$1.log" 2>&1
  fi
  [ -e "$dir/$1.beam" ]
}

# suite SIDE SUITE: leaves lines `CASE VERDICT REASON` in CACHE/SIDE/SUITE
suite() {
  side=$1 suite=$2
  if [ "$side" = stock ] || [ "$PURLIN" = stock ]; then set -- erl; else set -- "$PURLIN" erl; fi
  lines=$cache/$side/$suite.lines
  : >"$lines"
  left=
  deadline=$(($(date +%s) + limit))
  for _ in $(seq 0 "$restarts"); do
    logs=$(mktemp -d)
    remaining=$((deadline - $(date +%s)))
    [ "$remaining" -gt 0 ] || break
    # shellcheck disable=SC2086
    (cd "$logs" && timeout -k 5 "$remaining" "$@" -noshell -pa "$cache" -pa "$dir" \
      -run conformance main "$suite" "$dir" "$logs" "$lines" $left) >"$cache/$side/$suite.log" 2>&1 </dev/null
    rm -rf "$logs"
    grep -q '^done' "$lines" && break
    # The case that had begun and not ended is the one that the runtime did not survive.
    fallen=$(awk '/^start / { s = $2 } /^end / { s = "" } END { print s }' "$lines")
    [ -n "$fallen" ] || break
    echo "end $fallen failed the runtime ended" >>"$lines"
    # What has ended need not run again.
    left=$(awk '/^end / { sub(/@.*/, "", $2); if (!seen[$2]++) printf "%s ", $2 }' "$lines")
  done
  # The first verdict of a case counts: cases that are left out of a second run are reported as skipped by it.
  awk '/^end / { if (!seen[$2]++) { v = $2; $1 = ""; print substr($0, 2) } }' "$lines" >"$cache/$side/$suite"
}

: >"$cache/differences.txt"
printf '%-28s %7s %7s %7s %9s\n' suite stock Purlin "of" "per cent"
total=0 same=0
for s in $suites; do
  if ! prepare "$s"; then
    printf '%-28s %s\n' "$s" "cannot be compiled here"
    continue
  fi
  { [ "${STOCK:-}" != again ] && [ -s "$cache/stock/$s" ]; } || suite stock "$s"
  suite purlin "$s"
  # The measure: of the cases that stock passes, how many pass here.
  set -- $(awk 'NR == FNR { got[$1] = $2; next } { all++; if ($2 == "passed") { n++; if (got[$1] == "passed") k++ } }
                END { print n + 0, k + 0, all + 0 }' "$cache/purlin/$s" "$cache/stock/$s")
  printf '%-28s %7d %7d %7d %8s%%\n' "$s" "$1" "$2" "$3" "$(awk "BEGIN { printf \"%.1f\", $1 ? 100 * $2 / $1 : 0 }")"
  awk -v s="$s" 'NR == FNR { got[$1] = $0; next } $2 == "passed" && got[$1] !~ /^[^ ]+ passed/ { print s, (got[$1] ? got[$1] : $1 " did not run") }' \
    "$cache/purlin/$s" "$cache/stock/$s" >>"$cache/differences.txt"
  total=$((total + $1)) same=$((same + $2))
done
awk "BEGIN { printf \"%-28s %7d %7d %7s %8.1f%%\n\", \"all\", $total, $same, \"\", $total ? 100 * $same / $total : 0 }"
echo "differences, with reasons: $cache/differences.txt"
