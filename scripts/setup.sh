#!/bin/sh
# Installs what building and testing need and the machine lacks: a C toolchain, the stock Erlang and
# Elixir, Rust.
set -eu
need=""
for p in erl:erlang-base erlc:erlang-dev elixir:elixir cc:gcc make:make pkg-config:pkg-config curl:curl strace:strace; do
  command -v "${p%%:*}" >/dev/null 2>&1 || need="$need ${p##*:}"
done
for d in tools crypto asn1 public_key ssl ssh syntax_tools parsetools runtime_tools; do
  ls -d /usr/lib/erlang/lib/$d-* >/dev/null 2>&1 || need="$need erlang-$(echo $d | tr _ -)"
done
[ -e /etc/ssl/certs/ca-certificates.crt ] || need="$need ca-certificates"
if [ -n "$need" ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "installing:$need" >&2
  $sudo apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq $need >/dev/null
fi
# What tests of other machines and of pages need, with the argument `tests`. They are skipped where
# this cannot be had.
need=""
command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 || need="$need gcc-aarch64-linux-gnu"
command -v qemu-x86_64 >/dev/null 2>&1 || command -v qemu-x86_64-static >/dev/null 2>&1 || need="$need qemu-user-static"
# The browser for the page of observe: 64 MB, and 200 MB when it is installed.
for p in chromium chromium-headless-shell chromium-browser google-chrome none; do
  ! command -v "$p" >/dev/null 2>&1 || break
done
[ "$p" != none ] || need="$need chromium-headless-shell"
if [ "${1:-}" = tests ] && [ -n "$need" ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "installing:$need" >&2
  $sudo apt-get update -qq >&2 || :
  # One at a time: what one release of the system lacks does not keep the others away.
  for p in $need; do
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$p" >/dev/null || echo "no $p" >&2
  done
fi
PATH="$HOME/.cargo/bin:$PATH"
# The least version is in Cargo.toml. Debian 12's own Rust is older, so it comes from the Rust
# project's installer. That lies where the toolchain comes from too, so one address less has to be
# within reach (https://sh.rustup.rs is the same text).
least=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' "$(dirname "$0")/../Cargo.toml")
new_enough() {
  have=$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
  [ "${have:-0}" -ge "$least" ]
}
if command -v rustup >/dev/null 2>&1; then
  cargo --version >/dev/null 2>&1 || rustup default stable >&2
  new_enough || echo "Rust 1.$least or later is needed: rustup update" >&2
elif ! new_enough; then
  echo "installing: Rust, to $HOME/.cargo and $HOME/.rustup" >&2
  installer=$(mktemp)
  curl --proto '=https' --tlsv1.2 -sSf https://static.rust-lang.org/rustup/rustup-init.sh -o "$installer" || {
    rm -f "$installer"
    echo "Rust's installer cannot be fetched: see above, or install Rust 1.$least or later by hand" >&2
    exit 1
  }
  sh "$installer" -y -q --profile minimal --default-toolchain stable >/dev/null
  rm -f "$installer"
fi
