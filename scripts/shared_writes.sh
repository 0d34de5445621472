#!/bin/sh
# Counts, under qemu-user, how often frequent operations write cache lines that threads share: two
# schedulers make the same operation at the same time, on objects of their own, and each line that
# both of them write counts (benches/shared_writes) if it has at least a write in twenty operations:
# others come from processes that change their scheduler. Prints a table with a row for each line of
# static variables, and one for all lines of the heap, which belong to objects. Ends with 1 if an
# operation has more writes of static variables than its bound.
#
#   scripts/shared_writes.sh [NAME...]     NAMEs choose operations; PURLIN (target/release/purlin) is a build for
#                                          release, QEMU an emulator of x86-64 that takes plugins
set -eu
cd "$(dirname "$0")/.."
names=${*:-all}
qemu=${QEMU:-$(command -v qemu-x86_64 || :)}
[ -n "$qemu" ] || { echo "qemu-x86_64 is needed, as a program that loads plugins (qemu-user)" >&2; exit 2; }
purlin=$(realpath "${PURLIN:-target/release/purlin}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cc -O2 -Wall -shared -fPIC -o "$work/writes.so" benches/shared_writes/writes.c
erlc -o "$work" benches/shared_writes/writes.erl
nm -n "$purlin" | awk '$2 ~ /^[bBdD]$/ { print $1, $3 }' | c++filt >"$work/symbols"
# The emulator takes memory for each page that is reserved.
# shellcheck disable=SC2086
(ulimit -v 33554432 && PURLIN_FENCE_BITS=38 timeout -s KILL "${SECONDS_ALL:-300}" "$qemu" -plugin "$work/writes.so,out=$work/writes" \
  "$purlin" erl +S 2 -noshell -pa "$work" -run writes main $names </dev/null >"$work/operations")
awk -v purlin="$purlin" '
  function number(hex,    n, i) {
    n = 0
    for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
    return n
  }
  # The static variables of a line: the last that begins before it, and those that begin in it.
  function variables(at,    low, high, middle, text) {
    low = 1; high = symbols
    while (low < high) {
      middle = int((low + high + 1) / 2)
      if (address[middle] <= at) low = middle; else high = middle - 1
    }
    text = symbol[low]
    while (++low <= symbols && address[low] < at + 64) text = text ", " symbol[low]
    gsub(/purlin_/, "", text)
    gsub(/::h[0-9a-f]+/, "", text)
    return length(text) > 110 ? substr(text, 1, 110) "..." : text
  }
  FILENAME ~ /symbols$/ { address[++symbols] = number($1); $1 = ""; symbol[symbols] = substr($0, 2); next }
  FILENAME ~ /operations$/ { operation[++operations] = $1; times[operations] = $2; next }
  $1 == "." { counts++; next }
  { row[counts + 0, ++rows[counts + 0]] = $0 }
  END {
    # Bounds of writes to lines of static variables that both share, per operation.
    bound["message"] = bound["named_message"] = bound["whereis"] = bound["call"] = 0.3
    bound["reference"] = bound["ets_read"] = bound["ets_write"] = 0.3
    bound["ets_read_ordered"] = bound["ets_write_ordered"] = 0.3
    bound["ets_read_both"] = bound["ets_read_ordered_both"] = 0.3
    bound["timer"] = 1; bound["spawn"] = 5; bound["monitor"] = 2
    print "| operation | writes | of lines with |"
    print "| --- | --- | --- |"
    for (o = 1; o <= operations; o++) {
      # The first counts are of calls that the start makes.
      section = counts - operations + o - 1
      all = heap = 0
      for (r = 1; r <= rows[section]; r++) {
        split(row[section, r], part, " ")
        each = part[1] / times[o]
        if (each < 0.05) continue
        if (part[2] == "-") { heap += each; continue }
        all += each
        where = part[2] == purlin ? variables(number(part[3])) : part[2]
        printf "| %s | %.2f | %s |\n", operation[o], each, where
      }
      if (heap) printf "| %s | %.2f | the heap |\n", operation[o], heap
      printf "| %s | %.2f | all |\n", operation[o], all + heap
      if (operation[o] in bound && all > bound[operation[o]]) {
        printf "%s: more than %s writes\n", operation[o], bound[operation[o]] >"/dev/stderr"
        failed = 1
      }
    }
    exit failed
  }' "$work/symbols" "$work/operations" "$work/writes"
