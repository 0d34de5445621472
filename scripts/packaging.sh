#!/bin/sh
# Tries the files of packaging that `make deb` does not: the plugin of asdf and mise with a local
# copy of the repository, as asdf calls it; and the syntax of the formula for Homebrew (ruby) and of
# the expression for Nix (nix-instantiate), where those programs are installed. PURLIN names the
# executable that the plugin installs (target/release/purlin, or target/debug/purlin).
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() { # name, command...
  name=$1
  shift
  if "$@" >"$work/out" 2>&1; then echo "ok: $name"; else echo "FAILED: $name"; cat "$work/out"; status=1; fi
}
for purlin in ${PURLIN:-} target/release/purlin target/debug/purlin; do [ -x "$purlin" ] && break; done
case $purlin in /*) ;; *) purlin=$here/$purlin ;; esac

# A repository with two versions, of this commit.
git clone -q --bare . "$work/repository" && cd "$work/repository" &&
  git tag v0.9.0 HEAD && git tag v0.10.0 HEAD && cd "$here" || exit 2
export PURLIN_REPOSITORY="$work/repository"
plugin=packaging/asdf/bin
versions=$("$plugin/list-all")
check "asdf: versions in order" [ "${versions% }" = "0.9.0 0.10.0" ]
export ASDF_INSTALL_TYPE=version ASDF_INSTALL_VERSION=0.10.0
export ASDF_DOWNLOAD_PATH="$work/download" ASDF_INSTALL_PATH="$work/installed"
check "asdf: download" "$plugin/download"
check "asdf: the source is there" [ -f "$work/download/Cargo.lock" ]
check "asdf: install" env PURLIN="$purlin" "$plugin/install"
check "asdf: the program runs" "$work/installed/bin/purlin" version
check "asdf: no such version" sh -c "! ASDF_DOWNLOAD_PATH=$work/none ASDF_INSTALL_VERSION=7 $plugin/download"

if command -v ruby >/dev/null; then
  check "Homebrew: syntax" ruby -c packaging/homebrew/purlin.rb.in
else
  echo "skipped: Homebrew: there is no ruby"
fi
if command -v nix-instantiate >/dev/null; then
  check "Nix: syntax" nix-instantiate --parse packaging/nix/default.nix
else
  echo "skipped: Nix: there is no nix-instantiate"
fi
exit $status
