#!/bin/sh
# Random calls of natives and random programs, on Purlin and on the stock runtime: results, exceptions, reasons and what is
# said about arguments must be the same, line by line.
#
#   scripts/generated.sh [FAMILY ...]    none: all
#
# Families: of calls, in tests/generated/families.erl; of steps on something that lasts, in states.erl; `sharing`, processes
# that pass terms to each other, and `programs`, which are compiled.
# SEED (from the clock): the first seed; ROUNDS (1): how many seeds; COUNT (2000): calls or steps, or a tenth as many programs,
# a seed.
# PURLIN: the executable (target/release/purlin). PURLIN_GC_STRESS=1 and FLAGS="+Fregion 1" hold for Purlin alone.
# A difference is printed and ends in status 1.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
if [ -z "${PURLIN:-}" ]; then
  cargo build --release -q || exit 1
  PURLIN=$PWD/target/release/purlin
fi
seed=${SEED:-$(date +%s)} count=${COUNT:-2000} rounds=${ROUNDS:-1}
stress=${PURLIN_GC_STRESS:-}
unset PURLIN_GC_STRESS
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" tests/generated/*.erl && erl -noshell -pa "$dir" -run calls compile "$dir" || exit 1
list() { erl -noshell -pa "$dir" -eval "[io:format(\"~s \", [F]) || F <- $1:names()], halt()."; }
states=$(list states)
families=${*:-$(list families) $states sharing programs}
# Where files are looked for and made.
mkdir -p "$dir/in/an/empty/place"
lines=0 differing=0
for round in $(seq "$rounds"); do
  for family in $families; do
    case "$family: $states" in
    programs:* | sharing:*) set -- -run "$family" main "$seed" "$((count / 10))" ;;
    *" $family "*) set -- -run states main "$family" "$seed" "$count" ;;
    *) set -- -run calls main "$family" "$seed" "$count" ;;
    esac
    cd "$dir/in/an/empty/place" || exit 2
    timeout 300 erl -noshell -pa "$dir" "$@" >"$dir/stock" 2>&1 </dev/null
    # shellcheck disable=SC2086
    PURLIN_GC_STRESS=$stress timeout 600 "$PURLIN" erl ${FLAGS:-} -noshell -pa "$dir" "$@" >"$dir/purlin" 2>&1 </dev/null
    # A few programs come out of the compiler such that stock's own loader refuses them (`get_hd`, in OTP 25).
    refused=$(awk '/^program/ { n = $2 } /^  badfile/ { print n }' "$dir/stock" | tr '\n' ' ')
    for side in stock purlin; do
      awk -v refused=" $refused" '/^program/ { skip = index(refused, " " $2 " ") } !skip' "$dir/$side" >"$dir/kept"
      mv "$dir/kept" "$dir/$side"
    done
    n=$(wc -l <"$dir/stock")
    # What stock itself calls an internal error is no example.
    d=$(diff -a "$dir/stock" "$dir/purlin" | grep -a '^[<>]' | grep -avc 'internal_error')
    printf '%-12s seed %s: %s lines, %s differ\n' "$family" "$seed" "$n" "$d"
    if [ "$d" -gt 0 ]; then
      diff -a "$dir/stock" "$dir/purlin" | grep -av internal_error | cut -c1-600 | head -20
      differing=$((differing + d))
    fi
    lines=$((lines + n))
  done
  seed=$((seed + 1))
done
echo "$lines lines, $differing differ"
[ "$differing" -eq 0 ]
