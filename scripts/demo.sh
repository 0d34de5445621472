#!/bin/sh
# Builds the release, shows what it runs on, and measures a million processes on Purlin and on the stock runtime.
# SIZES and the names of steps shorten it, as for scripts/ladder.sh: SIZES=1000 scripts/demo.sh count
set -eu
cd "$(dirname "$0")/.."
PATH="$HOME/.cargo/bin:$PATH"
cargo build --release -q
purlin=target/release/purlin
"$purlin" version
echo
echo "examples/hello.exs on Purlin:"
"$purlin" run examples/hello.exs || true
echo
exec sh scripts/ladder.sh "$@"
