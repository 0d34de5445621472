#!/bin/sh
# Two nodes of Purlin, and two of the stock `erl`, in turn (benches/nodes.erl): round trips, calls
# of many processes, throughput of large messages and the memory meanwhile, what the end of a node
# with many monitors costs, and connecting.
#
#   scripts/bench-nodes.sh [quick]      quick: a tenth of the work
#
# ROUNDS (3): turns of each runtime; all are shown. PURLIN: the executable (target/release/purlin);
# `PURLIN=stock` measures stock against itself.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
. scripts/executable.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" benches/nodes.erl || exit 1
ERL_EPMD_PORT=$(($$ % 20000 + 20000))
export ERL_EPMD_PORT
quick=${1:-}
for round in $(seq "${ROUNDS:-3}"); do
  for side in purlin stock; do
    if [ "$side" = purlin ] && [ "$PURLIN" != stock ]; then set -- "$PURLIN" exec -- erl; else set -- erl; fi
    timeout -k 2 300 "$@" -sname "bench$$" -noshell -pa "$dir" -run nodes main ${quick:+"$quick"} </dev/null 2>/dev/null |
      grep -E '^[0-9a-zM]' | sed "s/^/$round $side  /"
  done
done
epmd -kill >/dev/null 2>&1
