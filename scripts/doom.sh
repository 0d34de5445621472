#!/bin/sh
# The Template of Doom (examples/doom): a comprehension in a template that keeps I/O lists repeats a
# text of 300 bytes N times. The page goes over TCP to a client that discards it. It is built once
# with the text as a whole, and once with an empty value in its middle that is known at run time
# only. Prints the peak of resident memory after rendering and after sending.
#
#   scripts/doom.sh [N]     10000000 (3 GB), next to stock; 100000000 (30 GB) on Purlin alone: stock would need 50 GB
#
# Fails if Purlin needs more than 200 MiB and 54 bytes (whole; the list has 16) or 108 bytes (split;
# 64) for each repetition, or if sending adds more than 16 MiB to what building the list took.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
n=${1:-10000000}
. scripts/executable.sh
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
sides="Purlin stock"
[ "$n" -gt 20000000 ] && sides=Purlin
free=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
most() { [ "$1" = whole ] && echo $((200 + n / 20000)) || echo $((200 + n / 10000)); } # MiB
need=$(most split)
[ "$sides" = Purlin ] || need=$((500 + n / 1800))
if [ "$free" -lt "$need" ]; then
  echo "The Template of Doom, $n repetitions: skipped, needs $need MiB of free memory and there are $free"
  exit 0
fi
echo "The Template of Doom: 300 bytes, $n times"
printf '%-6s %-7s | %10s %10s | %8s %8s\n' page runtime "render MiB" "send MiB" "render s" "send s"
for which in whole split; do
  for side in $sides; do
    runtime=
    [ $side = Purlin ] && runtime=$PURLIN
    # shellcheck disable=SC2086
    if ! timeout -k 5 280 $runtime elixir examples/doom/doom.exs "$n" $which >"$out" 2>&1; then
      printf '%-6s %-7s | failed: %s\n' $which $side "$(tail -1 "$out")"
      [ $side = Purlin ] && status=1
      continue
    fi
    rendered=$(sed -n 's/.*rendered \([0-9]*\), sent [0-9]*$/\1/p' "$out")
    sent=$(sed -n 's/.*rendered [0-9]*, sent \([0-9]*\)$/\1/p' "$out")
    times=$(sed -n 's/rendered in \([0-9]*\) ms, sent in \([0-9]*\) ms/\1 \2/p' "$out")
    printf '%-6s %-7s | %10s %10s | %8s %8s\n' $which $side "$rendered" "$sent" \
      "$(echo "$times" | awk '{ printf "%.1f", $1 / 1000 }')" "$(echo "$times" | awk '{ printf "%.1f", $2 / 1000 }')"
    if [ $side = Purlin ] && { [ "$sent" -gt "$(most $which)" ] || [ $((sent - rendered)) -gt 16 ]; }; then
      echo "too much memory"
      status=1
    fi
  done
done
exit $status
