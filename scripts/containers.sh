#!/bin/sh
# Runs programs that grow without end (examples/limits) in a control group of 256 MiB, on stock and
# on Purlin: stock is killed by the system, Purlin ends what grows, and goes on answering. Needs
# root, and the memory controller of v1 or v2.
#
#   scripts/containers.sh [WAY...]     heap many binaries ets; PURLIN: the executable; LIMIT: bytes of the group; LIMITED_BY:
#                                      memory.high (v2), beyond which the system takes pages and makes the group wait, but kills nobody;
#                                      SECONDS_MOST (60): what runs longer is ended; SIDES ("stock purlin")
set -u
cd "$(dirname "$0")/.." || exit 2
PURLIN=${PURLIN:-$PWD/target/release/purlin}
LIMIT=${LIMIT:-268435456}
export SECONDS_MOST="${SECONDS_MOST:-60}"
[ -x "$PURLIN" ] || { echo "$PURLIN is not there: build it first (make)" >&2; exit 2; }
if [ -f /sys/fs/cgroup/cgroup.controllers ] && grep -qw memory /sys/fs/cgroup/cgroup.controllers; then
  group=/sys/fs/cgroup/purlin-$$ limit=${LIMITED_BY:-memory.max} peak=memory.peak
  echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
else
  group=/sys/fs/cgroup/memory/purlin-$$ limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes
fi
dir=$(mktemp -d)
trap 'rmdir "$group" 2>/dev/null; rm -rf "$dir"' EXIT
# A group for each run, so that its peak is that of the run.
fresh() {
  rmdir "$group" 2>/dev/null
  mkdir "$group" 2>/dev/null || { echo "no control group can be made here: $group" >&2; exit 2; }
  echo "$LIMIT" >"$group/$limit" || exit 2
  # Swap would only make it slow.
  for swap in memory.swap.max memory.memsw.limit_in_bytes; do
    [ -e "$group/$swap" ] && { echo 0 >"$group/$swap" || echo "$LIMIT" >"$group/$swap"; } 2>/dev/null
  done
}
erlc -o "$dir" examples/limits/limits.erl || exit 2
bad=0
for way in ${*:-heap many binaries ets}; do
  for side in ${SIDES:-stock purlin}; do
    case $side in stock) set -- erl ;; *) set -- "$PURLIN" erl ;; esac
    fresh
    # shellcheck disable=SC2016
    (cd "$dir" && exec timeout -s KILL $((SECONDS_MOST * 2)) sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" -noshell \
      -run limits main "$way") >"$dir/out" 2>&1 </dev/null
    status=$?
    serves=$(grep -c '^serves' "$dir/out")
    killed=$(grep -c 'memory limit of the node' "$dir/out")
    most=$(($(cat "$group/$peak" 2>/dev/null || echo 0) / 1048576))
    printf '%-9s %-7s status %3s, serves %s, processes ended %s, peak %s MiB\n' "$way" "$side" "$status" "$serves" "$killed" "$most"
    [ "$side" = stock ] || { [ "$status" = 0 ] && [ "$serves" = 1 ] && [ "$killed" -gt 0 ]; } || { bad=1; tail -5 "$dir/out"; }
  done
done
exit $bad
