#!/bin/sh
# Measures an idle emulator on both runtimes: resident memory two seconds after the start, how much
# of it is private, and the time from start to end of an emulator that halts at once. The rest of
# the memory is pages of files, which all nodes share and the system drops when memory is short. It
# measures with the default limits of ports and processes, and with the largest. Stock sizes its
# table of ports by `ulimit -n`: `+Q 134217727` is what a container with a limit of a billion gives
# it.
#
#   scripts/idle.sh     PURLIN: the executable (target/release/purlin)
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
. scripts/executable.sh
now_ms() { echo $(($(date +%s%N) / 1000000)); }
printf '%-30s | %11s %6s %10s %6s | %8s %8s\n' flags "Purlin MiB" "own" "stock MiB" "own" "Purlin s" "stock s"
for flags in "" "+Q 134217727" "+Q 134217727 +P 134217727"; do
  row=
  for side in "$PURLIN erl" erl; do
    # shellcheck disable=SC2086
    $side $flags -noshell -eval 'io:put_chars("up\n"), timer:sleep(60000).' >/dev/null 2>&1 </dev/null &
    pid=$!
    sleep 2
    # The table of a slow machine may take longer: until two looks a second apart agree.
    before=0 kb=1
    while [ "$before" != "$kb" ]; do
      before=$kb
      sleep 1
      kb=$(awk '/^VmRSS:/ { print $2 }' "/proc/$pid/status")
    done
    own=$(awk '/^Pss_(Anon|Shmem):/ { sum += $2 } END { print sum }' "/proc/$pid/smaps_rollup")
    kill -9 $pid
    wait $pid 2>/dev/null
    begun=$(now_ms)
    # shellcheck disable=SC2086
    $side $flags -noshell -eval 'halt().' </dev/null
    row="$row $((kb / 1024)) $((own / 1024)) $(($(now_ms) - begun))"
  done
  # shellcheck disable=SC2086
  set -- $row
  printf '%-30s | %11s %6s %10s %6s | %8s %8s\n' "${flags:-none}" "$1" "$2" "$4" "$5" "$(echo "$3" | awk '{ printf "%.2f", $1 / 1000 }')" \
    "$(echo "$6" | awk '{ printf "%.2f", $1 / 1000 }')"
done
