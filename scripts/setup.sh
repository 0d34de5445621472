#!/bin/sh
# Installs what building and testing need and the machine lacks: a C toolchain, the stock Erlang and Elixir, Rust.
set -eu
need=""
for p in erl:erlang-base erlc:erlang-dev elixir:elixir cc:gcc make:make pkg-config:pkg-config curl:curl; do
  command -v "${p%%:*}" >/dev/null 2>&1 || need="$need ${p##*:}"
done
for d in tools crypto asn1 public_key ssl ssh syntax_tools parsetools runtime_tools; do
  ls -d /usr/lib/erlang/lib/$d-* >/dev/null 2>&1 || need="$need erlang-$(echo $d | tr _ -)"
done
if [ -n "$need" ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "installing:$need" >&2
  $sudo apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq $need >/dev/null
fi
PATH="$HOME/.cargo/bin:$PATH"
# Debian 12's own Rust is too old for the edition, so it comes from the Rust project's installer.
if command -v rustup >/dev/null 2>&1; then
  cargo --version >/dev/null 2>&1 || rustup default stable >&2
elif ! command -v cargo >/dev/null 2>&1; then
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y -q --profile minimal --default-toolchain stable >&2
fi
