#!/bin/sh
# Random programs about memory, whose values all carry what they must be: see tests/hunt/hunt_gen.erl. A wrong value, a signal,
# another status than 0, a hang, or a sum that differs from stock's or from that of another mode is a fault.
#
#   scripts/hunt.sh [SECONDS]                        random programs in random modes for so long (60)
#   SEED=N [RUN=N] [MODES="..."] scripts/hunt.sh     one program, in the modes told
#
# A mode is a list such as `release,S2,shared,fence,stress7`: the build (`release`, `debug`), schedulers (`S1`, `S2`, `S8`),
# `shared` (+Fregion 1), `fence` (PURLIN_FENCE=1), `stress` with its seed (PURLIN_GC_STRESS=SEED), and `off`, `always` or `chaos`
# with its seed (PURLIN_JIT, see docs/machine-code.md). `stock` is erl.
# PURLIN: the executable (target/release/purlin); DEBUG: that of the debug build (target/debug/purlin, used where it exists).
# JOBS: how many at once (as many as processors). FIRST: the first seed (from the clock). LIMIT: seconds for a run (180).
# STEPS, SIZE: instead of what goes with the mode. ONLY: modes are made of these words alone, as ONLY="release S1 fence".
# RELEASE: otp27 or otp29 takes the compiler, the libraries and the stock emulator of that root (scripts/roots.sh, ROOTS).
# KINDS: steps of these kinds alone (kinds/0 of hunt_gen.erl), in other programs than seeds have otherwise.
# What found something before, in tests/hunt/seeds.txt, runs first (unless FIRST is given). A fault leaves its program, output
# and how to run it again in target/hunt/failures, is told in a line, and ends in status 1.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
root=$PWD
. scripts/executable.sh
DEBUG=${DEBUG:-$root/target/debug/purlin}
if [ -n "${RELEASE:-}" ]; then
  other=${ROOTS:-$root/target/roots}/$RELEASE
  [ -x "$other/bin/erl" ] || { echo "$other has no bin/erl: scripts/roots.sh makes such roots" >&2; exit 2; }
  PATH=$other/bin:$PATH PURLIN_OTP_ROOT=$other/usr/lib/erlang
  export PURLIN_OTP_ROOT
fi
seconds=${1:-60} limit=${LIMIT:-180} jobs=${JOBS:-$(nproc)}
failures=$root/target/hunt/failures
mkdir -p "$failures"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'kill 0; exit 130' INT TERM
unset PURLIN_GC_STRESS PURLIN_FENCE PURLIN_JIT
erlc -o "$dir" tests/hunt/hunt.erl tests/hunt/hunt_v.erl tests/hunt/hunt_gen.erl || exit 1
started=$(date +%s)
: >"$dir/faults"
: >"$dir/programs"

# How many steps each worker makes in a mode, and how large values are: as much as takes a second or so.
work() {
  n=$2
  # What `make test` runs is a debug build by another name.
  case $PURLIN in */debug/*) set -- "debug,$1" ;; esac
  case $1 in
  *debug*stress* | *stress*debug*) set -- 12 5 ;;
  *stress* | *chaos*) set -- 40 20 ;;
  *fence*) set -- 60 40 ;;
  *debug*) set -- 60 30 ;;
  *) set -- 150 100 ;;
  esac
  # The program that crosses all with all takes them in turn.
  [ "$n" = 0 ] && set -- $(($1 * 4)) "$2"
  echo "${STEPS:-$1} ${SIZE:-$2}"
}

# run DIRECTORY SEED RUN MODE STEPS SIZE: what it says goes to DIRECTORY/out, the status is its own.
run() {
  where=$1 flags= build=$PURLIN variables=
  for word in $(echo "$4" | tr , ' '); do
    case $word in
    debug) build=$DEBUG ;;
    stock) build= ;;
    S1) flags="$flags +S 1" ;;
    S[0-9]*) flags="$flags +S ${word#S}:${word#S}" ;;
    shared) flags="$flags +Fregion 1" ;;
    fence) variables="$variables PURLIN_FENCE=1" ;;
    off | always) variables="$variables PURLIN_JIT=$word" ;;
    chaos*) s=${word#chaos}; variables="$variables PURLIN_JIT=chaos:${s:-1}" ;;
    stress*) s=${word#stress}; variables="$variables PURLIN_GC_STRESS=${s:-1}" ;;
    esac
  done
  # shellcheck disable=SC2086
  (cd "$where" && exec timeout -s KILL "$limit" env $variables ERL_CRASH_DUMP=/dev/null $build erl $flags -noshell -pa "$dir" -pa "$where" \
    -run hunt main "hunt_$2" "$3" "$5" "$6" >"$where/out" 2>"$where/err" </dev/null)
}

fault() { # DIRECTORY SEED RUN MODE STEPS SIZE WHAT
  name=$2-$3-$4
  again="${RELEASE:+RELEASE=$RELEASE }${KINDS:+KINDS=\"$KINDS\" }SEED=$2 RUN=$3 STEPS=$5 SIZE=$6 MODES=$4 scripts/hunt.sh"
  { echo "$7: $again"; cat "$1/out" "$1/err"; } >"$failures/$name.txt"
  cp "$1/hunt_$2.erl" "$failures/"
  echo "$7: $again  $(grep -am1 -e fault -e PURLIN -e panicked "$1/err" | cut -c1-150)" | tee -a "$dir/faults" >&2
}

# One program in one mode. What it must say is kept beside it, from whoever said it first.
one() { # DIRECTORY SEED RUN MODE [STEPS SIZE]
  [ $# -eq 6 ] || set -- "$1" "$2" "$3" "$4" $(work "$4" "$2")
  run "$@"
  status=$?
  echo >>"$dir/programs"
  case $status in
  0)
    said=$1/said-$2-$3-$5-$6
    if [ ! -e "$said" ]; then
      cp "$1/out" "$said"
    elif ! cmp -s "$said" "$1/out"; then
      { echo "it was:"; cat "$said"; } >>"$1/err"
      fault "$@" "other sums"
    fi
    ;;
  137) fault "$@" "no end" ;;
  *) fault "$@" "status $status" ;;
  esac
}

# Words of a mode for each number; some more often.
mode() {
  awk -v n="$1" -v only=" ${ONLY:-} " -v debug="$([ -x "$DEBUG" ] && echo 1)" '
    function pick(l,  a, k, i, m) {
      k = split(l, a, " "); m = 0
      for (i = 1; i <= k; i++) if (only == "  " || a[i] == "-" || index(only, " " a[i] " ")) b[++m] = a[i]
      k = m ? b[1 + int(rand() * m)] : "-"
      return k
    }
    BEGIN {
      srand(n); rand()
      m = pick(debug ? "release release release debug" : "release"); if (m == "-") m = "release"
      s = pick("S1 S1 S2 S8"); if (s != "-") m = m "," s
      if (pick("- shared") != "-") m = m ",shared"
      if (pick("- - fence") != "-") m = m ",fence"
      if (pick("- - stress") != "-") m = m ",stress" int(1 + rand() * 1000)
      c = pick("- - off always chaos chaos")
      if (c != "-") m = m "," c (c == "chaos" ? int(1 + rand() * 1000) : "")
      print m
    }'
}

generate() { # DIRECTORY SEED COUNT [RUNTIME]
  # shellcheck disable=SC2086
  timeout -s KILL 600 ${4:-} erl -noshell -pa "$dir" -run hunt_gen main "$1" "$2" "$3"
}

over() { [ $(($(date +%s) - started)) -ge "$seconds" ]; }

# Programs from a seed on, every so manyth batch.
hunter() {
  mine=$dir/$1 seed=$2 count=2
  mkdir -p "$mine"
  while ! over; do
    rm -f "$mine"/*
    generate "$mine" "$seed" $count
    for n in $(seq "$seed" $((seed + count - 1))); do
      over && break
      # Stock first, for some.
      if [ $((n % 4)) -eq 0 ] && [ -z "${STEPS:-}${SIZE:-}" ]; then one "$mine" "$n" 1 stock; fi
      for k in 1 2 3 4; do
        over && break
        one "$mine" "$n" 1 "$(mode $((n * 10 + k)))"
      done
    done
    seed=$((seed + 100 * jobs)) count=10
  done
}

mkdir -p "$dir/first"
if [ -n "${SEED:-}" ]; then
  generate "$dir/first" "$SEED" 1
  for mode in ${MODES:-stock release}; do
    one "$dir/first" "$SEED" "${RUN:-1}" "$mode"
    cat "$dir/first/out" "$dir/first/err"
  done
else
  first=${FIRST:-$(date +%s)}
  if [ -z "${FIRST:-}" ] && [ -e tests/hunt/seeds.txt ]; then
    grep -v '^#' tests/hunt/seeds.txt | while read -r seed run mode steps size _; do
      over && break
      case $mode in *debug*) [ -x "$DEBUG" ] || continue ;; esac
      [ -e "$dir/first/hunt_$seed.beam" ] || generate "$dir/first" "$seed" 1
      one "$dir/first" "$seed" "$run" "$mode" "$steps" "$size"
    done
  fi
  for job in $(seq "$jobs"); do
    hunter "$job" $((first + 100 * (job - 1))) &
  done
  wait
fi
faults=$(wc -l <"$dir/faults")
echo "$(wc -l <"$dir/programs") programs, $faults faults in $(($(date +%s) - started)) seconds"
[ "$faults" -eq 0 ]
