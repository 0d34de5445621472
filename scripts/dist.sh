#!/bin/sh
# Builds the executable that is shipped, target/dist/purlin: `make dist`. It takes three steps: a
# build that counts how often code runs, a run of the programs of training/, and a build that is
# optimised by these counts. No figure of the documents is taken from those programs.
#
# The counts stay in target/counts. They are taken anew each time, unless KEEP_COUNTS=1 finds some.
# Where no counts can be had (another system or processor, no `llvm-profdata` of the compiler's
# version), this says so and builds without them.
#
#   scripts/dist.sh        PURLIN_OTP_ROOT and PATH choose the release of OTP that runs the training
set -u
cd "$(dirname "$0")/.." || exit 2
PATH="$HOME/.cargo/bin:$PATH"
counts=$PWD/target/counts merged=$PWD/target/counts/merged.profdata

plain() {
  echo "dist: $1; building without a profile" >&2
  exec cargo build --profile dist -p purlin
}
[ "$(uname -sm)" = "Linux x86_64" ] || plain "a profile is taken on Linux on x86-64 only"
[ -z "${CARGO_BUILD_TARGET:-}" ] || plain "CARGO_BUILD_TARGET names another target"
[ -z "${RUSTFLAGS:-}${CARGO_ENCODED_RUSTFLAGS:-}" ] || plain "RUSTFLAGS is set"
command -v erl >/dev/null && command -v erlc >/dev/null || plain "erl and erlc are not installed"
profdata() { find "$(rustc --print sysroot)" -name llvm-profdata -type f 2>/dev/null | head -1; }
if [ -z "$(profdata)" ] && command -v rustup >/dev/null; then
  timeout 120 rustup component add llvm-tools >&2 || :
fi
profdata=$(profdata)
[ -n "$profdata" ] || plain "llvm-profdata is not installed (rustup component add llvm-tools)"

train() {
  work=$(mktemp -d) || return 1
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM
  rm -rf "$counts/raw" "$merged"
  # Modules that exit without counts of their own write here.
  CARGO_ENCODED_RUSTFLAGS=$(printf -- '-Cprofile-generate=%s\037--cfg\037purlin_counts' "$counts/raw") \
    cargo build --profile dist -q -p purlin --target-dir "$counts" || return 1
  purlin=$counts/dist/purlin
  export LLVM_PROFILE_FILE="$work/%m.profraw"
  erlc -o "$work" training/train.erl || return 1
  for name in $(erl -noshell -pa "$work" -eval '[io:format("~s ", [N]) || N <- train:names()], halt().'); do
    TMPDIR=$work timeout 300 "$purlin" erl -noshell -pa "$work" -run train main "$name" </dev/null >"$work/out" 2>&1 ||
      { grep -v '^LLVM Profile' "$work/out" >&2; echo "dist: the training program $name failed" >&2; return 1; }
  done
  # The compiler, over sources that are there anyway. Some of them are meant to fail.
  find tests/programs/erlang -name '*.erl' -print0 | sort -z |
    timeout 600 xargs -0 -n 40 "$purlin" erlc -o "$work" >/dev/null 2>&1
  if command -v elixir >/dev/null; then
    timeout 300 "$purlin" elixir training/train.exs </dev/null >/dev/null 2>"$work/err" ||
      { cat "$work/err" >&2; echo "dist: training/train.exs failed" >&2; return 1; }
  fi
  "$profdata" merge --sparse -o "$merged.new" "$work"/*.profraw && mv "$merged.new" "$merged"
}
if [ "${KEEP_COUNTS:-0}" != 1 ] || [ ! -s "$merged" ]; then
  unset PURLIN_JIT
  (train) || exit 1
fi
# A function that changed since the counts were taken is compiled without them; that needs no
# warning.
CARGO_ENCODED_RUSTFLAGS=$(printf -- '-Cprofile-use=%s\037-Cllvm-args=-no-pgo-warn-mismatch' "$merged") \
  cargo build --profile dist -p purlin
