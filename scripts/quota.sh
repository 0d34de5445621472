#!/bin/sh
# Changes the processor quota of a control group while a node runs in it. Prints how many schedulers
# are online after each change, and how often the kernel throttled the group (`nr_throttled`) in
# three seconds in which as many processes compute as there are processors. Then it prints
# `erlang:system_info(cpu_quota)` after `update_cpu_info`. Purlin and stock run one after the other.
# It needs root, the controller cpu of v1 or v2, and three processors.
#
#   scripts/quota.sh     PURLIN: the executable
set -u
cd "$(dirname "$0")/.." || exit 2
PURLIN=${PURLIN:-$PWD/target/release/purlin}
processors=$(nproc)
[ -x "$PURLIN" ] || { echo "$PURLIN is not there: build it first (make)" >&2; exit 2; }
if [ -f /sys/fs/cgroup/cgroup.controllers ] && grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
  version=2 group=/sys/fs/cgroup/purlin-quota-$$
  echo +cpu >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
else
  version=1 group=/sys/fs/cgroup/cpu/purlin-quota-$$
fi
mkdir "$group" 2>/dev/null || { echo "no control group can be made here: $group" >&2; exit 2; }
dir=$(mktemp -d)
pid=
trap 'kill -9 $pid 2>/dev/null; sleep 1; rmdir "$group" 2>/dev/null; rm -rf "$dir"' EXIT
quota() { # processors, or max
  if [ "$version" = 2 ]; then
    if [ "$1" = max ]; then echo "max 100000"; else echo "$(($1 * 100000)) 100000"; fi >"$group/cpu.max"
  else
    if [ "$1" = max ]; then echo -1; else echo "$(($1 * 100000))"; fi >"$group/cpu.cfs_quota_us"
  fi
}
throttled() { awk '$1 == "nr_throttled" { print $2 }' "$group/cpu.stat"; }
# A line that comes in is answered by how many are online, when as many processes as there are
# processors have computed for three seconds.
cat >"$dir/busy.escript" <<'BUSY'
#!/usr/bin/env escript
main([]) ->
    case io:get_line("") of
        eof -> ok;
        _ ->
            timer:sleep(1500),
            Work = fun F() -> lists:seq(1, 1000), F() end,
            Pids = [spawn(Work) || _ <- lists:seq(1, erlang:system_info(schedulers))],
            timer:sleep(3000),
            [exit(P, kill) || P <- Pids],
            erlang:system_info(update_cpu_info),
            io:format("~p ~p~n", [erlang:system_info(schedulers_online), erlang:system_info(cpu_quota)]),
            main([])
    end.
BUSY
mkfifo "$dir/in" "$dir/out"
bad=0
for side in purlin stock; do
  case $side in stock) set -- escript ;; *) set -- "$PURLIN" escript ;; esac
  quota 2
  # shellcheck disable=SC2016
  sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" "$dir/busy.escript" <"$dir/in" >"$dir/out" &
  pid=$!
  exec 3>"$dir/in" 4<"$dir/out"
  for wanted in 2 1 3 max 2; do
    quota $wanted
    expected=$wanted
    told=$wanted
    { [ "$wanted" = max ] || [ "$wanted" -gt "$processors" ]; } && expected=$processors told=unknown
    before=$(throttled)
    echo >&3
    read -r online quota <&4
    printf '%-7s quota %-3s: %s schedulers online, stopped %s times; cpu_quota %s\n' "$side" "$wanted" "$online" \
      "$(($(throttled) - before))" "$quota"
    [ "$side" = stock ] || [ "$online $quota" = "$expected $told" ] || { bad=1; echo "FAILED: $expected are to be online, cpu_quota $told"; }
  done
  exec 3>&- 4<&-
  wait $pid
done
exit $bad
