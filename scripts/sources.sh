# Common part of the scripts that work with the sources of OTP and Elixir. `here` is the project's
# directory. It sets `cache`, and defines functions that find the sources and the executable, and
# that compare two trees of modules. RELEASE=otp27 uses the root of another release
# (`scripts/roots.sh`, ROOTS) and its sources in place of the installed OTP, with a cache of its
# own.
# shellcheck shell=sh
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/purlin/conformance}
suite=""
if [ -n "${RELEASE:-}" ]; then
  root=${ROOTS:-$here/target/roots}/$RELEASE
  [ -x "$root/bin/erl" ] || { echo "$root has no bin/erl: scripts/roots.sh makes such roots" >&2; exit 2; }
  root=$(cd "$root" && pwd)
  export PATH="$root/bin:$PATH" PURLIN_OTP_ROOT="$root/usr/lib/erlang"
  cache=$cache/$RELEASE
  # Where Debian has the sources: those of unstable may be ahead of what the mirror holds.
  case $RELEASE in
    otp27) suite=trixie ;;
    otp29) suite=forky ;;
    *) echo "unknown release: $RELEASE (otp27 otp29)" >&2; exit 2 ;;
  esac
fi
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# source_package PACKAGE: fetches the distribution's source package into the cache and unpacks it
# there, once. An entry for sources is added to a list of our own, not to the system's.
source_package() {
  ls -d "$cache/$1"-*/ >/dev/null 2>&1 && return
  mkdir -p "$cache/apt/lists/partial" || return 1
  . /etc/os-release
  echo "deb-src http://deb.debian.org/debian ${suite:-${VERSION_CODENAME:-stable}} main" >"$cache/apt/sources.list"
  set -- "$1" -o "Dir::Etc::sourcelist=$cache/apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$cache/apt/lists" \
    -o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false
  package=$1
  shift
  apt-get "$@" update -qq >&2 && (cd "$cache" && apt-get "$@" source -qq "$package" >/dev/null) || {
    echo "the sources of $package cannot be fetched" >&2
    return 1
  }
}

otp_source() {
  [ -n "${OTP_SOURCE:-}" ] || { source_package erlang && OTP_SOURCE=$(ls -d "$cache"/erlang-*/ | head -1); } || return 1
  (cd "$OTP_SOURCE" && pwd)
}

elixir_source() {
  [ -n "${ELIXIR_SOURCE:-}" ] || { source_package elixir-lang && ELIXIR_SOURCE=$(ls -d "$cache"/elixir-lang-*/ | head -1); } || return 1
  (cd "$ELIXIR_SOURCE" && pwd)
}

purlin_executable() {
  if [ -z "${PURLIN:-}" ]; then
    cargo build --release -q || return 1
    PURLIN=$here/target/release/purlin
  fi
  echo "$PURLIN"
}

# compare_trees ONE OTHER: modules of two trees, byte for byte. A name and the chunks that differ,
# then a line of counts; status 1 unless all are the same. Two things that differ by nature are
# looked through, and counted apart: compiled regular expressions among a module's literals, which
# belong to the library that made them, and the order of lists in the debug information, where they
# come from the keys of large maps, whose order no two emulators need share.
compare_trees() {
  escript "$here/scripts/compare_modules.escript" "$1" "$2"
}
