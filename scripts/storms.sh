#!/bin/sh
# Storms: programs at random that do to sockets, timers, ports and what else processes share
# whatever they may, from all sides at once, and check that nothing is lost, doubled or late. See
# docs/storms.md and tests/storms.
#
#   scripts/storms.sh [SECONDS]                            all storms in random modes (60 seconds)
#   SEED=N ONLY=storm_timers [MODES=...] scripts/storms.sh one run again
#
# A mode is a list such as `S2,always,delays7`: schedulers (`S1`, `S2`, `S4`), what has machine code
# (`off`, `always`, `chaos` with its seed: PURLIN_JIT, see docs/machine-code.md), and delays where
# locks are released, with their seed (PURLIN_DELAYS=SEED). It follows from the seed.
#
# ONLY: storms by name (storm_sockets, or sockets). PARTS: parts of them, as PARTS="stream closes".
# ON=stock: stock's emulator. PURLIN: the executable (that of scripts/executable.sh).
# RELEASES: of OTP, each in turn: `machine`, otp27, otp29 (roots of scripts/roots.sh, in ROOTS);
#   those that are there unless told.
# MODES: the mode of all runs. DELAYS=always: no mode without delays.
# EACH: seconds for a run (4). JOBS: how many at once (as many as processors).
# ALL=1: until the time is over and each storm has had its turn.
# LIMIT: seconds that a run takes at most (150 and EACH). FIRST: the first seed (from the clock).
#
# A fault is told with the line that runs it again. Its output is left in target/storms/failures,
# and the status is 1.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
root=$PWD
on=${ON:-purlin}
[ "$on" = stock ] || . scripts/executable.sh
roots=${ROOTS:-$root/target/roots}
if [ -z "${RELEASES:-}" ]; then
  RELEASES=machine
  for r in otp27 otp29; do [ -x "$roots/$r/bin/erl" ] && RELEASES="$RELEASES $r"; done
fi
seconds=${1:-60} each=${EACH:-4} jobs=${JOBS:-$(nproc)}
limit=${LIMIT:-$((150 + each))}
failures=$root/target/storms/failures
mkdir -p "$failures"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'kill 0; exit 130' INT TERM
unset PURLIN_GC_STRESS PURLIN_FENCE PURLIN_JIT PURLIN_DELAYS ERL_FLAGS
for r in $RELEASES; do
  mkdir -p "$dir/$r"
  if [ "$r" != machine ]; then
    [ -x "$roots/$r/bin/erl" ] || { echo "$roots/$r has no bin/erl: scripts/roots.sh makes such roots" >&2; exit 2; }
  fi
  (if [ "$r" != machine ]; then PATH=$roots/$r/bin:$PATH; fi
   erlc -W0 -o "$dir/$r" tests/storms/*.erl) || exit 1
done
storms=
for file in tests/storms/storm_*.erl; do
  storm=$(basename "$file" .erl)
  if [ -z "${ONLY:-}" ]; then
    storms="$storms $storm"
  else
    for o in $ONLY; do case $storm in "$o" | "storm_$o") storms="$storms $storm" ;; esac; done
  fi
done
[ -n "$storms" ] || { echo "no storm is called $ONLY" >&2; exit 2; }
# shellcheck disable=SC2086
count=$(echo $storms | wc -w)
started=$(date +%s)
: >"$dir/faults"
: >"$dir/runs"

# What else is said for a seed: schedulers, machine code, delays.
mode() {
  awk -v n="$1" -v always="${DELAYS:-}" '
    function pick(l,  a, k) { k = split(l, a, " "); return a[1 + int(rand() * k)] }
    BEGIN {
      srand(n); rand()
      m = pick("S1 S2 S2 S4")
      c = pick("- off always chaos")
      if (c != "-") m = m "," c (c == "chaos" ? int(1 + rand() * 1000) : "")
      d = pick("- delays delays delays")
      if (d == "delays" || always == "always") m = m ",delays" int(1 + rand() * 1000)
      print m
    }'
}

# one STORM SEED RELEASE MODE SECONDS
one() {
  out=$dir/$1-$2-$3
  flags= variables=
  for word in $(echo "$4" | tr , ' '); do
    case $word in
    S[0-9]*) flags="$flags +S ${word#S}:${word#S}" ;;
    off | always) variables="$variables PURLIN_JIT=$word" ;;
    chaos*) s=${word#chaos}; variables="$variables PURLIN_JIT=chaos:${s:-1}" ;;
    delays*) s=${word#delays}; variables="$variables PURLIN_DELAYS=${s:-1}" ;;
    esac
  done
  mkdir -p "$out.files"
  begun=$(date +%s)
  (
    if [ "$3" != machine ]; then
      PATH=$roots/$3/bin:$PATH PURLIN_OTP_ROOT=$roots/$3/usr/lib/erlang
      export PATH PURLIN_OTP_ROOT
    fi
    runtime=
    [ "$on" = purlin ] && runtime=$PURLIN
    # shellcheck disable=SC2086
    exec timeout -s KILL "$limit" env $variables STORM_DIR="$out.files" STORM_PARTS="${PARTS:-}" ERL_CRASH_DUMP=/dev/null \
      $runtime erl $flags -noshell -pa "$dir/$3" -run storm main "$1" "$2" "$5"000
  ) >"$out" 2>&1 </dev/null
  status=$?
  rm -rf "$out.files"
  echo "$1" >>"$dir/runs"
  [ "$status" -eq 0 ] && return
  again="${PURLIN_PLANT:+PURLIN_PLANT=$PURLIN_PLANT }ON=$on RELEASES=$3 ONLY=$1 ${PARTS:+PARTS=\"$PARTS\" }SEED=$2 MODES=$4 scripts/storms.sh"
  case $status in
  1) what=$(grep -am1 FAULT "$out" | cut -c1-400) ;;
  137) what="FAULT no end within $limit seconds" ;;
  *) what="FAULT status $status" ;;
  esac
  { echo "$again"; cat "$out"; } >"$failures/$1-$2-$3.txt"
  # No echo: there may be backslashes in it.
  printf '%s (after %s seconds): %s\n' "${what:-FAULT status $status}" $(($(date +%s) - begun)) "$again" |
    tee -a "$dir/faults"
}

over() { [ $(($(date +%s) - started)) -ge "$seconds" ]; }

# Every so manyth seed, each with the next storm and the next release.
worker() {
  n=$1
  while k=$((n - first)); ! over || { [ -n "${ALL:-}" ] && [ $k -lt "$count" ]; }; do
    # shellcheck disable=SC2086
    set -- $storms
    shift $((k % $#))
    storm=$1
    # shellcheck disable=SC2086
    set -- $RELEASES
    shift $((k / count % $#))
    one "$storm" "$n" "$1" "${MODES:-$(mode "$n")}" "$each"
    n=$((n + jobs))
  done
}

if [ -n "${SEED:-}" ]; then
  for r in $RELEASES; do
    for storm in $storms; do
      one "$storm" "$SEED" "$r" "${MODES:-$(mode "$SEED")}" "$seconds"
      cat "$dir/$storm-$SEED-$r"
    done
  done
else
  first=${FIRST:-$(date +%s)}
  for job in $(seq "$jobs"); do
    worker $((first + job - 1)) &
  done
  wait
fi
faults=$(wc -l <"$dir/faults")
echo "$(wc -l <"$dir/runs") runs, $faults faults in $(($(date +%s) - started)) seconds"
[ "$faults" -eq 0 ]
