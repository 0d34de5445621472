#!/bin/sh
# A mixed load for as long as told, counted: nothing may be lost, stuck or left behind, and memory
# stays level.
#
#   scripts/soak.sh [SECONDS [WORKER ...]]    60 unless told; workers of tests/soak/soak.erl, all unless told
#
# LOAD: `soak` (programs as they are written) or `chaos` (what processes may do to each other, at
# random). PURLIN: the executable (target/release/purlin); `PURLIN=stock` soaks stock. FLAGS: flags
# of erl.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
. scripts/executable.sh
seconds=${1:-60}
[ $# -gt 0 ] && shift
runtime=$PURLIN
[ "$PURLIN" = stock ] && runtime=
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" tests/soak/*.erl || exit 1
# shellcheck disable=SC2086
$runtime erl ${FLAGS:-} -noshell -pa "$dir" -run "${LOAD:-soak}" main "$seconds" "$@"
