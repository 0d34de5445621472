#!/bin/sh
# Three computations over one list, in sequence and in three tasks (examples/careful/tasks.exs), on
# Purlin and on stock, in turn: best time, and the peak of resident memory.
#
#   scripts/careful.sh [SIZE ...]       elements of the list; none: 10000 1000000 10000000
#
# ROUNDS (3): how often each computes. SECONDS_EACH (600): limit of a run. PURLIN: the executable
# (target/release/purlin).
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
. scripts/executable.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# run HOW SIZE COMMAND...: prints time and peak in MiB, as the kernel tells it of the largest
# process of the run
cat >"$dir/peak.exs" <<-'X'
	script = System.get_env("CAREFUL")
	Code.eval_file(script)
	[_, kb] = Regex.run(~r/VmHWM:\s+(\d+)/, File.read!("/proc/self/status"))
	IO.puts(div(String.to_integer(kb), 1024))
X
run() {
  how=$1 size=$2
  shift 2
  CAREFUL=$PWD/examples/careful/tasks.exs timeout -k 2 "${SECONDS_EACH:-600}" "$@" "$dir/peak.exs" "$how" "$size" "${ROUNDS:-3}" \
    </dev/null 2>"$dir/err" | tr '\n' ' '
}

printf '%-10s %-8s %14s %14s %8s %11s %11s %8s\n' elements runtime "sequence ms" "tasks ms" faster "MiB" "tasks MiB" ratio
for size in ${*:-10000 1000000 10000000}; do
  for side in purlin stock; do
    command=elixir
    [ $side = purlin ] && command="$PURLIN elixir"
    # shellcheck disable=SC2086
    set -- $(run sequence "$size" $command) $(run tasks "$size" $command)
    if [ $# -eq 4 ]; then
      printf '%-10s %-8s %14s %14s %8s %11s %11s %8s\n' "$size" $side "$1" "$3" \
        "$(awk "BEGIN { printf \"%.2f\", $1 / $3 }")" "$2" "$4" "$(awk "BEGIN { printf \"%.2f\", $4 / $2 }")"
    else
      printf '%-10s %-8s failed\n' "$size" $side
    fi
  done
done
