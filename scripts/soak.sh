#!/bin/sh
# A mixed load for as long as told, counted: nothing may be lost, stuck or left behind, and memory stays level.
#
#   scripts/soak.sh [SECONDS]    60 unless told
#
# PURLIN: the executable (target/release/purlin); `PURLIN=stock` soaks stock. FLAGS: flags of erl.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
if [ -z "${PURLIN:-}" ]; then
  cargo build --release -q || exit 1
  PURLIN=$PWD/target/release/purlin
fi
[ "$PURLIN" = stock ] || set -- "${1:-60}" "$PURLIN"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" tests/soak/soak.erl || exit 1
# shellcheck disable=SC2086
${2:-} erl ${FLAGS:-} -noshell -pa "$dir" -run soak main "${1:-60}"
