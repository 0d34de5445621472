#!/bin/sh
# Native libraries and a driver that Debian packages, loaded and used on stock and on Purlin: what
# `tests/nif/packages.erl` prints must be the same. Packages are fetched with apt-get into
# target/nif-packages and unpacked there; nothing is installed. `scripts/nif_packages.sh [PURLIN]`
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
purlin=$(realpath "${1:-$here/target/release/purlin}")
dir=$here/target/nif-packages
packages="erlang-jiffy erlang-bitcask erlang-p1-cache-tab erlang-p1-iconv erlang-p1-mqtree erlang-p1-sip erlang-p1-sqlite3 erlang-p1-stringprep
 erlang-p1-tls erlang-p1-utils erlang-p1-xml erlang-p1-xmpp erlang-p1-yaml erlang-p1-zlib libsqlite3-0 libyaml-0-2 libexpat1"
mkdir -p "$dir/debs" "$dir/ebin"
if [ ! -e "$dir/root" ]; then
    (cd "$dir/debs" && for p in $packages; do apt-get download "$p" >/dev/null || echo "no package $p"; done)
    for d in "$dir"/debs/*.deb; do dpkg -x "$d" "$dir/root"; done
fi
erlc -W0 -o "$dir/ebin" "$here/tests/nif/packages.erl"
export TMPDIR="$dir/tmp"
mkdir -p "$TMPDIR/nif_packages"
[ -e "$TMPDIR/nif_packages/both.pem" ] || openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=localhost \
    -keyout "$TMPDIR/nif_packages/key.pem" -out "$TMPDIR/nif_packages/cert.pem" 2>/dev/null
cat "$TMPDIR/nif_packages/key.pem" "$TMPDIR/nif_packages/cert.pem" >"$TMPDIR/nif_packages/both.pem"
export ERL_LIBS="$dir/root/usr/lib/erlang/lib"
export LD_LIBRARY_PATH="$dir/root/usr/lib/$(uname -m)-linux-gnu:$dir/root/lib/$(uname -m)-linux-gnu"
cd "$dir"
plain='s/#Ref<[0-9.]*>/#Ref<>/g; s/<0\.[0-9]*\.[0-9]*>/<pid>/g'
erl -noshell -pa ebin -run packages main 2>&1 | sed "$plain" >stock.txt
"$purlin" erl -noshell -pa ebin -run packages main 2>&1 | sed "$plain" >purlin.txt
if diff stock.txt purlin.txt; then
    echo "$(grep -c '{done' stock.txt) packages give the same"
else
    exit 1
fi
