#!/bin/sh
# Runs the programs of examples/million on Purlin and on the stock runtime, in turn: many processes
# that only sleep, all of them alive at once. Prints the peak of resident memory, the time, and
# their ratios.
#
#   scripts/ladder.sh [STEP ...]    task spawn reduce count registry remote flags; none: all
#
# SIZES ("1000 100000 1000000"): how many processes. PURLIN: the executable (target/release/purlin);
# `stock` runs stock twice.
#
# The programs count their living processes once the last is started. Where the first has woken
# before that, the nap was too short for this machine: the run is repeated with one three times as
# long, and counts for nothing otherwise. The peak is the kernel's own high-water mark of the
# process (VmHWM), read until it ends. Stock gets `+P`, without which it has no room for a million
# processes; Purlin gets no flag but those of the step "flags".
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
. scripts/executable.sh
steps=${*:-task spawn reduce count registry remote flags}
sizes=${SIZES:-1000 100000 1000000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"; [ -z "${pid:-}" ] || kill -9 "$pid" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

# kB that may still be taken, by the machine and by the container that this runs in
free_kb() {
  free=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  if [ -r /sys/fs/cgroup/memory.max ] && [ "$(cat /sys/fs/cgroup/memory.max)" != max ]; then
    left=$((($(cat /sys/fs/cgroup/memory.max) - $(cat /sys/fs/cgroup/memory.current)) / 1024))
    [ "$left" -lt "$free" ] && free=$left
  fi
  echo "$free"
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# run purlin|stock STEP N NAP: sets alive, peak (kB) and took (ms, the nap taken off), or why
run() {
  side=$1 step=$2 n=$3 nap=$4
  file=$step flags=
  [ "$step" = flags ] && file=remote flags="+hms 1 +L +ec"
  if [ "$side" = stock ] || [ "$PURLIN" = stock ]; then
    set -- elixir
    flags="$flags +P 2000000"
  else
    set -- "$PURLIN" elixir
  fi
  [ -n "$flags" ] && set -- "$@" --erl "$flags"
  begun=$(now_ms)
  "$@" "examples/million/$file.exs" "$n" "$nap" >"$dir/out" 2>"$dir/err" </dev/null &
  pid=$!
  peak=0
  while read -r word value _ 2>/dev/null <<-X
	$(grep VmHWM "/proc/$pid/status" 2>/dev/null)
	X
  do
    if [ -n "${value:-}" ]; then
      [ "$value" -gt "$peak" ] && peak=$value
    elif ! kill -0 "$pid" 2>/dev/null || grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null; then
      break
    fi
    if [ $(($(now_ms) - begun)) -gt $((nap + 180000)) ]; then
      kill -9 "$pid" 2>/dev/null
      break
    fi
    sleep 0.05
  done
  wait "$pid"
  status=$?
  pid=
  took=$(($(now_ms) - begun - nap))
  alive=$(sed -n 's/^alive //p' "$dir/out")
  why=
  grep -q '^done' "$dir/out" || why="status $status: $(head -1 "$dir/err" | cut -c1-60)"
}

# measure purlin|stock STEP N: as run, with a nap that lasts until all are alive
measure() {
  nap=$((1000 + $3 / 100))
  for _ in 1 2 3; do
    run "$1" "$2" "$3" "$nap"
    [ -n "$why" ] && return
    [ "${alive:-0}" -ge "$3" ] && return
    nap=$((nap * 3))
  done
  why="only ${alive:-0} alive at once"
}

mib() { awk "BEGIN { printf \"%.0f\", $1 / 1024 }"; }
seconds() { awk "BEGIN { printf \"%.1f\", $1 / 1000 }"; }
ratio() { awk "BEGIN { printf \"%.2f\", $1 / $2 }"; }
line() { printf '%-9s %9s | %9s %9s %6s | %9s %9s | %7s %7s %6s\n' "$@"; }
echo "Sleeping processes, all alive at once. Peak of resident memory, time without the nap; ratio: Purlin / stock."
line step processes "Purl. MiB" "stock MiB" ratio "Purl. B/p" "stock B/p" "Purl. s" "stock s" ratio
for n in $sizes; do
  for step in $steps; do
    need=$((200000 + n * 9 / 2))
    [ "$step" = flags ] && need=$((200000 + n * 3 / 2))
    if [ "$(free_kb)" -lt "$need" ]; then
      echo "$step at $n: skipped, needs $((need / 1024)) MiB of free memory and there are $(($(free_kb) / 1024))"
      continue
    fi
    measure purlin "$step" "$n"; pp=$peak pt=$took pw=$why
    measure stock "$step" "$n"; sp=$peak st=$took sw=$why
    if [ -n "$pw$sw" ]; then
      echo "$step at $n: Purlin ${pw:-$(mib $pp) MiB, $(seconds $pt) s}; stock ${sw:-$(mib $sp) MiB, $(seconds $st) s}"
      continue
    fi
    line "$step" "$n" "$(mib $pp)" "$(mib $sp)" "$(ratio $pp $sp)" "$((pp * 1024 / n))" "$((sp * 1024 / n))" \
      "$(seconds $pt)" "$(seconds $st)" "$(ratio $pt $st)"
  done
done
