#!/bin/sh
# Runs OTP's and Elixir's own test suites, unmodified, on the stock runtime and on Purlin, and says case by case where
# they differ.
#
#   scripts/conformance.sh [SUITE ...]      none: those listed in tests/otp/suites
#
# A suite is the name of one of OTP's (`lists_SUITE`), or `elixir/APP` for an application of Elixir's (`elixir/eex`).
# The sources come from the distribution (`apt-get source`) into CACHE (~/.cache/purlin/conformance); OTP_SOURCE and
# ELIXIR_SOURCE name trees that are there already. What stock gives is measured once and kept in the cache; STOCK=again
# measures anew. PURLIN: the executable (target/release/purlin); `PURLIN=stock` compares stock with itself.
# SUITE_SECONDS: the limit of a suite (600, of one of Elixir's 1800). A case of OTP's that takes the runtime down counts as
# failed, and the suite goes on without it, RESTARTS (15) times; in Elixir's, what then hasn't run has not passed.
# TABLE=1 also writes the table in COMPATIBILITY.md, with the date and the versions.
# The table goes to standard output, the cases that differ to CACHE/differences.txt.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
here=$PWD
. "$here/scripts/sources.sh"
restarts=${RESTARTS:-15}
mkdir -p "$cache/stock/elixir" "$cache/purlin/elixir" "$cache/suites"
suites=${*:-$(grep -v '^#' tests/otp/suites)}
purlin=$(purlin_executable) || exit 1

for s in $suites; do
  case $s in elixir/*) elixir=${elixir:-$(elixir_source)} || exit 1 ;; *) otp=${otp:-$(otp_source)} || exit 1 ;; esac
done
if [ -n "${otp:-}" ]; then
  ls -d /usr/lib/erlang/lib/common_test-* >/dev/null 2>&1 || command -v ct_run >/dev/null 2>&1 || {
    echo "common_test is missing: apt-get install erlang-common-test" >&2
    exit 2
  }
  erlc -o "$cache" "$here"/tests/otp/*.erl || exit 1
fi

# prepare SUITE: sets dir, where its compiled form and its data are
prepare() {
  case $1 in elixir/*) prepare_elixir "${1#*/}"; return ;; esac
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

# prepare_elixir APP: each side has a tree of its own, because suites write into it. Its library is the installed one.
prepare_elixir() {
  library=$(dirname "$(readlink -f "$(command -v elixir)")")/../lib
  for side in stock purlin; do
    tree=$cache/elixir-tree-$side
    [ -d "$tree" ] || { cp -r "$elixir" "$tree.new" && mv "$tree.new" "$tree"; } || return 1
    for app in "$tree"/lib/*; do
      [ -e "$app/ebin" ] || ln -s "$library/$(basename "$app")/ebin" "$app/ebin"
    done
  done
  [ -d "$elixir/lib/$1/test" ]
}

# elixir_suite SIDE APP: leaves lines like those of `suite`
elixir_suite() {
  side=$1 app=$2
  lines=$cache/$side/elixir/$app.lines
  : >"$lines"
  tests=test
  [ "$app" = elixir ] && tests=test/elixir
  if [ "$side" = stock ] || [ "$purlin" = stock ]; then set --; else set -- "$purlin" exec --; fi
  # Waiting for a message is not what is measured, so a loaded machine gets time for it. Without rebar3, what needs it fails
  # on both sides.
  (cd "$cache/elixir-tree-$side/lib/$app" &&
    RESULTS=$lines ELIXIR_ASSERT_TIMEOUT=4000 REBAR3=${REBAR3:-$(command -v rebar3 || command -v false)} LC_ALL=C.UTF-8 \
      timeout -k 5 "${SUITE_SECONDS:-1800}" "$@" elixir -r "$here/tests/elixir/recorder.exs" \
      -r "$tests/test_helper.exs" -pr "$tests/**/*_test.exs") >"$cache/$side/elixir/$app.log" 2>&1 </dev/null
  grep -q '^done' "$lines" || echo "$side did not reach the end of elixir/$app: $cache/$side/elixir/$app.log" >&2
  verdicts "$lines" >"$cache/$side/elixir/$app"
}

# The first verdict of a case counts: cases that are left out of a second run are reported as skipped by it.
verdicts() {
  awk '/^end / { if (!seen[$2]++) { $1 = ""; print substr($0, 2) } }' "$1"
}

# suite SIDE SUITE: leaves lines `CASE VERDICT REASON` in CACHE/SIDE/SUITE
suite() {
  side=$1 suite=$2
  case $suite in elixir/*) elixir_suite "$side" "${suite#*/}"; return ;; esac
  if [ "$side" = stock ] || [ "$purlin" = stock ]; then set -- erl; else set -- "$purlin" erl; fi
  lines=$cache/$side/$suite.lines
  : >"$lines"
  left=
  deadline=$(($(date +%s) + ${SUITE_SECONDS:-600}))
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
  verdicts "$lines" >"$cache/$side/$suite"
}

row() { printf '%-28s %7s %7s %7s %8s%%\n' "$1" "$2" "$3" "$4" "$(awk "BEGIN { printf \"%.1f\", $2 ? 100 * $3 / $2 : 0 }")"; }

: >"$cache/differences.txt"
: >"$cache/results"
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
  row "$s" "$1" "$2" "$3"
  echo "$s $1 $2" >>"$cache/results"
  awk -v s="$s" 'NR == FNR { got[$1] = $0; next } $2 == "passed" && got[$1] !~ /^[^ ]+ passed/ { print s, (got[$1] ? got[$1] : $1 " did not run") }' \
    "$cache/purlin/$s" "$cache/stock/$s" >>"$cache/differences.txt"
  total=$((total + $1)) same=$((same + $2))
done
row all "$total" "$same" ""
echo "differences, with reasons: $cache/differences.txt"
[ -z "${TABLE:-}" ] || sh "$here/scripts/compatibility.sh" suites "$cache/results"
