#!/bin/sh
# Pieces of whole applications (benches/applications) on Purlin and on the stock runtime, in turn,
# with the libraries of one release: the processor time of the whole runtime, start included, least
# of all rounds, and the largest resident size.
#
#   scripts/bench-applications.sh [NAME ...]     names choose pieces by part of their name; none: all
#
# ROUNDS (3). ROOT: a tree that scripts/roots.sh made (target/roots/otp29 if it is there; otherwise
# the machine's own OTP). SECONDS_EACH (120): limit of a run. AGAINST: another executable of Purlin,
# measured in the place of stock. PURLIN: the executable (target/release/purlin).
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
. scripts/executable.sh
rounds=${ROUNDS:-3} limit=${SECONDS_EACH:-120}
root=${ROOT-$PWD/target/roots/otp29}
if [ -n "$root" ] && [ -x "$root/bin/erl" ]; then
  PATH="$root/bin:$PATH" PURLIN_OTP_ROOT="$root/usr/lib/erlang"
  export PATH PURLIN_OTP_ROOT
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" benches/applications/*.erl || exit 1
modules=applications
libraries=$(elixir -e 'IO.puts(Path.dirname(:code.lib_dir(:elixir)))' 2>/dev/null)
if [ -n "$libraries" ] && elixirc -o "$dir" benches/applications/*.ex >"$dir/err" 2>&1; then
  modules="$modules Elixir.ElixirApplications"
  ERL_LIBS=$libraries${ERL_LIBS:+:$ERL_LIBS}
  export ERL_LIBS
fi

# turn first|second MODULE NAME: milliseconds, the hash of the result, and kilobytes
turn() {
  who=$1 module=$2 name=$3
  if [ "$who" = first ] && [ "$PURLIN" != stock ]; then set -- "$PURLIN" erl
  elif [ "$who" = second ] && [ -n "${AGAINST:-}" ]; then set -- "$AGAINST" erl
  else set -- erl; fi
  timeout -k 2 "$limit" "$@" -noshell -pa "$dir" -run "$module" main "$name" </dev/null 2>"$dir/err" |
    grep -E '^[0-9]+ [0-9]+ [0-9]+$' | tail -1
}

line() { printf '%-18s %10s %10s %7s %10s %10s\n' "$@"; }
echo "Processor time, least of $rounds rounds, and largest resident size. Ratio: Purlin / ${AGAINST:-stock}; below 1 Purlin is faster."
line piece "Purlin ms" "other ms" ratio "Purlin MB" "other MB"
status=0
for module in $modules; do
  for name in $(erl -noshell -pa "$dir" -eval "[io:format(\"~s \", [N]) || N <- '$module':names()], halt()."); do
    if [ $# -gt 0 ]; then
      hit=
      for w in "$@"; do case $name in *"$w"*) hit=1 ;; esac; done
      [ -n "$hit" ] || continue
    fi
    : >"$dir/p"; : >"$dir/s"
    i=0
    while [ $i -lt "$rounds" ]; do
      turn first "$module" "$name" >>"$dir/p"
      turn second "$module" "$name" >>"$dir/s"
      i=$((i + 1))
    done
    p=$(sort -n "$dir/p" | head -1) s=$(sort -n "$dir/s" | head -1)
    if [ -z "$p" ] || [ -z "$s" ] || [ "$(awk '{ print $2 }' "$dir/p" "$dir/s" | sort -u | wc -l)" != 1 ]; then
      line "$name" "${p:-failed}" "${s:-failed}" "results"; status=1
      continue
    fi
    echo "$p $s" | awk '{ print $1, $4 }' >>"$dir/ratios"
    pm=$(awk '{ print $3 }' "$dir/p" | sort -n | head -1) sm=$(awk '{ print $3 }' "$dir/s" | sort -n | head -1)
    # shellcheck disable=SC2046
    line "$name" "${p%% *}" "${s%% *}" $(awk "BEGIN { printf \"%.2f %.1f %.1f\", ${p%% *} / ${s%% *}, $pm / 1024, $sm / 1024 }")
  done
done
[ -e "$dir/ratios" ] && awk '{ s += log($1 / $2); n++ } END { if (n) printf "%-18s %29.2f\n", "geometric mean of " n, exp(s / n) }' "$dir/ratios"
exit $status
