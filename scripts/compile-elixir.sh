#!/bin/sh
# Has Elixir's own sources build themselves on Purlin and on stock, and compares the modules.
#
# The sources come from the distribution (`apt-get source elixir-lang`) into CACHE
# (~/.cache/purlin/conformance); ELIXIR_SOURCE names a tree that is there already. Both builds
# happen in one place, one after the other, because macros keep the path of what they are compiled
# from. What stock makes is kept in the cache; STOCK=again makes it anew. PURLIN: the executable
# (target/release/purlin). BUILD_SECONDS (1500): the limit of a build.
# Ends with `N of M modules identical`; a module that isn't is named, with the chunks that differ.
# Status 0 if all are.
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
. "$here/scripts/sources.sh"
limit=${BUILD_SECONDS:-1500}
elixir=$(elixir_source) || exit 1
purlin=$(purlin_executable) || exit 1

# build SIDE [COMMAND...]: Elixir as its Makefile builds it, with COMMAND before make
build() {
  side=$1
  shift
  work=$cache/elixir-build
  rm -rf "$work" "$cache/elixir-$side.new"
  cp -r "$elixir" "$work" || return 1
  # Links to the installed library, which other scripts leave in a tree, are not sources.
  rm -rf "$work"/lib/*/ebin
  began=$(date +%s)
  # The date of the build is part of a module; and what the compiler is told to leave out, it leaves
  # out of every module.
  (cd "$work" && LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=1 ERLC_OPTS=deterministic ERL_COMPILER_OPTIONS=deterministic \
    timeout -k 5 "$limit" "$@" make compile) >"$cache/elixir-$side.log" 2>&1 </dev/null
  status=$?
  echo "$side: make ended with status $status after $(($(date +%s) - began)) s"
  [ "$status" = 0 ] || { tail -20 "$cache/elixir-$side.log"; return 1; }
  for app in "$work"/lib/*/; do
    mkdir -p "$cache/elixir-$side.new" && cp -r "$app/ebin" "$cache/elixir-$side.new/$(basename "$app")"
  done
  rm -rf "$cache/elixir-$side" "$work"
  echo "$work" >"$cache/elixir-$side.new/built_in"
  mv "$cache/elixir-$side.new" "$cache/elixir-$side"
}

# A cache that was moved since has modules that name the place it was in.
{ [ "${STOCK:-}" != again ] && [ "$(cat "$cache/elixir-stock/built_in" 2>/dev/null)" = "$cache/elixir-build" ]; } || build stock || exit 1
build purlin "$purlin" exec -- || exit 1
compare_trees "$cache/elixir-stock" "$cache/elixir-purlin"
