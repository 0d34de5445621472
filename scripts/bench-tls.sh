#!/bin/sh
# TLS connections by OTP's `ssl` on Purlin and on the stock `erl`, in turn
# (benches/tls_connections.erl): how fast they are opened, what they compute, and the memory that
# they hold.
#
#   scripts/bench-tls.sh [CONNECTIONS]      1000
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
erlc -o "$dir" benches/tls_connections.erl || exit 1
connections=${1:-1000}
for round in $(seq "${ROUNDS:-3}"); do
  for side in purlin stock; do
    if [ "$side" = purlin ] && [ "$PURLIN" != stock ]; then set -- "$PURLIN" exec -- erl; else set -- erl; fi
    timeout -k 2 300 "$@" -noshell -pa "$dir" -run tls_connections main "$connections" </dev/null 2>/dev/null |
      grep -E '^tls' | sed "s/^/$round $side  /"
  done
done
