#!/bin/sh
# Processor time of operations on what a program can have many of (monitors, links, timers, tables,
# ...), among 100,000 entries and among few, on both runtimes: `make costs`. Names of kinds choose
# some: `sh scripts/costs.sh suspensions links`. It fails where the cost grows with the number of
# entries. PURLIN names another executable.
set -eu
cd "$(dirname "$0")/.."
program=operations_cost_the_same_however_much_there_is
. scripts/executable.sh
purlin=$PURLIN
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
erlc -o "$dir" "tests/programs/erlang/system/$program.erl"

# Times of few milliseconds leave no room for schedulers that spin.
flags="+sbwt none +sbwtdcpu none +sbwtdio none -noshell -pa $dir -run $program main"
status=0
for who in stock purlin; do
    echo "== $who"
    # shellcheck disable=SC2086
    case $who in
    stock) erl $flags all "$@" </dev/null >"$dir/$who" 2>&1 || status=1 ;;
    purlin) "$purlin" erl $flags own "$@" </dev/null >"$dir/$who" 2>&1 || status=1 ;;
    esac
    cat "$dir/$who"
    # Each line is a kind and what was found of it.
    if [ ! -s "$dir/$who" ] || grep -qv ': the same$' "$dir/$who"; then
        status=1
    fi
done
exit $status
