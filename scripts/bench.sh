#!/bin/sh
# Runs the benchmarks of benches/programs on Purlin and on the stock `erl`, in turn, and prints a
# table.
#
#   scripts/bench.sh [NAME ...]     names choose benchmarks by part of their name; none: all
#
# ROUNDS (3): how often each runtime gets its turn; the best time of all is what counts, since the
# speed of a shared machine swings, and both get the same chances. REPEATS (2): runs within a turn.
# SECONDS_EACH (60): limit of a turn. AGAINST: flags of Purlin; it is then measured with these in
# the place of stock (`AGAINST="+Fregion 0"`: what sharing costs). BENCH_CPU=1: the time that was
# computed in place of the time that passed, for busy machines.
# PURLIN: the executable (target/release/purlin); `PURLIN=stock` measures stock against itself,
# which shows the noise.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
rounds=${ROUNDS:-3} repeats=${REPEATS:-2} limit=${SECONDS_EACH:-60}
. scripts/executable.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
. scripts/programs.sh
headers=$(erl -noshell -eval 'io:put_chars(code:root_dir()), halt().')/usr/include
# Native libraries, where there is a C compiler and OTP has its headers.
if cc -shared -fPIC -O2 -I"$headers" benches/programs/bench_nif.c -o "$dir/bench_nif.so" 2>/dev/null; then
  modules="$modules libraries"
  # jiffy, where `scripts/nif_packages.sh` has fetched it.
  packages=$PWD/target/nif-packages/root/usr/lib/erlang/lib
  if [ -d "$packages" ]; then
    ERL_LIBS=$packages${ERL_LIBS:+:$ERL_LIBS}
    export ERL_LIBS
  fi
fi

# turn purlin|stock MODULE NAME: the best time in microseconds, or nothing
turn() {
  # shellcheck disable=SC2086
  if [ "$1" = purlin ] && [ "$PURLIN" != stock ]; then set -- "$2" "$3" "$PURLIN" erl
  elif [ "$1" = stock ] && [ -n "${AGAINST:-}" ]; then set -- "$2" "$3" "$PURLIN" erl $AGAINST
  else set -- "$2" "$3" erl; fi
  module=$1 name=$2; shift 2
  timeout -k 2 "$limit" "$@" -noshell -pa "$dir" -run bench main "$module" "$name" "$repeats" </dev/null 2>"$dir/err" |
    grep -E '^[0-9]+$' | tail -1
}

line() { printf '%-24s %12s %12s %8s\n' "$@"; }
echo "Best of $rounds x $repeats runs, the runtimes in turn. Ratio: time of Purlin / time of stock; below 1 Purlin is faster."
for module in $modules; do
  echo
  line "$module" "Purlin ms" "${AGAINST:-stock} ms" ratio
  for name in $(erl -noshell -pa "$dir" -eval "[io:format(\"~s \", [N]) || N <- $module:names()], halt()."); do
    if [ $# -gt 0 ]; then
      hit=
      for w in "$@"; do case $name in *"$w"*) hit=1 ;; esac; done
      [ -n "$hit" ] || continue
    fi
    : >"$dir/p"; : >"$dir/s"
    i=0
    while [ $i -lt "$rounds" ]; do
      turn purlin $module "$name" >>"$dir/p"
      turn stock $module "$name" >>"$dir/s"
      i=$((i + 1))
    done
    p=$(sort -n "$dir/p" | head -1) s=$(sort -n "$dir/s" | head -1)
    if [ -n "$p" ] && [ -n "$s" ]; then
      line "$name" "$(awk "BEGIN { printf \"%.1f\", $p / 1000 }")" "$(awk "BEGIN { printf \"%.1f\", $s / 1000 }")" \
        "$(awk "BEGIN { printf \"%.2f\", $p / $s }")"
      echo "$module $p $s" >>"$dir/ratios"
    else
      line "$name" "${p:-failed}" "${s:-failed}" -
    fi
  done
  [ -e "$dir/ratios" ] && awk -v m=$module '$1 == m { s += log($2 / $3); n++ } END { if (n) printf "%-24s %34.2f\n", "geometric mean of " n, exp(s / n) }' "$dir/ratios"
done
[ -e "$dir/ratios" ] && awk '{ s += log($2 / $3); n++ } END { if (n) printf "\n%-24s %34.2f\n", "geometric mean of all " n, exp(s / n) }' "$dir/ratios"
