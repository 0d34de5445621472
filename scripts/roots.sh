#!/bin/sh
# Other releases of Erlang and Elixir beside the machine's own, under target/roots (or ROOTS): the
# packages of other Debian releases, fetched by apt with lists and a status of its own, and
# unpacked, not installed. `scripts/roots.sh otp27` fetches one. Each is a file tree with the
# libraries in usr/lib/erlang, and with the stock emulator of that release: the executables of its
# erts are scripts that start the real ones under the tree's own dynamic linker and C library, so
# that `target/roots/otp27/bin/erl` is that release's stock `erl` on any machine. `bin/elixir` is
# Elixir on it.
# `aarch64` is the machine's own release for another processor, without scripts in place of
# executables: `make test-aarch64`. `scripts/roots.sh unpack otp29 DIR PACKAGE ...` unpacks other
# packages of that release into DIR, for instance a server. The mirror is the one that the machine's
# own apt is told of. Prints the roots that are there at the end, a line each; the status is 1 if
# one of those asked for could not be had.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
roots=${ROOTS:-$here/target/roots}
mkdir -p "$roots" || exit 1
roots=$(cd "$roots" && pwd)

# The names by which this script knows a release of Debian: otp27 is what Debian 13 has, otp29 what
# unstable has.
suite_of() {
  case $1 in
    otp27) echo trixie ;;
    otp29) echo sid ;;
    aarch64) (. /etc/os-release && echo "${VERSION_CODENAME:-stable}") ;;
    *) return 1 ;;
  esac
}

# Libraries and tools of OTP, as far as they need no graphics, and those of which the modules alone
# are of use.
packages="erlang-base erlang-dev erlang-src erlang-asn1 erlang-common-test erlang-crypto erlang-debugger erlang-dialyzer
  erlang-diameter erlang-edoc erlang-eldap erlang-et erlang-eunit erlang-ftp erlang-inets erlang-megaco erlang-mnesia
  erlang-observer erlang-odbc erlang-os-mon erlang-parsetools erlang-public-key erlang-reltool erlang-runtime-tools
  erlang-snmp erlang-ssh erlang-ssl erlang-syntax-tools erlang-tftp erlang-tools erlang-xmerl erlang-wx elixir
  libjs-jquery libjs-jquery-tablesorter"
# What the executables and the native libraries among them are linked with comes from the
# dependencies of these.
linked="erlang-base erlang-crypto erlang-asn1 erlang-runtime-tools libzstd1"

# mirror: the address from which the machine's own apt takes its own release.
mirror() {
  . /etc/os-release
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -f "$list" ] || continue
    awk -v own="${VERSION_CODENAME:-stable}" '
      function told() { if (uri != "" && suites ~ "(^| )" own "( |$)") { print uri; found = 1; exit } uri = suites = "" }
      /^deb / { sub(/\[[^]]*\] */, ""); if ($3 == own) { print $2; found = 1; exit } }
      /^URIs:/ { uri = $2 }
      /^Suites:/ { suites = $0 }
      /^[ \t]*$/ { told() }
      END { if (!found) told() }' "$list"
  done | head -1
}

# apt NAME COMMAND ...: a command of apt with that release's lists, and a status of its own: nothing
# is installed.
apt() {
  command=$2
  apt=$roots/apt/$1
  case $1 in aarch64) architecture=arm64 ;; *) architecture=$(dpkg --print-architecture) ;; esac
  shift 2
  "$command" -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o "Dir::State::lists=$apt/lists" \
    -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none \
    -o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false -o Acquire::Retries=2 "$@"
}

# lists NAME: what packages there are, anew.
lists() {
  apt=$roots/apt/$1
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" || return 1
  : >"$apt/status"
  address=$(mirror)
  [ -n "$address" ] || { echo "no mirror of Debian in the machine's apt configuration" >&2; return 1; }
  suite=$(suite_of "$1")
  {
    echo "deb $address $suite main"
    echo "deb-src $address $suite main"
  } >"$apt/sources.list"
  apt "$1" apt-get update -qq >&2
}

# unpack NAME DIR PACKAGE ...
unpack() {
  name=$1
  mkdir -p "$2" && into=$(cd "$2" && pwd) || return 1
  shift 2
  lists "$name" || return 1
  debs=$(mktemp -d) || return 1
  (cd "$debs" && apt "$name" apt-get download -qq "$@" >&2 && for deb in ./*.deb; do dpkg -x "$deb" "$into" || exit 1; done)
  got=$?
  rm -rf "$debs"
  return $got
}

# fetch NAME: downloads and unpacks into $roots/NAME.new, and moves it into place when it is whole.
fetch() {
  name=$1
  own=$(dpkg --print-architecture)
  lists "$name" && mkdir -p "$apt/debs" || return 1
  have=""
  for p in $packages; do
    apt "$name" apt-cache show "$p" 2>/dev/null | grep -q '^Package:' && have="$have $p" || echo "$name: no package $p" >&2
  done
  libraries=$(apt "$name" apt-get install -s -y --no-install-recommends $linked 2>/dev/null |
    awk '$1 == "Inst" && $2 ~ /^lib|^zlib/ { print $2 }')
  (cd "$apt/debs" && rm -f ./*.deb && apt "$name" apt-get download -qq $have $libraries >&2) || return 1
  tree=$roots/$name.new
  rm -rf "$tree" && mkdir -p "$tree/bin" || return 1
  # Debian 13 and later have /lib and /lib64 as links into /usr; packages of before are unpacked
  # through them.
  mkdir -p "$tree/usr/lib" "$tree/usr/lib64" "$tree/usr/bin" "$tree/usr/sbin"
  for d in lib lib64 sbin; do ln -s "usr/$d" "$tree/$d"; done
  for deb in "$apt/debs"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$tree" || return 1
  done
  rm -rf "$tree/usr/share/doc" "$tree/usr/share/man" "$tree/usr/share/locale"
  # Links with an absolute target lead out of the tree.
  find "$tree" -type l -lname '/*' | while read -r link; do
    target=$(readlink "$link")
    [ -e "$tree$target" ] && ln -sfn "$(realpath -s --relative-to="$(dirname "$link")" "$tree$target")" "$link"
  done
  [ "$architecture" != "$own" ] || wrap "$tree" || return 1
  rm -rf "${roots:?}/$name" && mv "$tree" "$roots/$name" && rm -rf "$apt/debs"
}

# wrap TREE: each executable of erts, and each program of a library (`memsup`), becomes a script
# that starts the real one, which lies in real/ of erts, under the tree's own linker. What those
# start in turn is found by the same scripts; other programs stay those of the machine.
wrap() {
  tree=$1
  erts=$(ls -d "$tree"/usr/lib/erlang/erts-*/bin 2>/dev/null | head -1)
  [ -n "$erts" ] || { echo "no erts in $tree" >&2; return 1; }
  linker=$(ls "$tree"/usr/lib64/ld-linux-*.so.* "$tree"/usr/lib/ld-linux-*.so.* 2>/dev/null | head -1)
  machine=$(ls -d "$tree"/usr/lib/*-linux-gnu | head -1)
  [ -n "$linker" ] && [ -n "$machine" ] || { echo "no C library in $tree" >&2; return 1; }
  # By way of links the file may be reached from two places, both of erts: only the real one becomes
  # a script.
  mkdir -p "$erts/real"
  for program in "$erts"/* "$tree"/usr/lib/erlang/bin/* "$tree"/usr/lib/erlang/lib/*/priv/bin/*; do
    [ -f "$program" ] && [ ! -L "$program" ] && [ "$(head -c 4 "$program" | tail -c 3)" = ELF ] || continue
    base=$(basename "$program")
    mv "$program" "$erts/real/$base" || return 1
    cat >"$program" <<WRAPPER
#!/bin/sh
top=\$(dirname "\$(realpath "\$0")")
while [ ! -d "\$top/usr/lib/erlang" ] && [ "\$top" != / ]; do top=\$(dirname "\$top"); done
exec "\$top${linker#"$tree"}" --library-path "\$top${machine#"$tree"}" --argv0 "\$0" "\$top${erts#"$tree"}/real/$base" "\$@"
WRAPPER
    chmod 755 "$program" || return 1
  done
  # The packages' own erl knows one place, /usr/lib/erlang.
  cat >"$tree/usr/lib/erlang/bin/erl" <<ENTRY
#!/bin/sh
top=\$(dirname "\$(realpath "\$0")")
while [ ! -d "\$top/usr/lib/erlang" ] && [ "\$top" != / ]; do top=\$(dirname "\$top"); done
export ROOTDIR="\$top/usr/lib/erlang" BINDIR="\$top${erts#"$tree"}" EMU=beam PROGNAME=erl
exec "\$BINDIR/erlexec" "\$@"
ENTRY
  cp "$tree/usr/lib/erlang/bin/erl" "$erts/erl" && chmod 755 "$tree/usr/lib/erlang/bin/erl" "$erts/erl" || return 1
  for program in erl erlc escript dialyzer typer ct_run; do
    ln -s "../usr/lib/erlang/bin/$program" "$tree/bin/$program"
  done
  for program in elixir elixirc iex mix; do
    # Below `purlin exec` the directory of its programs stays first: else it would be stock that is
    # run.
    cat >"$tree/bin/$program" <<ENTRY
#!/bin/sh
top=\$(dirname "\$(dirname "\$(realpath "\$0")")")
PATH="\${PURLIN_SHIMS:+\$PURLIN_SHIMS:}\$top/bin:\$PATH" exec "\$top/usr/lib/elixir/bin/$program" "\$@"
ENTRY
  done
  chmod 755 "$tree"/bin/elixir "$tree"/bin/elixirc "$tree"/bin/iex "$tree"/bin/mix
}

if [ "${1:-}" = unpack ]; then
  [ $# -ge 4 ] && suite_of "$2" >/dev/null || { echo "usage: $0 unpack otp27|otp29|aarch64 DIR PACKAGE ..." >&2; exit 2; }
  shift
  unpack "$@"
  exit
fi
status=0
for name in ${*:-otp27 otp29}; do
  suite_of "$name" >/dev/null || { echo "unknown root: $name (otp27 otp29 aarch64)" >&2; exit 2; }
  [ -d "$roots/$name/usr/lib/erlang" ] || fetch "$name" || { echo "$name cannot be fetched" >&2; status=1; continue; }
  echo "$roots/$name"
done
exit $status
