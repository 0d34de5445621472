#!/bin/sh
# A node (grow.erl, or another program) is killed, and starts again. Then the record of its first
# run is shown: sh killed.sh [PROGRAM [TOP]]
program=${1:-grow}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache"
mkdir "$work/cache"
touch "$work/out"
purlin erlc -o "$work" "$program.erl" && cd "$work" || exit 1
timeout -k 1 60 purlin erl -noshell -run "$program" main cache >out 2>&1 </dev/null &
until grep -q ready out || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
sleep 1.2
node=$(ls cache/purlin/recorder)
kill -9 "$node"
# The same node again.
timeout -k 1 2 purlin erl -noshell -run "$program" main cache </dev/null
purlin explain show "cache/purlin/recorder/$node" --top "${2:-3}"
