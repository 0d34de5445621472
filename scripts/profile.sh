#!/bin/sh
# Measures how often each part of the runtime runs in the programs of benches/ and in servers, and writes `profile/x86_64.profdata`, by which
# release builds are made (`scripts/rustc.sh`). It takes a build that counts, and some five minutes of programs. To be made again when much has changed in
# what programs spend their time in; it is of no use for another version of the compiler, which names functions otherwise.
#
#   scripts/profile.sh
#
# It needs `llvm-profdata` of the compiler's version (`rustup component add llvm-tools`). PATH and PURLIN_OTP_ROOT choose the release of OTP.
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "the profile is measured on Linux on x86-64" >&2; exit 1; }
profdata=$(find "$(rustc --print sysroot)" -name llvm-profdata -type f 2>/dev/null | head -1)
[ -n "$profdata" ] || { echo "llvm-profdata isn't installed: rustup component add llvm-tools" >&2; exit 1; }
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
unset PURLIN_JIT PURLIN_PROFILE
# Where counts go if nothing else is said; parts of flags may have spaces.
CARGO_ENCODED_RUSTFLAGS=$(printf -- '-Cprofile-generate=%s\037--cfg\037purlin_counts' "$PWD/target/counts/raw") \
  cargo build --release -q -p purlin --target-dir target/counts || exit 1
# How servers are asked: this doesn't count.
cargo build --release -q -p purlin-measure --example http_rate --target-dir target/asks || exit 1
purlin=target/counts/release/purlin

. scripts/programs.sh
erlc -o "$dir" benches/sockets.erl examples/http/http_server.erl || exit 1
export LLVM_PROFILE_FILE="$dir/programs-%m.profraw"
failed() {
  echo "failed: $*" >&2
  : >"$dir/failed"
}
run() { timeout 120 "$purlin" erl -noshell -pa "$dir" "$@" </dev/null >"$dir/out" 2>&1 || failed "$@"; }
for module in $modules; do
  for name in $(erl -noshell -pa "$dir" -eval "[io:format(\"~s \", [N]) || N <- $module:names()], halt()."); do
    # It is nothing but one loop, beside which the compiler finds all else cold.
    [ "$name" = traces ] || run -run bench main "$module" "$name" 1
  done
done

export LLVM_PROFILE_FILE="$dir/servers-%m.profraw"
run -run sockets main accept 20
run -run sockets main echo 50

# serve ANSWERS PATH COMMAND...: is asked so many times a second, for ten seconds. It ends in order, so that its counts are written.
serve() {
  rate=$1 path=$2
  shift 2
  : >"$dir/out"
  "$@" >"$dir/out" 2>"$dir/err" </dev/null &
  pid=$!
  for _ in $(seq 100); do
    port=$(sed -n 's/^http:.*:\([0-9]*\)\/$/\1/p' "$dir/out")
    [ -n "$port" ] && break
    sleep 0.1
  done
  timeout 60 target/asks/release/examples/http_rate "$port" "$path" "$rate" 64 10 >/dev/null 2>&1 || failed "$path"
  kill -TERM "$pid"
  # Its counts are written as it ends.
  for _ in $(seq 200); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -9 "$pid" 2>/dev/null && failed "the end of $path"
  wait "$pid" 2>/dev/null
  pid=
}
for path in / /whole /split; do
  serve 1000 "$path" "$purlin" erl -noshell -pa "$dir" -run http_server main 0
done
if [ -n "$libraries" ]; then
  for path in "/table?rows=1000" /hello/world; do
    serve 500 "$path" "$purlin" elixir --erl -noshell examples/http/pages.exs 0
  done
fi
[ ! -e "$dir/failed" ] || { echo "something failed: the profile stays as it is" >&2; exit 1; }
mkdir -p profile
# Servers do a little of everything, and programs a great deal of one thing: what servers do is to count as much. The file is there whole or not at all:
# the compiler doesn't take half of one.
"$profdata" merge --sparse -o profile/new --weighted-input="1,$(echo "$dir"/programs-*.profraw)" \
  --weighted-input="20,$(echo "$dir"/servers-*.profraw)" && mv profile/new profile/x86_64.profdata || exit 1
# Cargo doesn't know that all crates depend on it.
touch crates/*/src/lib.rs crates/purlin/src/main.rs
ls -l profile/x86_64.profdata
