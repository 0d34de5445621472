#!/bin/sh
# RabbitMQ as Debian packages it, on stock and on Purlin: the broker is started, and a client
# (examples/rabbitmq) asks the same of both; the answers must be the same. Packages are fetched with
# apt-get into target/rabbitmq and unpacked there; nothing is installed. `scripts/rabbitmq.sh
# [PURLIN]`; PORT names the first of four ports.
# RELEASES (25): 25 is the machine's own Erlang, others are roots of scripts/roots.sh (ROOTS), with
# the RabbitMQ of the same release of Debian: `RELEASES="27 29" scripts/rabbitmq.sh`. The status is
# 1 if answers differ, or a broker doesn't start.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
purlin=$(realpath "${1:-$here/target/release/purlin}")
roots=${ROOTS:-$here/target/roots}

# fetch DIR PACKAGE ...: the packages that belong to this release, unpacked.
fetch() {
    into=$1
    shift
    if [ "$release" != 25 ]; then
        "$here/scripts/roots.sh" unpack "otp$release" "$into" "$@"
        return
    fi
    (cd "$dir/debs" && for p in "$@"; do apt-get download "$p" >/dev/null || exit 1; done)
    for d in "$dir"/debs/*.deb; do dpkg -x "$d" "$into"; done
}

# broker NAME PORT [COMMAND ...]: what the client is told by a broker that is started by COMMAND.
broker() {
    name=$1 port=$2
    shift 2
    base=$dir/$name
    rm -rf "$base" && mkdir -p "$base"
    echo '[].' >"$base/enabled_plugins"
    # Where much else runs, a client takes longer than ten seconds to say who it is.
    echo '[{rabbit, [{handshake_timeout, 60000}]}].' >"$base/advanced.config"
    env ERL_LIBS="$libraries" HOME="$base" RABBITMQ_NODENAME="$name@localhost" RABBITMQ_NODE_PORT="$port" \
        RABBITMQ_DIST_PORT=$((port + 1)) RABBITMQ_MNESIA_BASE="$base/mnesia" RABBITMQ_LOG_BASE="$base/log" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$base/enabled_plugins" RABBITMQ_CONFIG_FILE="$base/rabbitmq" RABBITMQ_PID_FILE="$base/pid" \
        RABBITMQ_ADVANCED_CONFIG_FILE="$base/advanced.config" RABBITMQ_CONF_ENV_FILE="$base/env" \
        "$@" "$home/sbin/rabbitmq-server" >"$base/out" 2>&1 &
    i=0
    until grep -qs "Starting broker... completed" "$base/out"; do
        i=$((i + 1))
        if [ $i -gt 300 ] || ! kill -0 $! 2>/dev/null; then
            cat "$base/out"
            kill $! 2>/dev/null || true
            return 1
        fi
        sleep 1
    done
    ERL_LIBS="$libraries:$home/plugins" timeout 300 erl -noshell -kernel logger_level error -pa "$dir/ebin" -run ask main "$port" \
        >"$dir/$name.txt" 2>"$dir/$name.err" || true
    kill "$(cat "$base/pid")" || true
    wait
}

own_path=$PATH
for release in ${RELEASES:-25}; do
    dir=$here/target/rabbitmq
    PATH=$own_path
    if [ "$release" != 25 ]; then
        dir=$dir/otp$release
        [ -d "$roots/otp$release" ] || { echo "no otp$release in $roots: make roots" >&2; exit 1; }
        PATH=$roots/otp$release/bin:$PATH
    fi
    mkdir -p "$dir/debs" "$dir/ebin"
    if [ ! -e "$dir/root" ]; then
        rm -rf "$dir/new"
        if [ "$release" = 25 ]; then more="erlang-eldap erlang-os-mon erlang-xmerl"; else more=; fi
        # shellcheck disable=SC2086 # Names of packages.
        fetch "$dir/new" rabbitmq-server $more
        mv "$dir/new" "$dir/root"
    fi
    home=$(echo "$dir"/root/usr/lib/rabbitmq/lib/rabbitmq_server-*)
    libraries=$dir/root/usr/lib/erlang/lib
    ERL_LIBS="$libraries:$home/plugins" erlc -o "$dir/ebin" "$here/examples/rabbitmq/ask.erl"
    broker purlin_stock "${PORT:-5690}"
    broker purlin_own "$((${PORT:-5690} + 2))" "$purlin" exec --
    cat "$dir/purlin_own.txt"
    if diff "$dir/purlin_stock.txt" "$dir/purlin_own.txt" && grep -q '^missing: ' "$dir/purlin_own.txt"; then
        echo "both brokers answer the same: ${home##*_server-}, OTP $release"
    else
        exit 1
    fi
done
