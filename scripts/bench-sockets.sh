#!/bin/sh
# Connections on Purlin and on the stock `erl`, in turn (benches/sockets.erl): resident bytes of an idle one, and how many
# are accepted and answered per second.
#
#   scripts/bench-sockets.sh
#
# ROUNDS (3): turns of each runtime; the best counts. IDLE (10000): pairs of idle sockets, as far as `ulimit -n` allows.
# PURLIN: the executable (target/release/purlin); `PURLIN=stock` measures stock against itself.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
rounds=${ROUNDS:-3} idle=${IDLE:-10000}
. scripts/executable.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" benches/sockets.erl || exit 1
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
