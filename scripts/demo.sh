#!/bin/sh
# Shows what this build can do: the OTP it finds, and a module that it loads, checks and disassembles.
set -eu
PATH="$HOME/.cargo/bin:$PATH"
cargo build --release -q
purlin=target/release/purlin
"$purlin" version
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/demo.erl" <<'ERL'
-module(demo).
-export([greet/1]).
greet(Name) -> <<"hello, ", Name/binary>>.
ERL
erlc -o "$dir" "$dir/demo.erl"
echo "demo.erl, compiled by the installed erlc and disassembled by purlin:"
"$purlin" disasm "$dir/demo.beam"
