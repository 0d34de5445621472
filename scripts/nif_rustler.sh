#!/bin/sh
# A native library in Rust, built with an old and a new version of crate `rustler`, on stock and on
# Purlin: what `tests/nif/rustled.erl` prints must be the same. The crates are fetched by cargo; all
# is in target/nif-rustler. `scripts/nif_rustler.sh [PURLIN]`; VERSIONS (0.29.1 0.37.4) names
# others.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
purlin=$(realpath "${1:-$here/target/release/purlin}")
versions=${VERSIONS:-0.29.1 0.37.4}
dir=$here/target/nif-rustler
status=0
for v in $versions; do
    # From 0.30 on types of resources are registered another way.
    minor=${v#0.}
    [ "${minor%%.*}" -ge 30 ] && features=new || features=
    mkdir -p "$dir/$v/src"
    cp "$here/tests/nif/rustled.rs" "$dir/$v/src/lib.rs"
    cat >"$dir/$v/Cargo.toml" <<END
[package]
name = "rustled"
version = "0.0.0"
edition = "2021"
[lib]
crate-type = ["cdylib"]
[features]
new = []
[dependencies]
rustler = "=$v"
[workspace]
END
    (cd "$dir/$v" && cargo build -q --features "$features" --target-dir "$dir/target")
    cp "$dir/target/debug/librustled.so" "$dir/$v/rustled.so"
    erlc -o "$dir/$v" "$here/tests/nif/rustled.erl"
    (
        cd "$dir/$v"
        export RUST_BACKTRACE=0
        erl -noshell -run rustled main >stock.txt 2>stock.err
        "$purlin" erl -noshell -run rustled main >purlin.txt 2>purlin.err
        diff stock.txt purlin.txt
    ) && echo "rustler $v: $(wc -l <"$dir/$v/stock.txt") lines are the same" || status=1
done
exit $status
