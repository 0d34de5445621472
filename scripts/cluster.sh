#!/bin/sh
# Starts one cluster of Purlin and stock, of this machine's OTP and of other releases, on one host.
# It tries what each member can do with each other one (tests/nodes/cluster.erl), a table of mnesia
# that all of them have, and a shell of each on each other.
#
#   scripts/cluster.sh [MEMBER ...]       members: purlin stock, and purlin-R stock-R of a root R that scripts/roots.sh made (otp27)
#
# Without any: two clusters, of this machine's OTP and root otp27, and of the roots otp27 and otp29,
# as far as they are there: OTP says that nodes of releases which are further apart need not
# understand each other, and those of 25 and 29 don't. ROOTS: where the roots are (target/roots).
# PURLIN: the executable (target/release/purlin). SHELLS=0 leaves the shells out. A line for each
# pair that works says what does; a fault begins with FAILED, and the status is 1 then, if a runtime
# of Purlin has part in it. What fails between members of stock is told and not counted.
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
. "$here/scripts/sources.sh"
purlin=$(purlin_executable) || exit 1
case $purlin in /*) ;; *) purlin=$here/$purlin ;; esac
roots=${ROOTS:-$here/target/roots}
if [ $# = 0 ]; then
  set -- purlin stock
  if [ -x "$roots/otp27/bin/erl" ]; then
    set -- "$@" purlin-otp27 stock-otp27
    if [ -x "$roots/otp29/bin/erl" ]; then
      PURLIN=$purlin ROOTS=$roots sh scripts/cluster.sh purlin-otp27 stock-otp27 purlin-otp29 stock-otp29
      newer=$?
    fi
  fi
fi
dir=$(mktemp -d)
ERL_EPMD_PORT=$(($$ % 20000 + 20000))
export ERL_EPMD_PORT
children=
finish() {
  # shellcheck disable=SC2086
  kill $children 2>/dev/null
  epmd -kill >/dev/null 2>&1
  rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM
erlc -o "$dir" tests/nodes/cluster.erl || exit 1
epmd -daemon || exit 1
host=$(hostname -s)
cookie=cluster$$

# command_of MEMBER: the words that start a node of it
command_of() {
  case $1 in
    purlin) echo "$purlin erl" ;;
    stock) echo erl ;;
    purlin-*) echo "env PURLIN_OTP_ROOT=$roots/${1#purlin-}/usr/lib/erlang $purlin erl" ;;
    stock-*) echo "$roots/${1#stock-}/bin/erl" ;;
    *) echo "$1 is no member" >&2; exit 2 ;;
  esac
}

names=
for m in "$@"; do
  n=$(echo "$m" | tr - _)
  mkdir -p "$dir/$n"
  # shellcheck disable=SC2046
  (exec $(command_of "$m") -sname "$n" -setcookie "$cookie" -noshell -noinput -pa "$dir" -s cluster member \
    -kernel prevent_overlapping_partitions false -mnesia dir "\"$dir/$n\"" >"$dir/$n.log" 2>&1 </dev/null) &
  children="$children $!"
  names="$names $n@$host"
done
# shellcheck disable=SC2086
timeout -k 5 "${CLUSTER_SECONDS:-900}" erl -sname controller -hidden -setcookie "$cookie" -noshell -noinput -pa "$dir" -kernel prevent_overlapping_partitions false \
  -run cluster main $names </dev/null >"$dir/out" 2>&1
cat "$dir/out"
! grep -q '^FAILED' "$dir/out" || tail -n 20 "$dir"/*.log >&2
grep -q ' members, ' "$dir/out" || {
  echo "FAILED purlin: the controller did not come to its end"
  tail -n 5 "$dir"/*.log
} | tee -a "$dir/out"

# A shell of each on each other, in a terminal, which is asked for the node's name. The question
# comes once the prompt may be there; on a busy machine it is asked again, later.
if [ "${SHELLS:-1}" != 0 ] && ! command -v script >/dev/null; then
  echo "shells are left out: there is no script(1)"
elif [ "${SHELLS:-1}" != 0 ]; then
  for to in "$@"; do
    n=$(echo "$to" | tr - _)_far
    # shellcheck disable=SC2046
    (exec $(command_of "$to") -sname "$n" -setcookie "$cookie" -noshell -noinput >"$dir/$n.log" 2>&1 </dev/null) &
    far=$!
    children="$children $far"
    for from in "$@"; do
      [ "$from" = "$to" ] && continue
      got=0
      for seconds in 3 8 20; do
        got=$( {
          (sleep "$seconds"; printf '{shell_of, node()}.\r'; sleep "$seconds") |
            TERM=xterm timeout -k 1 $((seconds * 2 + 2)) script -qec \
              "$(command_of "$from") -sname shell_$seconds -hidden -setcookie $cookie -remsh $n@$host" /dev/null
        } 2>/dev/null | grep -c "{shell_of,'*$n@$host'*}")
        [ "$got" -gt 0 ] && break
      done
      if [ "$got" -gt 0 ]; then echo "$from -> $to: remsh"; else echo "FAILED $from -> $to: remsh"; fi | tee -a "$dir/out"
    done
    kill "$far" 2>/dev/null
  done
fi
! grep -q '^FAILED.*\(purlin\|mnesia\|not there\)' "$dir/out" && [ "${newer:-0}" = 0 ]
