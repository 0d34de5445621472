#!/bin/sh
# Jobs times schedulers, on Purlin and on stock in turn: samples per second and the most memory of
# each cell, as rows of a table.
#
#     examples/vgm/matrix.sh [FILE ...]        default: data/music48.xspf
#
# JOBS ("20 4 1") and SCHEDULERS ("20 4 1") are the cells; ROUNDS (3) runs of each, of which the
# geometric mean counts; LOOPS (1). CPU=1: samples per second that was computed, of all threads, in
# place of the time that passed: for a machine that does other work. PURLIN: the executable. STOCK=0
# leaves stock out. Memory is what /proc says was resident at most, `VmHWM`.
set -u
cd "$(dirname "$0")/../.." || exit 2
purlin=${PURLIN:-target/release/purlin}
[ $# -gt 0 ] || set -- examples/vgm/data/music48.xspf
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM

# one RUNTIME SCHEDULERS JOBS FILES: samples per second and MiB
one() {
  runtime=$1 schedulers=$2 jobs=$3
  shift 3
  rm -rf "$out/sound"
  case $runtime in
    purlin) set -- "$purlin" elixir --erl "+S $schedulers" examples/vgm/render.exs --quiet --jobs "$jobs" --loops "${LOOPS:-1}" --out "$out/sound" "$@" ;;
    stock) set -- elixir --erl "+S $schedulers" examples/vgm/render.exs --quiet --jobs "$jobs" --loops "${LOOPS:-1}" --out "$out/sound" "$@" ;;
  esac
  "$@" >"$out/report" 2>"$out/err" || { cat "$out/err" >&2; return 1; }
  awk -v cpu="${CPU:-0}" '
    function seconds(text) { split(text, t, ":"); return t[1] * 3600 + t[2] * 60 + t[3] }
    /^Samples per second:/ { gsub(",", ""); rate = $4 }
    /^Time:/ { passed = seconds($2) }
    /^Processor time:/ { computed = seconds($3) }
    /^Memory:/ { mib = $2 }
    END { if (cpu + 0) rate = rate * passed / computed; print rate, mib }' "$out/report"
}

echo "| | schedulers | jobs | samples per second | MiB |"
echo "| --- | --- | --- | --- | --- |"
for schedulers in ${SCHEDULERS:-20 4 1}; do
  for jobs in ${JOBS:-20 4 1}; do
    : >"$out/purlin"; : >"$out/stock"
    i=0
    while [ $i -lt "${ROUNDS:-3}" ]; do
      one purlin "$schedulers" "$jobs" "$@" >>"$out/purlin"
      [ "${STOCK:-1}" = 0 ] || one stock "$schedulers" "$jobs" "$@" >>"$out/stock"
      i=$((i + 1))
    done
    for runtime in purlin stock; do
      [ -s "$out/$runtime" ] && awk -v name=$runtime -v s="$schedulers" -v j="$jobs" '
        { rate += log($1); if ($2 > most) most = $2 }
        END { printf "| %s | %d | %d | %d | %.1f |\n", name, s, j, exp(rate / NR), most }' "$out/$runtime"
    done
  done
done
