#!/bin/sh
# Builds what is shipped (`make dist`), prints what it runs on, serves a page, and renders a song.
# Then it measures a million processes and a page of 3 GB on Purlin and on the stock runtime. SIZES
# and names of steps shorten the part of the processes, as in scripts/ladder.sh, and leave the large
# page out: SIZES=1000 scripts/demo.sh count
set -eu
cd "$(dirname "$0")/.."
PATH="$HOME/.cargo/bin:$PATH"
sh scripts/dist.sh
purlin=target/dist/purlin
export PURLIN="$PWD/$purlin"
"$purlin" version
echo
echo "examples/hello.exs on Purlin:"
"$purlin" run examples/hello.exs || true
echo

echo "A page of examples/http/pages.exs, served by Purlin:"
out=$(mktemp)
"$purlin" run examples/http/pages.exs 0 >"$out" 2>&1 </dev/null &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -f "$out"' EXIT
trap 'exit 130' INT TERM
port=
for _ in $(seq 100); do
  port=$(sed -n 's/^http:.*:\([0-9]*\)\/$/\1/p' "$out")
  [ -n "$port" ] && break
  sleep 0.1
done
if [ -n "$port" ]; then
  erl -noshell -eval "{ok, S} = gen_tcp:connect({127,0,0,1}, $port, [binary, {active, false}]),
    ok = gen_tcp:send(S, \"GET /hello/world HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n\"),
    All = fun All(Got) -> case gen_tcp:recv(S, 0, 5000) of {ok, B} -> All([Got, B]); _ -> Got end end,
    io:put_chars(All([])), halt()." || true
else
  cat "$out"
fi
kill "$server" 2>/dev/null || true
wait "$server" 2>/dev/null || true
echo

echo "A song of examples/vgm, rendered by Purlin:"
sounds=target/demo
rm -rf "$sounds"
"$purlin" run examples/vgm/render.exs --quiet --loops 1 --picture --out "$sounds" examples/vgm/data/vgm/mus_opm1.vgz || true
ls "$sounds" 2>/dev/null | sed "s|^|$sounds/|"
echo
sh scripts/ladder.sh "$@"
[ -z "${SIZES:-}$*" ] || exit 0
echo
sh scripts/doom.sh 10000000
