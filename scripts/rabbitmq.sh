#!/bin/sh
# RabbitMQ as Debian packages it, on stock and on Purlin: the broker is started, and a client (examples/rabbitmq) asks the same of both;
# the answers must be the same. Packages are fetched with apt-get into target/rabbitmq and unpacked there; nothing is installed.
# `scripts/rabbitmq.sh [PURLIN]`; PORT names the first of four ports.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
purlin=$(realpath "${1:-$here/target/release/purlin}")
dir=$here/target/rabbitmq
mkdir -p "$dir/debs" "$dir/ebin"
if [ ! -e "$dir/root" ]; then
    (cd "$dir/debs" && for p in rabbitmq-server erlang-eldap erlang-os-mon erlang-xmerl; do apt-get download "$p" >/dev/null || exit 1; done)
    for d in "$dir"/debs/*.deb; do dpkg -x "$d" "$dir/root"; done
fi
home=$(echo "$dir"/root/usr/lib/rabbitmq/lib/rabbitmq_server-*)
export ERL_LIBS="$dir/root/usr/lib/erlang/lib:$home/plugins"
erlc -o "$dir/ebin" "$here/examples/rabbitmq/ask.erl"

# broker NAME PORT [COMMAND ...]: what the client is told by a broker that is started by COMMAND.
broker() {
    name=$1 port=$2
    shift 2
    base=$dir/$name
    rm -rf "$base" && mkdir -p "$base"
    echo '[].' >"$base/enabled_plugins"
    # Where much else runs, a client takes longer than ten seconds to say who it is.
    echo '[{rabbit, [{handshake_timeout, 60000}]}].' >"$base/advanced.config"
    env ERL_LIBS="$dir/root/usr/lib/erlang/lib" HOME="$base" RABBITMQ_NODENAME="$name@localhost" RABBITMQ_NODE_PORT="$port" \
        RABBITMQ_DIST_PORT=$((port + 1)) RABBITMQ_MNESIA_BASE="$base/mnesia" RABBITMQ_LOG_BASE="$base/log" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$base/enabled_plugins" RABBITMQ_CONFIG_FILE="$base/rabbitmq" RABBITMQ_PID_FILE="$base/pid" \
        RABBITMQ_ADVANCED_CONFIG_FILE="$base/advanced.config" RABBITMQ_CONF_ENV_FILE="$base/env" \
        "$@" "$home/sbin/rabbitmq-server" >"$base/out" 2>&1 &
    i=0
    until grep -q 'Starting broker... completed' "$base/out"; do
        i=$((i + 1))
        if [ $i -gt 300 ]; then
            cat "$base/out"
            return 1
        fi
        sleep 1
    done
    timeout 300 erl -noshell -pa "$dir/ebin" -run ask main "$port" >"$dir/$name.txt" 2>&1 || true
    kill "$(cat "$base/pid")" || true
    wait
}
broker purlin_stock "${PORT:-5690}"
broker purlin_own "$((${PORT:-5690} + 2))" "$purlin" exec --
cat "$dir/purlin_own.txt"
if diff "$dir/purlin_stock.txt" "$dir/purlin_own.txt" && grep -q '^missing: ' "$dir/purlin_own.txt"; then
    echo "both brokers answer the same"
else
    exit 1
fi
