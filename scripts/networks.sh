#!/bin/sh
# Two nodes in networks of their own (`ip netns`, so as root), of stock and of Purlin in all pairs:
# the network between them is cut and healed, one of them stops reading, and one has a wrong cookie
# (tests/nodes/cut.erl). What the pairs say is compared with what two nodes of stock say, and so is
# whether the other node logs that it refuses the cookie.
#
#   scripts/networks.sh
#
# PURLIN: the executable (target/release/purlin). TICK (8): `net_ticktime`, in seconds. Status 1 if
# a pair differs.
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
. "$here/scripts/sources.sh"
purlin=$(purlin_executable) || exit 1
case $purlin in /*) ;; *) purlin=$here/$purlin ;; esac
dir=$(mktemp -d)
one=purlin$$a other=purlin$$b device=v$$
children=
finish() {
  # shellcheck disable=SC2086
  kill -CONT $children 2>/dev/null
  # shellcheck disable=SC2086
  kill $children 2>/dev/null
  ip netns del "$one" 2>/dev/null
  ip netns del "$other" 2>/dev/null
  rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM
ip netns add "$one" && ip netns add "$other" && ip link add "${device}a" netns "$one" type veth peer name "${device}b" netns "$other" || {
  echo "networks can't be made here" >&2
  exit 2
}
ip -n "$one" addr add 10.213.7.1/24 dev "${device}a"
ip -n "$other" addr add 10.213.7.2/24 dev "${device}b"
for n in "$one" "$other"; do ip -n "$n" link set lo up; done
ip -n "$one" link set "${device}a" up
ip -n "$other" link set "${device}b" up
erlc -o "$dir" tests/nodes/cut.erl || exit 1
for n in "$one" "$other"; do
  ip netns exec "$n" epmd >/dev/null 2>&1 </dev/null &
  children="$children $!"
done
command_of() { if [ "$1" = stock ]; then echo erl; else echo "$purlin exec -- erl"; fi; }
status=0
for pair in stock-stock purlin-purlin purlin-stock stock-purlin; do
  ip -n "$other" link set "${device}b" up
  # shellcheck disable=SC2046
  (exec ip netns exec "$other" $(command_of "${pair#*-}") -name other@10.213.7.2 -setcookie right -noshell -noinput -pa "$dir" \
    -kernel net_ticktime "${TICK:-8}" -run cut other >"$dir/$pair.log" 2>&1 </dev/null) &
  there=$!
  children="$children $there"
  # shellcheck disable=SC2046
  timeout -k 5 240 ip netns exec "$one" $(command_of "${pair%-*}") -name one@10.213.7.1 -setcookie right -noshell -noinput -pa "$dir" \
    -kernel net_ticktime "${TICK:-8}" -run cut main other@10.213.7.2 "$other" "${device}b" </dev/null 2>"$dir/$pair.errors" >"$dir/$pair"
  kill -CONT "$there" 2>/dev/null
  kill "$there" 2>/dev/null
  wait "$there" 2>/dev/null
  grep -o 'Connection attempt .*node' "$dir/$pair.log" | sed 's/one@[0-9.]*/one/' | sort -u >>"$dir/$pair"
  if [ "$pair" = stock-stock ]; then
    cat "$dir/$pair"
    grep -q '^right_cookie: true' "$dir/$pair" || { echo "stock did not come to its end"; tail -n 5 "$dir/$pair.errors"; exit 1; }
  elif diff "$dir/stock-stock" "$dir/$pair"; then
    echo "$pair: as two of stock"
  else
    echo "$pair: differs"
    tail -n 5 "$dir/$pair.errors"
    status=1
  fi
done
exit $status
