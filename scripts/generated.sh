#!/bin/sh
# Random calls of natives and random programs, on Purlin and on the stock runtime: results,
# exceptions, reasons, stack traces and what is said about arguments must be the same.
#
#   scripts/generated.sh [FAMILY ...]    none: all
#
# Families: of calls, in tests/generated/families.erl; of steps on something that lasts, in
# states.erl; `sharing`, processes that pass terms to each other; and what is compiled: `programs`,
# of whatever kind, and `well_typed`, most of which run to their ends.
# SEED (from the clock): the first seed; ROUNDS (1): how many seeds; COUNT (2000): calls or steps a
# seed (a fiftieth as many programs).
# MODES (plain): how Purlin runs, of `plain`, `shared` (`+Fregion 1`), `stress` (a collection at
# every allocation) and `shared-stress`; a mode with stress makes only a part of the calls, one of
# STRESS (20).
# PURLIN: the executable (target/release/purlin). FLAGS: further flags of Purlin's.
# Of calls, digests are compared, each of a hundred; the hundreds that differ are made once more,
# alone, and told line by line. A difference is printed and ends in status 1.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
. scripts/executable.sh
seed=${SEED:-$(date +%s)} all=${COUNT:-2000} rounds=${ROUNDS:-1} modes=${MODES:-plain}
unset PURLIN_GC_STRESS
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" tests/generated/*.erl && erl -noshell -pa "$dir" -run calls compile "$dir" || exit 1
list() { erl -noshell -pa "$dir" -eval "[io:format(\"~s \", [F]) || F <- $1:names()], halt()."; }
states=$(list states)
families=${*:-$(list families) $states sharing programs well_typed}
# Where files are looked for and made.
mkdir -p "$dir/in/an/empty/place" "$dir/modules"

# On which runtime, the rest as for erl; then the status, as a line.
on() {
  runtime=$1
  shift
  cd "$dir/in/an/empty/place" || exit 2
  if [ "$runtime" = stock ]; then
    timeout -s KILL 600 erl -noshell -pa "$dir" "$@" 2>&1 </dev/null
  else
    flags=${FLAGS:-}
    case $runtime in *shared*) flags="$flags +Fregion 1" ;; esac
    case $runtime in *stress*) stress=1 ;; *) stress= ;; esac
    # shellcheck disable=SC2086
    # No variable without a value: the environment is compared too.
    timeout -s KILL 1200 env ${stress:+PURLIN_GC_STRESS="$stress"} "$PURLIN" erl $flags -noshell -pa "$dir" "$@" 2>&1 </dev/null
  fi
  echo "status $?"
}

# What differs of two files. What stock itself calls an internal error is no example, nor what takes
# all time or memory on both.
compared() { diff -a "$1" "$2" | grep -a '^[<>]' | grep -av -e 'internal_error' -e ' no[ _]end$' -e 'ended: killed$'; }

calls=0 differing=0 once=0 again=0
for round in $(seq "$rounds"); do
  for family in $families; do
    told=0
    for mode in $modes; do
      count=$all
      case $mode in *stress*) count=$((all / ${STRESS:-20})) ;; esac
      kind=lines
      case "$family: $states" in
      programs:* | well_typed:*) set -- -run "$family" main "$seed" "$((count / 50))" "$dir/modules" ;;
      sharing:*) set -- -run sharing main "$seed" "$((count / 50))" ;;
      *" $family "*) set -- -run states main "$family" "$seed" "$count" ;;
      *) kind=digests; set -- -run calls digests "$family" "$seed" "$count" ;;
      esac
      if [ "$told" != "$count" ]; then
        rm -f "$dir"/modules/*
        on stock "$@" >"$dir/stock"
        told=$count
      fi
      on "$mode" "$@" >"$dir/purlin"
      if [ $kind = digests ]; then
        : >"$dir/differences"
        for hundred in $(compared "$dir/stock" "$dir/purlin" | awk '$2 ~ /^[0-9]+$/ { n[$2]++ } END { for (h in n) if (n[h] > 1) print h }' | sort -n | head -20); do
          on stock -run calls some "$family" "$seed" "$hundred" >"$dir/stock.some"
          on "$mode" -run calls some "$family" "$seed" "$hundred" >"$dir/purlin.some"
          if cmp -s "$dir/stock.some" "$dir/purlin.some"; then
            # What waits may take too long on a busy machine, and some of stock's answers depend on
            # all that it did before.
            on stock -run calls digest "$family" "$seed" "$hundred" >"$dir/stock.some"
            on "$mode" -run calls digest "$family" "$seed" "$hundred" >"$dir/purlin.some"
            if cmp -s "$dir/stock.some" "$dir/purlin.some"; then
              echo "$family $mode seed $seed: hundred $hundred differs no more when it is made alone"
              once=$((once + 1))
            else
              echo "> hundred $hundred of seed $seed differs in what isn't shown" >>"$dir/differences"
            fi
          fi
          compared "$dir/stock.some" "$dir/purlin.some" >>"$dir/differences"
        done
        # Some calls bring stock down: what came before them is compared.
        if grep -aq '^status 0$' "$dir/stock"; then
          compared "$dir/stock" "$dir/purlin" | grep -a status >>"$dir/differences"
          n=$count
        else
          n=$(($(grep -acE '^[0-9]+ [0-9A-F]{32}$' "$dir/stock") * 100))
          echo "$family: stock ended with $(grep -a '^status' "$dir/stock") after $n calls of seed $seed"
        fi
      else
        # What waits may take too long on a busy machine: what differs is made once more on both,
        # unless a runtime died of it.
        for attempt in 1 2 3; do
          # A few programs come out of the compiler such that stock's own loader refuses them
          # (`get_hd`, in OTP 25).
          refused=$(awk '/^program/ { n = $2 } /^  badfile/ { print n }' "$dir/stock" | tr '\n' ' ')
          for side in stock purlin; do
            awk -v refused=" $refused" '/^program/ { skip = index(refused, " " $2 " ") } !skip' "$dir/$side" >"$dir/$side.kept"
          done
          compared "$dir/stock.kept" "$dir/purlin.kept" >"$dir/differences"
          if [ ! -s "$dir/differences" ] || [ "$attempt" = 3 ] || grep -aq '^status 1[0-9][0-9]$' "$dir/purlin"; then break; fi
          echo "$family $mode seed $seed: differs, and is made once more"
          cut -c1-300 "$dir/differences" | head -4
          again=$((again + 1))
          rm -f "$dir"/modules/*
          on stock "$@" >"$dir/stock"
          on "$mode" "$@" >"$dir/purlin"
        done
        n=$(wc -l <"$dir/stock.kept")
      fi
      d=$(wc -l <"$dir/differences")
      printf '%-12s %-13s seed %s: %s calls, %s differ\n' "$family" "$mode" "$seed" "$n" "$d"
      cut -c1-700 "$dir/differences" | head -20
      differing=$((differing + d)) calls=$((calls + n))
    done
  done
  seed=$((seed + 1))
done
[ "$once" -eq 0 ] || echo "$once hundreds of calls differed, and no more when they were made alone"
[ "$again" -eq 0 ] || echo "$again times a family differed and was made once more"
echo "$calls calls, $differing differ"
[ "$differing" -eq 0 ]
