#!/bin/sh
# Connections on Purlin and on the stock `erl`, in turn (benches/sockets.erl): resident bytes of an
# idle one, and how many are accepted and answered per second. Then the processor time of round
# trips (benches/round_trips.erl) with one and two schedulers: one byte to and fro over a socket, or
# through a port to `cat`.
#
#   scripts/bench-sockets.sh
#
# ROUNDS (3): turns of each runtime; the best counts. IDLE (10000): pairs of idle sockets, as far as
# `ulimit -n` allows. PURLIN: the executable (target/release/purlin); `PURLIN=stock` measures stock
# against itself.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
rounds=${ROUNDS:-3} idle=${IDLE:-10000}
. scripts/executable.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" benches/sockets.erl benches/round_trips.erl || exit 1
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
files=$(ulimit -n)
[ "$files" = unlimited ] || [ "$files" -gt $((2 * idle + 1000)) ] || idle=$(((files - 100) / 2))

# turn purlin|stock WHAT N
turn() {
  if [ "$1" = purlin ] && [ "$PURLIN" != stock ]; then runtime=$PURLIN; else runtime=; fi
  timeout -k 2 60 $runtime erl -noshell -pa "$dir" -run sockets main "$2" "$3" </dev/null 2>/dev/null | grep -E '^[0-9]+$'
}

echo "Best of $rounds, the runtimes in turn. Ratio: Purlin / stock; bytes are those of one of the $((2 * idle)) sockets."
printf '%-22s %10s %10s %8s\n' connections Purlin stock ratio
row() {
  : >"$dir/p"; : >"$dir/s"
  for _ in $(seq "$rounds"); do
    turn purlin "$2" "$3" >>"$dir/p"
    turn stock "$2" "$3" >>"$dir/s"
  done
  p=$(sort "$4" "$dir/p" | head -1) s=$(sort "$4" "$dir/s" | head -1)
  printf '%-22s %10s %10s %8s\n' "$1" "${p:-failed}" "${s:-failed}" "$(awk "BEGIN { printf \"%.2f\", ${p:-0} / ${s:-1} }")"
}
row "idle, bytes" idle "$idle" -n
row "accepted / s" accept 20 -nr
row "100 bytes echoed / s" echo 50 -nr
row "same, one client" echo 1 -nr

# trip purlin|stock WHAT SCHEDULERS: nanoseconds of processor time of a round.
trip() {
  if [ "$1" = purlin ] && [ "$PURLIN" != stock ]; then runtime=$PURLIN; else runtime=; fi
  timeout -k 2 60 $runtime erl +S "$3:$3" -noshell -pa "$dir" -run round_trips main "$2" 10000 </dev/null 2>/dev/null | awk 'NF == 3 { print $2 }'
}
printf '\n%-22s %10s %10s %8s\n' 'round trips, ns' Purlin stock ratio
for schedulers in 2 1; do
  for what in active once passive udp socket cat; do
    : >"$dir/p"; : >"$dir/s"
    for _ in $(seq "$rounds"); do
      trip purlin "$what" "$schedulers" >>"$dir/p"
      trip stock "$what" "$schedulers" >>"$dir/s"
    done
    p=$(sort -n "$dir/p" | head -1) s=$(sort -n "$dir/s" | head -1)
    printf '%-22s %10s %10s %8s\n' "$what, +S $schedulers" "${p:-failed}" "${s:-failed}" "$(awk "BEGIN { printf \"%.2f\", ${p:-0} / ${s:-1} }")"
  done
done
