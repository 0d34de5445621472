#!/bin/sh
# Runs a program, asks it by `purlin explain PID WORDS` once it has printed `ready`, and ends it:
#   sh ask.sh PROGRAM [ARGS] -- WORDS
out=$(mktemp)
words=
while [ "$1" != -- ]; do words="$words $1"; shift; done
shift
# shellcheck disable=SC2086
purlin run $words >"$out" 2>&1 </dev/null &
node=$!
trap 'kill -9 $node 2>/dev/null; rm -f "$out"' EXIT
tries=0
until grep -q '^ready' "$out"; do
  tries=$((tries + 1))
  [ "$tries" -lt 600 ] || { cat "$out"; exit 1; }
  sleep 0.1
done
purlin explain "$node" "$@"
