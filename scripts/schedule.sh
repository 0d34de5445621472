#!/bin/sh
# Runs the figures of benches/schedule on Purlin and on the stock `erl`, in turn, and prints a
# table: how late timers are beside busy processes, what idle and ended processes leave behind, what
# long queues cost, how natives hold others up.
#
#   scripts/schedule.sh [NAME ...]   figures whose names contain one of these; none: all
#
# ROUNDS (3): turns of each runtime; the median counts. SECONDS_EACH (120): limit of a turn. PURLIN:
# the executable. STRESS=60 runs the stress program for so many seconds on Purlin afterwards.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
rounds=${ROUNDS:-3} limit=${SECONDS_EACH:-120}
. scripts/executable.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" benches/schedule/*.erl || exit 1
turn() {
  name=$1; shift
  timeout -s KILL "$limit" "$@" -noshell -pa "$dir" -run figures main "$name" </dev/null 2>"$dir/err" |
    grep -E '^[a-z0-9_]+ [^ ]+ -?[0-9.]+$'
}
echo "Median of $rounds turns each; load of the machine: $(cut -d' ' -f1-3 /proc/loadavg)"
printf '%-28s %6s %12s %12s %8s\n' figure unit Purlin stock ratio
for name in $(erl -noshell -pa "$dir" -eval '[io:format("~s ", [N]) || N <- figures:names()], halt().'); do
  if [ $# -gt 0 ]; then
    hit=
    for w in "$@"; do case $name in *"$w"*) hit=1 ;; esac; done
    [ -n "$hit" ] || continue
  fi
  : >"$dir/p"; : >"$dir/s"
  i=0
  while [ $i -lt "$rounds" ]; do
    turn "$name" "$PURLIN" erl >>"$dir/p"
    turn "$name" erl >>"$dir/s"
    i=$((i + 1))
  done
  awk -v side=p '
    function median(list, n,  i, j, t, v) {
      split(list, v, " ")
      for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
      return v[int((n + 1) / 2)]
    }
    FNR == 1 { file++ }
    { k = $1; if (!(k in unit)) order[++m] = k; unit[k] = $2; l[file, k] = l[file, k] " " $3; c[file, k]++ }
    END {
      for (i = 1; i <= m; i++) {
        k = order[i]; p = c[1, k] ? median(l[1, k], c[1, k]) : "-"; s = c[2, k] ? median(l[2, k], c[2, k]) : "-"
        printf "%-28s %6s %12s %12s %8s\n", k, unit[k], p, s, (s + 0 > 0 && p != "-") ? sprintf("%.2f", p / s) : "-"
      }
      if (m == 0) print "'"$name"' failed on both"
    }' "$dir/p" "$dir/s"
done
if [ -n "${STRESS:-}" ]; then
  timeout -s KILL $((STRESS * 3 + 60)) "$PURLIN" erl -noshell -pa "$dir" -run stress main "$STRESS"
fi
