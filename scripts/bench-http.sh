#!/bin/sh
# Serves the examples of examples/http on Purlin and on the stock runtime, in turn, to `wrk` over
# the loopback device. Prints requests per second, the 99th percentile of the time that an answer
# took, what went wrong, and the server's peak of resident memory.
#
#   scripts/bench-http.sh [PAGE ...]    index whole split count table greeting; none: all
#
# TURN (10): seconds of a turn. ROUNDS (3): turns of each runtime; the best counts, since the speed
# of a shared machine swings. CONNECTIONS (400), THREADS (2): wrk's. PURLIN: the executable
# (target/release/purlin); `stock` runs stock twice. RATE: requests per second, of all connections
# together, sent at fixed times whatever the answers take, by crates/measure/examples/http_rate.rs
# in the place of `wrk`. Times compare at the same rate only: who answers more is asked more. BASIC
# ("-noshell"): flags of both runtimes. FLAGS: flags of Purlin alone.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
turn=${TURN:-10} rounds=${ROUNDS:-3} connections=${CONNECTIONS:-400} threads=${THREADS:-2}
. scripts/executable.sh
if [ -n "${RATE:-}" ]; then
  cargo build --release -q -p purlin-measure --example http_rate || exit 1
else
  command -v wrk >/dev/null || { echo "wrk isn't installed: apt-get install wrk" >&2; exit 1; }
fi
ulimit -n 4096 2>/dev/null
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" examples/http/http_server.erl || exit 1

# serve purlin|stock PAGE: starts the server; sets pid and url
serve() {
  if [ "$1" = purlin ] && [ "$PURLIN" != stock ]; then runtime="$PURLIN" flags=${FLAGS:-}; else runtime= flags=; fi
  case $2 in
    table | greeting)
      # shellcheck disable=SC2086
      $runtime elixir --erl "${BASIC:--noshell} $flags" examples/http/pages.exs 0 >"$dir/out" 2>"$dir/err" </dev/null & ;;
    *)
      # shellcheck disable=SC2086
      $runtime erl ${BASIC:--noshell} $flags -pa "$dir" -run http_server main 0 >"$dir/out" 2>"$dir/err" </dev/null & ;;
  esac
  pid=$!
  for _ in $(seq 100); do
    url=$(sed -n 's/^\(http:.*\)\/$/\1/p' "$dir/out")
    [ -n "$url" ] && return
    sleep 0.1
  done
}

path() {
  case $1 in
    index) echo / ;;
    count) echo /count/100 ;;
    table) echo "/table?rows=1000" ;;
    greeting) echo /hello/world ;;
    *) echo "/$1" ;;
  esac
}

# ask PAGE: sets answers per second, the 99th percentile of their time, and bad, what went wrong
ask() {
  if [ -n "${RATE:-}" ]; then
    target/release/examples/http_rate "${url##*:}" "$(path "$1")" "$RATE" "$connections" "$turn" >"$dir/rate" 2>&1
    answers=$(awk '$2 == "answers/s," { print $1 }' "$dir/rate")
    late=$(sed -n 's/.* p99 \([0-9.]*\) .*/\1ms/p' "$dir/rate" | head -1)
    bad=$(grep -Ev 'answers/s|^others:' "$dir/rate" | tr -s ' ')
  else
    wrk -t "$threads" -c "$connections" -d "$turn" --latency "$url$(path "$1")" >"$dir/wrk" 2>&1
    answers=$(awk '/^Requests\/sec/ { print $2 }' "$dir/wrk")
    late=$(awk '$1 == "99%" { print $2 }' "$dir/wrk")
    bad=$(grep -E 'Socket errors|Non-2xx' "$dir/wrk" | tr -s ' ')
  fi
}

echo "$connections connections; best of $rounds turns of $turn s, the runtimes in turn. Ratio: Purlin / stock."
printf '%-10s %10s %10s %6s | %9s %9s | %9s %9s | %s\n' page "Purl. r/s" "stock r/s" ratio "Purl. p99" "stock p99" "Purl. MiB" "stock MiB" errors
for page in ${*:-index whole split count table greeting}; do
  : >"$dir/purlin"
  : >"$dir/stock"
  errors=
  for _ in $(seq "$rounds"); do
    for side in purlin stock; do
      serve $side "$page"
      if [ -z "$url" ]; then
        errors="$errors $side: no server: $(head -1 "$dir/err")"
      else
        ask "$page"
        [ -n "$bad" ] && errors="$errors $side:$bad"
        peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")
        echo "$answers $late $((${peak:-0} / 1024))" >>"$dir/$side"
      fi
      kill -9 "$pid" 2>/dev/null
      wait "$pid" 2>/dev/null
      pid=
    done
  done
  # The most answers, or, where there are as many in all turns, the shortest time.
  for side in purlin stock; do
    if [ -n "${RATE:-}" ]; then sort -k2n "$dir/$side"; else sort -rn "$dir/$side"; fi | head -1 >"$dir/best.$side"
  done
  read -r pr pl _ <"$dir/best.purlin"
  read -r sr sl _ <"$dir/best.stock"
  pm=$(awk '$3 > m { m = $3 } END { print m }' "$dir/purlin") sm=$(awk '$3 > m { m = $3 } END { print m }' "$dir/stock")
  printf '%-10s %10s %10s %6s | %9s %9s | %9s %9s | %s\n' "$page" "${pr:-0}" "${sr:-0}" \
    "$(awk "BEGIN { printf \"%.2f\", ${pr:-0} / (${sr:-0} ? ${sr:-0} : 1) }")" "${pl:--}" "${sl:--}" "$pm" "$sm" "${errors:-none}"
done
